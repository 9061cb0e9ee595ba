// Corrections of late gradients over many tensors, element by element.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "torch/tensor_segments.h"

namespace deft {

// out[i] = sum over k of coefficients[k] * inputs[k][i], for one to three inputs. Computed in
// double on the CPU, on a GPU in float where no tensor is float64. Inputs may be outputs.
void combine_all(const Tensors& out, const std::vector<Tensors>& inputs,
                 const std::vector<double>& coefficients);

// out[i] = g[i] + strength * g[i]^2 * (now[i] - then[i]): DC-ASGD's term (arXiv 1609.08326).
void compensate_all(const Tensors& out, const Tensors& gradients, const Tensors& now,
                    const Tensors& then, double strength);

}  // namespace deft
