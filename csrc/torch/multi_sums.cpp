#include "torch/multi_sums.h"

#include <ATen/core/grad_mode.h>

#include <array>
#include <map>

#include "cuda/multi_sums.h"
#include "torch/memory.h"

namespace deft {

namespace {

using Kind = std::array<int, 3>;

void check_alike(const at::Tensor& a, const at::Tensor& other, const at::Device& device) {
  TORCH_CHECK(a.sizes() == other.sizes(), "tensors of sizes ", a.sizes(), " and ", other.sizes(),
              " have no common sums");
  TORCH_CHECK(a.device() == device && other.device() == device, "tensors on ", a.device(), ", ",
              other.device(), " and ", device, ": their sums need one device");
}

at::Tensor sums_of(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  const at::Tensor x = a.to(at::kDouble);
  const at::Tensor y = b.to(at::kDouble);
  const at::Tensor z = c.defined() ? c.to(at::kDouble) : at::zeros({1}, x.options());
  return at::stack({x.square().sum(), y.square().sum(), (x - y).square().sum(), (x * y).sum(),
                    z.square().sum()});
}

void launch(const Kind& kind, const std::vector<Tensors>& arrays, const at::Tensor& sums) {
  const Segments segments = segments_of(arrays);
  DeftSumsOf of{};
  std::copy(kind.begin(), kind.end(), of.dtypes);
  of.sums = sums.data_ptr<double>();
  of.device = device_index(sums.device());
  const int code = deft_multi_sums(segments.get(), &of, current_stream(sums.device()));
  check_launch(code, "sum squares of gradients");
}

// Reads only, so that a copy in another order of memory does.
at::Tensor laid_out_like(const at::Tensor& tensor, const at::Tensor& like) {
  return same_runs(tensor, like) ? tensor : at::empty_like(like, tensor.options()).copy_(tensor);
}

}  // namespace

at::Tensor sums_all(const Tensors& a, const Tensors& b, const Tensors& c) {
  TORCH_CHECK(a.size() == b.size() && (c.empty() || c.size() == a.size()), "lists of ", a.size(),
              ", ", b.size(), " and ", c.size(), " tensors; expected equal lengths");
  const at::NoGradGuard no_grad;
  const at::Device device = a.empty() ? at::Device(at::kCPU) : a.front().device();
  at::Tensor sums = at::zeros({kDeftSums}, at::device(device).dtype(at::kDouble));
  std::map<Kind, std::vector<Tensors>> kinds;
  for (std::size_t i = 0; i < a.size(); ++i) {
    check_alike(a[i], b[i], device);
    const at::Tensor third = c.empty() ? at::Tensor() : c[i];
    if (third.defined()) {
      check_alike(a[i], third, device);
    }
    const auto first_type = kernel_dtype(a[i].scalar_type());
    const auto second_type = kernel_dtype(b[i].scalar_type());
    const auto third_type = third.defined() ? kernel_dtype(third.scalar_type()) : std::optional(0);
    if (!device.is_cuda() || !first_type || !second_type || !third_type) {
      sums.add_(sums_of(a[i], b[i], third));
      continue;
    }
    const at::Tensor dense = a[i].is_non_overlapping_and_dense() ? a[i] : a[i].contiguous();
    auto& arrays = kinds[{*first_type, *second_type, *third_type}];
    arrays.resize(third.defined() ? 3 : 2);
    arrays[0].push_back(dense);
    arrays[1].push_back(laid_out_like(b[i], dense));
    if (third.defined()) {
      arrays[2].push_back(laid_out_like(third, dense));
    }
  }
  for (const auto& [kind, arrays] : kinds) {
    launch(kind, arrays, sums);
  }
  return sums;
}

}  // namespace deft
