// Gradients and their slots: one by one, and all of a bucket.
#include "bindings/bindings.h"

#include "torch/memory/multi_pack.h"

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
      [](const Tensors& gradients, const Tensors& slots, double scale, bool accumulate) {
        const py::gil_scoped_release release;
        pack_all(gradients, slots, scale, mode_of(accumulate));
      },
      py::arg("gradients"), py::arg("slots"), py::arg("scale") = 1.0,
      py::arg("accumulate") = false);
  module.def(
      "unpack_all",
      [](const Tensors& slots, const Tensors& gradients, double scale, bool accumulate) {
        const py::gil_scoped_release release;
        unpack_all(slots, gradients, scale, mode_of(accumulate));
      },
      py::arg("slots"), py::arg("gradients"), py::arg("scale") = 1.0,
      py::arg("accumulate") = false);
}

}  // namespace

void bind_pack(py::module_& module) {
  bind_single(module);
  bind_multi_pack(module);
}

}  // namespace deft
