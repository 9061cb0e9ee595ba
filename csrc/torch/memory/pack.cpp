#include "torch/libtorch.h"

#include "torch/memory/pack.h"

#include <ATen/core/grad_mode.h>

#include <cstring>

namespace deft {

namespace {

// Above this, ATen's copy_ uses several threads; below, its dispatch costs more than the copy.
constexpr std::int64_t kMemcpyLimitBytes = 1'048'576;

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.strides() == b.strides();
}

bool plain_copy(const at::Tensor& from, const at::Tensor& to) {
  return from.is_cpu() && to.is_cpu() && from.scalar_type() == to.scalar_type() &&
         from.sizes() == to.sizes() && from.strides() == to.strides() &&
         from.is_non_overlapping_and_dense() &&
         static_cast<std::int64_t>(from.nbytes()) <= kMemcpyLimitBytes;
}

}  // namespace

void pack(const at::Tensor& gradient, const at::Tensor& slot, double scale, PackMode mode) {
  const at::NoGradGuard no_grad;
  if (mode == PackMode::kAccumulate) {
    slot.add_(gradient, scale);
    return;
  }
  if (same_memory(gradient, slot)) {
    if (scale != 1.0) {
      slot.mul_(scale);
    }
    return;
  }
  if (plain_copy(gradient, slot)) {
    std::memcpy(slot.data_ptr(), gradient.data_ptr(), gradient.nbytes());
  } else {
    slot.copy_(gradient, /*non_blocking=*/true);
  }
  if (scale != 1.0) {
    slot.mul_(scale);
  }
}

void unpack(const at::Tensor& slot, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  if (plain_copy(slot, gradient)) {
    std::memcpy(gradient.data_ptr(), slot.data_ptr(), slot.nbytes());
  } else {
    gradient.copy_(slot, /*non_blocking=*/true);
  }
}

}  // namespace deft
