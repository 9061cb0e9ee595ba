#include "torch/libtorch.h"

#include "torch/memory/multi_pack.h"

#include <ATen/core/grad_mode.h>

#include <map>
#include <optional>
#include <tuple>

#include "cuda/copy/multi_copy.h"
#include "torch/memory/memory.h"

namespace deft {

namespace {

// Device, and the kernels' numbers of the two types.
using Kind = std::tuple<int, int, int>;

struct Pairs {
  Tensors from;
  Tensors to;
};

// Empty: nothing that a kernel could do.
std::optional<Kind> kind_of(const at::Tensor& from, const at::Tensor& to) {
  const auto from_dtype = kernel_dtype(from.scalar_type());
  const auto to_dtype = kernel_dtype(to.scalar_type());
  if (!from_dtype || !to_dtype || !from.is_cuda() || from.device() != to.device() ||
      !same_runs(from, to)) {
    return std::nullopt;
  }
  return Kind(device_index(to.device()), *from_dtype, *to_dtype);
}

bool already_there(const at::Tensor& from, const at::Tensor& to) {
  return from.const_data_ptr() == to.const_data_ptr() && from.scalar_type() == to.scalar_type();
}

void launch(const Kind& kind, const Pairs& pairs, double scale, PackMode mode) {
  const Segments segments = segments_of({pairs.from, pairs.to});
  DeftCopy copy{};
  std::tie(copy.device, copy.from_dtype, copy.to_dtype) = kind;
  copy.scale = scale;
  copy.accumulate = mode == PackMode::kAccumulate ? 1 : 0;
  void* stream = current_stream(pairs.to.front().device());
  check_launch(deft_multi_copy(segments.get(), &copy, stream), "copy gradients");
}

}  // namespace

void pack_all(const Tensors& gradients, const Tensors& slots, double scale, PackMode mode) {
  TORCH_CHECK(gradients.size() == slots.size(), gradients.size(), " gradients for ", slots.size(),
              " slots");
  const at::NoGradGuard no_grad;
  const bool plain = scale == 1.0 && mode == PackMode::kOverwrite;
  std::map<Kind, Pairs> kinds;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const at::Tensor& from = gradients[i];
    const at::Tensor& to = slots[i];
    const std::optional<Kind> kind = kind_of(from, to);
    if (!kind.has_value()) {
      pack(from, to, scale, mode);
    } else if (!plain || !already_there(from, to)) {
      kinds[*kind].from.push_back(from);
      kinds[*kind].to.push_back(to);
    }
  }
  for (const auto& [kind, pairs] : kinds) {
    launch(kind, pairs, scale, mode);
  }
}

void unpack_all(const Tensors& slots, const Tensors& gradients, double scale, PackMode mode) {
  pack_all(slots, gradients, scale, mode);
}

}  // namespace deft
