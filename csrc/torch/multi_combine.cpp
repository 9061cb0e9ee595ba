#include "torch/multi_combine.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "cuda/multi_combine.h"
#include "torch/memory.h"

namespace deft {

namespace {

// Device, then the kernels' numbers of the types of out and up to three inputs.
using Kind = std::array<int, 5>;

struct Formula {
  int number;
  std::array<double, 3> coefficients;
};

// Segment i of all arrays; out first.
Tensors segment(const std::vector<Tensors>& arrays, std::size_t i) {
  Tensors tensors;
  for (const Tensors& array : arrays) {
    tensors.push_back(array[i]);
  }
  return tensors;
}

void compute(const Tensors& tensors, const Formula& formula) {
  const auto& c = formula.coefficients;
  const at::Tensor x = tensors[1].to(at::kDouble);
  if (formula.number == kDeftCompensated) {
    const at::Tensor drift = tensors[2].to(at::kDouble) - tensors[3].to(at::kDouble);
    tensors[0].copy_(x + x.square() * drift * c[0]);
    return;
  }
  const at::Tensor sum = x * c[0];
  for (std::size_t k = 2; k < tensors.size(); ++k) {
    sum.add_(tensors[k].to(at::kDouble), c[k - 1]);
  }
  tensors[0].copy_(sum);
}

std::optional<Kind> kind_of(const Tensors& tensors) {
  const at::Tensor& out = tensors.front();
  Kind kind{};
  kind[0] = device_index(out.device());
  for (std::size_t a = 0; a < tensors.size(); ++a) {
    const auto dtype = kernel_dtype(tensors[a].scalar_type());
    if (!dtype || !out.is_cuda() || tensors[a].device() != out.device() ||
        !same_runs(out, tensors[a])) {
      return std::nullopt;
    }
    kind[a + 1] = *dtype;
  }
  return kind;
}

void launch(const Kind& kind, const std::vector<Tensors>& arrays, const Formula& formula) {
  const Segments segments = segments_of(arrays);
  DeftCombine combine{};
  combine.formula = formula.number;
  std::copy(kind.begin() + 1, kind.end(), combine.dtypes);
  std::copy(formula.coefficients.begin(), formula.coefficients.end(), combine.coefficients);
  combine.device = kind[0];
  void* stream = current_stream(arrays.front().front().device());
  check_launch(deft_multi_combine(segments.get(), &combine, stream), "combine gradients");
}

void run(const std::vector<Tensors>& arrays, const Formula& formula) {
  const at::NoGradGuard no_grad;
  for (const Tensors& array : arrays) {
    TORCH_CHECK(array.size() == arrays.front().size(), "lists of ", arrays.front().size(), " and ",
                array.size(), " tensors; expected equal lengths");
  }
  std::map<Kind, std::vector<Tensors>> kinds;
  for (std::size_t i = 0; i < arrays.front().size(); ++i) {
    const Tensors tensors = segment(arrays, i);
    for (const at::Tensor& tensor : tensors) {
      TORCH_CHECK(tensor.sizes() == tensors.front().sizes(), "tensors of sizes ",
                  tensors.front().sizes(), " and ", tensor.sizes(), " cannot be combined");
    }
    const std::optional<Kind> kind = kind_of(tensors);
    if (!kind.has_value()) {
      compute(tensors, formula);
      continue;
    }
    auto& members = kinds[*kind];
    members.resize(tensors.size());
    for (std::size_t a = 0; a < tensors.size(); ++a) {
      members[a].push_back(tensors[a]);
    }
  }
  for (const auto& [kind, members] : kinds) {
    launch(kind, members, formula);
  }
}

}  // namespace

void combine_all(const Tensors& out, const std::vector<Tensors>& inputs,
                 const std::vector<double>& coefficients) {
  TORCH_CHECK(!inputs.empty() && inputs.size() <= 3 && inputs.size() == coefficients.size(),
              inputs.size(), " inputs with ", coefficients.size(),
              " coefficients; expected one to three, as many of each");
  Formula formula{kDeftLinear, {}};
  std::copy(coefficients.begin(), coefficients.end(), formula.coefficients.begin());
  std::vector<Tensors> arrays{out};
  arrays.insert(arrays.end(), inputs.begin(), inputs.end());
  run(arrays, formula);
}

void compensate_all(const Tensors& out, const Tensors& gradients, const Tensors& now,
                    const Tensors& then, double strength) {
  run({out, gradients, now, then}, {kDeftCompensated, {strength, 0.0, 0.0}});
}

}  // namespace deft
