#include "torch/libtorch.h"

#include "torch/memory/tensor_segments.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdint>

#include "cuda/dtype.h"
#include "cuda/event.h"
#include "torch/native_stream.h"

namespace deft {

std::optional<int> kernel_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return kDeftFloat32;
    case at::kHalf:
      return kDeftFloat16;
    case at::kBFloat16:
      return kDeftBFloat16;
    case at::kDouble:
      return kDeftFloat64;
    default:
      return std::nullopt;
  }
}

bool same_runs(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || !a.is_non_overlapping_and_dense() ||
      !b.is_non_overlapping_and_dense()) {
    return false;
  }
  for (std::int64_t d = 0; d < a.dim(); ++d) {
    // The stride of a dimension of one element places nothing.
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) {
      return false;
    }
  }
  return true;
}

void* current_stream(const at::Device& device) {
  return native_stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

void check_launch(int code, const char* what) {
  TORCH_CHECK(code >= 0, "CUDA could not ", what, ": ", deft_cuda_error(code));
}

Segments segments_of(const std::vector<Tensors>& arrays) {
  const Tensors& first = arrays.front();
  std::vector<std::int64_t> elements;
  elements.reserve(first.size());
  for (const at::Tensor& tensor : first) {
    elements.push_back(tensor.numel());
  }
  Segments segments(deft_segments_create(static_cast<int>(arrays.size()),
                                         static_cast<std::int64_t>(elements.size()),
                                         elements.data()));
  TORCH_CHECK(segments != nullptr, "no memory for a table of ", elements.size(), " segments");
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      deft_segments_set(segments.get(), static_cast<std::int64_t>(i), static_cast<int>(a),
                        arrays[a][i].const_data_ptr());
    }
  }
  return segments;
}

}  // namespace deft
