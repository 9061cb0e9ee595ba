// StagedLink: a device's messages by way of host memory.
#include "bindings/bindings.h"

#include "core/link/staged_link.h"

#include <set>
#include <string>
#include <utility>

#include "torch/links/cuda_copier.h"

namespace py = pybind11;

namespace deft {

void bind_staged(const py::module_& module) {
  py::class_<StagedLink, Link, std::shared_ptr<StagedLink>>(
      module, "StagedLink", "A device's messages by way of pinned host memory.")
      .def(py::init([](std::shared_ptr<Link> inner, std::int32_t device, bool direct) {
             return destroyed_without_gil(std::make_shared<StagedLink>(
                 std::move(inner), std::make_shared<CudaCopier>(device), direct));
           }),
           py::arg("inner"), py::arg("device"), py::arg("direct") = false)
      .def(
          "around",
          [](const StagedLink& link, std::shared_ptr<Link> inner, std::set<std::string> names) {
            return destroyed_without_gil(link.around(std::move(inner), std::move(names)));
          },
          py::arg("inner"), py::arg("names"))
      .def_property_readonly("inner", &StagedLink::inner);
}

}  // namespace deft
