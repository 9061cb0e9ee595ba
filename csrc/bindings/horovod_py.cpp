// Horovod's queue as a link, and the ABI check.
#include "bindings/bindings.h"

#include "core/link/ordered_link.h"

#include "horovod/abi_check.h"
#include "horovod/horovod_link.h"
#include "torch/memory/memory.h"

namespace py = pybind11;

namespace deft {

namespace {

std::shared_ptr<OrderedLink> make_horovod_link(std::int32_t process_set_id, bool average,
                                               double prescale, double postscale) {
  HorovodLinkOptions options;
  options.process_set_id = process_set_id;
  options.reduction = average ? Reduction::kAverage : Reduction::kSum;
  options.prescale = prescale;
  options.postscale = postscale;
  return destroyed_without_gil(
      std::make_shared<OrderedLink>(std::make_shared<HorovodLink>(options, torch_allocator())));
}

}  // namespace

void bind_horovod(py::module_& module) {
  module.def("abi_facts", &abi_facts, py::arg("horovod_version"), py::arg("torch_version"));
  // Without the GIL: Horovod may hold the lock that this takes while it waits for the GIL.
  module.def("horovod_has_ended", &horovod_has_ended, py::call_guard<py::gil_scoped_release>());
  py::class_<OrderedLink, Link, std::shared_ptr<OrderedLink>>(module, "HorovodLink",
                                                              "Messages through Horovod's queue.")
      .def(py::init(&make_horovod_link), py::arg("process_set_id") = 0, py::arg("average") = true,
           py::arg("prescale") = 1.0, py::arg("postscale") = 1.0);
}

}  // namespace deft
