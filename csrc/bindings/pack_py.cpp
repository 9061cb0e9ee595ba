// Gradients and their slots: one by one, and all of a bucket.
#include "bindings/bindings.h"
#include "torch/multi_combine.h"
#include "torch/multi_pack.h"
#include "torch/multi_sums.h"

namespace py = pybind11;

namespace deft {

namespace {

PackMode mode_of(bool accumulate) {
  return accumulate ? PackMode::kAccumulate : PackMode::kOverwrite;
}

void bind_single(py::module_& module) {
  module.def(
      "pack",
      [](const at::Tensor& gradient, const at::Tensor& slot, double scale, bool accumulate) {
        pack(gradient, slot, scale, mode_of(accumulate));
      },
      py::arg("gradient"), py::arg("slot"), py::arg("scale") = 1.0, py::arg("accumulate") = false);
  module.def("unpack", &unpack, py::arg("slot"), py::arg("gradient"));
}

void bind_multi_pack(py::module_& module) {
  module.def(
      "pack_all",
      [](const Tensors& gradients, const Tensors& slots, double scale, bool accumulate,
         const std::optional<at::Tensor>& nonfinite, const std::optional<at::Tensor>& squares) {
        const PackWatch watch{nonfinite.value_or(at::Tensor()), squares.value_or(at::Tensor())};
        const py::gil_scoped_release release;
        pack_all(gradients, slots, scale, mode_of(accumulate), watch);
      },
      py::arg("gradients"), py::arg("slots"), py::arg("scale") = 1.0, py::arg("accumulate") = false,
      py::arg("nonfinite") = py::none(), py::arg("squares") = py::none());
  module.def(
      "unpack_all",
      [](const Tensors& slots, const Tensors& gradients, double scale, bool accumulate) {
        const py::gil_scoped_release release;
        unpack_all(slots, gradients, scale, mode_of(accumulate));
      },
      py::arg("slots"), py::arg("gradients"), py::arg("scale") = 1.0,
      py::arg("accumulate") = false);
}

void bind_arithmetic(py::module_& module) {
  module.def("sums_all", &sums_all, py::arg("a"), py::arg("b"), py::arg("c") = Tensors(),
             py::call_guard<py::gil_scoped_release>());
  module.def("combine_all", &combine_all, py::arg("out"), py::arg("inputs"),
             py::arg("coefficients"), py::call_guard<py::gil_scoped_release>());
  module.def("compensate_all", &compensate_all, py::arg("out"), py::arg("gradients"),
             py::arg("now"), py::arg("then"), py::arg("strength"),
             py::call_guard<py::gil_scoped_release>());
}

}  // namespace

void bind_pack(py::module_& module) {
  bind_single(module);
  bind_multi_pack(module);
  bind_arithmetic(module);
}

}  // namespace deft
