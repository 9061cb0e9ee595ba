// Collector, BackwardWatch and MemoryWatch: what torch tells.
#include "bindings/bindings.h"

#include "core/clock.h"
#include "torch/backward_watch.h"
#include "torch/collector.h"
#include "torch/memory/memory_watch.h"
#include "torch/session.h"

namespace py = pybind11;

namespace deft {

namespace {

// Called without the GIL, on threads of torch's that may be the last to let go of it, and that no
// exception may pass.
std::function<void()> free_of_gil(py::function function, const char* what) {
  const std::shared_ptr<py::function> held(new py::function(std::move(function)),
                                           [](py::function* last) {
                                             const py::gil_scoped_acquire acquire;
                                             delete last;
                                           });
  return [held, what] {
    const py::gil_scoped_acquire acquire;
    try {
      (*held)();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable(what);
    }
  };
}

std::shared_ptr<BackwardWatch> watch_backward(py::function on_begin) {
  return BackwardWatch::attach(
      free_of_gil(std::move(on_begin), "deft_horovod: a backward pass begins"));
}

std::shared_ptr<MemoryWatch> watch_memory(py::function on_use) {
  return MemoryWatch::create(
      free_of_gil(std::move(on_use), "deft_horovod: a held parameter is used"));
}

void bind_backward_watch(py::module_& module) {
  module.def("steady_us", &steady_us);
  py::class_<BackwardWatch, std::shared_ptr<BackwardWatch>>(module, "BackwardWatch",
                                                            "Tells when backward begins.")
      .def(py::init(&watch_backward), py::arg("on_begin"))
      .def("detach", &BackwardWatch::detach)
      .def_static("listen", &BackwardWatch::listen);
}

void bind_memory_watch(const py::module_& module) {
  py::class_<MemoryWatch, std::shared_ptr<MemoryWatch>>(
      module, "MemoryWatch", "Tells of the first operation on certain tensors.")
      .def(py::init(&watch_memory), py::arg("on_use"))
      .def("begin", &MemoryWatch::begin, py::arg("tensors"))
      .def("end", &MemoryWatch::end)
      .def_property_readonly("watching", &MemoryWatch::watching);
}

void bind_collector(const py::module_& module) {
  py::class_<Collected>(module, "Collected", "What one backward window produced.")
      .def_readonly("order", &Collected::order)
      .def_readonly("ready_us", &Collected::ready_us)
      .def_readonly("sparse", &Collected::sparse)
      .def_readonly("began_us", &Collected::began_us)
      .def_readonly("backward_us", &Collected::backward_us);
  py::class_<Collector, std::shared_ptr<Collector>>(module, "Collector", "Gradient hooks.")
      .def(py::init(&Collector::attach), py::arg("parameters"), py::arg("names"),
           py::arg("passes_per_step"))
      .def("detach", &Collector::detach)
      .def(
          "set_sink",
          [](Collector& collector, std::shared_ptr<Session> session,
             std::vector<std::int64_t> places) {
            collector.set_sink(std::move(session), std::move(places));
          },
          py::arg("session"), py::arg("places"))
      .def("all_train", &Collector::all_train)
      .def("set_adding", &Collector::set_adding, py::arg("adding"))
      .def("set_passes_per_step", &Collector::set_passes_per_step)
      .def("any", &Collector::any)
      .def("complete", &Collector::complete)
      .def("collected", &Collector::collected)
      .def("reset", &Collector::reset);
}

}  // namespace

void bind_gradients(py::module_& module) {
  bind_backward_watch(module);
  bind_memory_watch(module);
  bind_collector(module);
}

}  // namespace deft
