// What was compiled against, and what is loaded.
#include "bindings/bindings.h"

#include "horovod/abi_check.h"

namespace py = pybind11;

namespace deft {

void bind_abi_fact(const py::module_& module) {
  py::class_<AbiFact>(module, "AbiFact")
      .def_readonly("what", &AbiFact::what)
      .def_readonly("compiled", &AbiFact::compiled)
      .def_readonly("loaded", &AbiFact::loaded)
      .def_property_readonly("matches", &AbiFact::matches);
}

}  // namespace deft
