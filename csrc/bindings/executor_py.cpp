// Executor and ManualLink: the engine on its own, driven by hand (tests, simulations).
#include "bindings/bindings.h"

#include <chrono>

#include "core/clock.h"
#include "core/errors.h"
#include "core/executor/executor.h"
#include "core/link/manual_link.h"

namespace py = pybind11;

namespace deft {

namespace {

// Messages without memory: for an executor whose links only record.
std::shared_ptr<Executor> dry_executor(const Plan& plan,
                                       const std::vector<std::shared_ptr<ManualLink>>& links) {
  std::vector<std::shared_ptr<Link>> plain(links.begin(), links.end());
  const auto factory = [plan](std::int32_t task, std::int32_t buffer) {
    const TaskSpec& spec = plan.tasks[static_cast<std::size_t>(task)];
    Message message;
    message.name = "t" + std::to_string(task) + "." + std::to_string(buffer);
    message.op = spec.op;
    return message;
  };
  return std::make_shared<Executor>(plan, std::move(plain), factory, steady_us);
}

std::chrono::microseconds to_us(double seconds) {
  return std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

const char* progress_name(Progress progress) {
  switch (progress) {
    case Progress::kCollecting:
      return "collecting";
    case Progress::kHeld:
      return "held";
    case Progress::kInFlight:
      return "in flight";
    case Progress::kReduced:
      return "reduced";
    case Progress::kFailed:
      return "failed";
  }
  return "unknown";
}

void bind_records(const py::module_& module) {
  py::class_<Due>(module, "Due", "A generation whose apply point has come.")
      .def_readonly("generation", &Due::generation)
      .def_readonly("bucket", &Due::bucket)
      .def_readonly("first_step", &Due::first_step)
      .def_readonly("last_step", &Due::last_step)
      .def_readonly("apply_step", &Due::apply_step)
      .def_readonly("buffer", &Due::buffer)
      .def_readonly("gated", &Due::gated);
  py::class_<Pending>(module, "Pending", "Why a generation is not there yet.")
      .def_readonly("bucket", &Pending::bucket)
      .def_readonly("first_step", &Pending::first_step)
      .def_readonly("last_step", &Pending::last_step)
      .def_property_readonly("progress", [](const Pending& p) { return progress_name(p.progress); })
      .def_readonly("held_by", &Pending::held_by)
      .def_readonly("missing_slots", &Pending::missing_slots)
      .def_readonly("waited_us", &Pending::waited_us);
  py::class_<LinkStats>(module, "LinkStats")
      .def_readonly("messages", &LinkStats::messages)
      .def_readonly("bytes", &LinkStats::bytes)
      .def_readonly("busy_us", &LinkStats::busy_us);
  py::class_<MessageRecord>(module, "MessageRecord")
      .def_readonly("task", &MessageRecord::task)
      .def_readonly("step", &MessageRecord::step)
      .def_readonly("bytes", &MessageRecord::bytes)
      .def_readonly("ready_us", &MessageRecord::ready_us)
      .def_readonly("sent_us", &MessageRecord::sent_us)
      .def_readonly("done_us", &MessageRecord::done_us);
}

}  // namespace

void bind_executor(const py::module_& module) {
  py::register_exception<ExecutorError>(module, "ExecutorError", PyExc_RuntimeError);
  bind_records(module);
  py::class_<ManualLink, std::shared_ptr<ManualLink>>(module, "ManualLink",
                                                      "A link that the caller completes.")
      .def(py::init<>())
      .def("pending", &ManualLink::pending)
      .def("sent", &ManualLink::sent)
      .def(
          "complete",
          [](ManualLink& link, const std::string& name, const std::string& failure) {
            link.complete(name, failure.empty() ? Outcome::kOk : Outcome::kAborted, failure);
          },
          py::arg("name"), py::arg("failure") = "");
  py::class_<Executor, std::shared_ptr<Executor>>(module, "Executor", "Runs a plan.")
      .def(py::init(&dry_executor), py::arg("plan"), py::arg("links"))
      .def("begin_backward", &Executor::begin_backward)
      .def("slot_ready", &Executor::slot_ready)
      .def("due", &Executor::due)
      .def("alive", &Executor::alive)
      .def("flush", &Executor::flush)
      .def("resume_at", &Executor::resume_at, py::arg("step"))
      .def("end_step", &Executor::end_step)
      .def("release", &Executor::release)
      .def(
          "wait",
          [](Executor& executor, const Due& due, double timeout_s) {
            return executor.wait(due, to_us(timeout_s)) == WaitResult::kDone;
          },
          py::call_guard<py::gil_scoped_release>())
      .def("inspect", &Executor::inspect)
      .def("in_flight", &Executor::in_flight)
      .def_property_readonly("step", &Executor::step);
}

}  // namespace deft
