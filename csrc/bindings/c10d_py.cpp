// C10dLink and MeshLink. Their process groups are made in Python: the headers of torch's wheel do
// not suffice for it.
#include "bindings/bindings.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>

#include "torch/links/c10d_link.h"
#include "torch/links/mesh_link.h"

namespace py = pybind11;

namespace deft {

namespace {

// With Python's object: torch keeps these in a holder of its own, not an intrusive_ptr.
c10::intrusive_ptr<c10d::Backend> shared(c10d::Backend& group) {
  return c10::intrusive_ptr<c10d::Backend>::reclaim_copy(&group);
}

std::shared_ptr<C10dLink> make_c10d_link(c10d::Backend& group, std::string path,
                                         std::vector<std::int32_t> ranks, bool average,
                                         double prescale, double postscale) {
  C10dLinkOptions options;
  options.path = std::move(path);
  options.ranks = std::move(ranks);
  options.reduction = average ? Reduction::kAverage : Reduction::kSum;
  options.prescale = prescale;
  options.postscale = postscale;
  return destroyed_without_gil(std::make_shared<C10dLink>(shared(group), std::move(options)));
}

std::shared_ptr<MeshLink> make_mesh_link(c10d::Backend& group, std::string path) {
  return destroyed_without_gil(std::make_shared<MeshLink>(shared(group), std::move(path)));
}

template <typename GroupLink>
bool wait_idle(const GroupLink& link, double timeout_s) {
  return link.wait_idle(std::chrono::microseconds(static_cast<std::int64_t>(timeout_s * 1e6)));
}

}  // namespace

void bind_c10d(const py::module_& module) {
  py::class_<C10dLink, Link, std::shared_ptr<C10dLink>>(
      module, "C10dLink", "Messages through a process group of torch.distributed.")
      .def(py::init(&make_c10d_link), py::arg("group"), py::arg("path"), py::arg("ranks"),
           py::arg("average") = true, py::arg("prescale") = 1.0, py::arg("postscale") = 1.0)
      .def("wait_idle", &wait_idle<C10dLink>, py::arg("timeout_s"),
           py::call_guard<py::gil_scoped_release>());
  py::class_<MeshLink, Link, std::shared_ptr<MeshLink>>(
      module, "MeshLink", "Parts of buffers from rank to rank, over a group of its own.")
      .def(py::init(&make_mesh_link), py::arg("group"), py::arg("path"))
      .def("wait_idle", &wait_idle<MeshLink>, py::arg("timeout_s"),
           py::call_guard<py::gil_scoped_release>());
}

}  // namespace deft
