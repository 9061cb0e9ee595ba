// Tensors as segments of the kernels of csrc/cuda.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <vector>

#include "cuda/copy/segments.h"

namespace deft {

using Tensors = std::vector<at::Tensor>;

// The kernels' number of a floating type; empty: they have none for it.
[[nodiscard]] std::optional<int> kernel_dtype(at::ScalarType dtype);
// Equal sizes, no gaps, elements in the same order of memory: flat runs of equal length.
[[nodiscard]] bool same_runs(const at::Tensor& a, const at::Tensor& b);
// The calling thread's current stream of a device, as CUDA's handle.
[[nodiscard]] void* current_stream(const at::Device& device);
// Throws where a kernel could not be launched.
void check_launch(int code, const char* what);

struct SegmentsEnd {
  void operator()(DeftSegments* segments) const { deft_segments_destroy(segments); }
};
using Segments = std::unique_ptr<DeftSegments, SegmentsEnd>;

// Segment i is arrays[0][i], arrays[1][i], ...; all of them have the same runs.
[[nodiscard]] Segments segments_of(const std::vector<Tensors>& arrays);

}  // namespace deft
