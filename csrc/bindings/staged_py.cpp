// StagedLink: a device's messages by way of host memory.
#include "bindings/bindings.h"

#include "core/link/staged_link.h"

#include "torch/links/cuda_copier.h"

namespace py = pybind11;

namespace deft {

void bind_staged(const py::module_& module) {
  py::class_<StagedLink, Link, std::shared_ptr<StagedLink>>(
      module, "StagedLink", "A device's messages by way of pinned host memory.")
      .def(py::init([](std::shared_ptr<Link> inner, std::int32_t device) {
             return destroyed_without_gil(std::make_shared<StagedLink>(
                 std::move(inner), std::make_shared<CudaCopier>(device)));
           }),
           py::arg("inner"), py::arg("device"));
}

}  // namespace deft
