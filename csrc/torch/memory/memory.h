// Memory and dtypes as torch has them, in the words of the core.
#pragma once

#include <ATen/ATen.h>

#include "core/link/allocator.h"
#include "core/types.h"

namespace deft {

[[nodiscard]] at::ScalarType to_torch(DType dtype);
[[nodiscard]] DType from_torch(at::ScalarType dtype);  // throws for what no wire carries
// -1 for host memory, else the CUDA index: Horovod's numbering.
[[nodiscard]] std::int32_t device_index(const at::Device& device);
[[nodiscard]] at::Device device_at(std::int32_t index);  // the other way round
// Buffers from torch's caching allocators, on the device that Horovod asks for.
[[nodiscard]] Allocator torch_allocator();

}  // namespace deft
