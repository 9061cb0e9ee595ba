// Squares of gradients, of their change, and their product, over many tensors.
#pragma once

#include <ATen/ATen.h>

#include "torch/tensor_segments.h"

namespace deft {

// Over all pairs (triples, where `c` is not empty): the sums of a^2, b^2, (a - b)^2, a b and c^2,
// as five float64 on the tensors' device. One device; nothing waits for it.
[[nodiscard]] at::Tensor sums_all(const Tensors& a, const Tensors& b, const Tensors& c = {});

}  // namespace deft
