// Without Horovod: there is no such link, and only torch has to be the one that was compiled for.
#include "bindings/bindings.h"

#include <string>
#include <vector>

#include "horovod/abi_check.h"

namespace py = pybind11;

namespace deft {

void bind_horovod(py::module_& module) {
  module.def(
      "abi_facts",
      [](const std::string&, const std::string& torch_version) {
        return std::vector<AbiFact>{{"torch version", DEFT_TORCH_VERSION, torch_version}};
      },
      py::arg("horovod_version"), py::arg("torch_version"));
  module.def("horovod_has_ended", [] { return true; });
}

}  // namespace deft
