// Gradient <-> slot: the seam between CPU and CUDA implementations. Both go through ATen, which
// dispatches by device; contiguous host copies take the short way.
#pragma once

#include <ATen/ATen.h>

namespace deft {

enum class PackMode : std::uint8_t { kOverwrite, kAccumulate };

// slot (=|+=) scale * gradient, cast to the slot's dtype. A gradient that already lives in its slot
// is left alone.
void pack(const at::Tensor& gradient, const at::Tensor& slot, double scale, PackMode mode);

// gradient = slot, cast to the gradient's dtype.
void unpack(const at::Tensor& slot, const at::Tensor& gradient);

}  // namespace deft
