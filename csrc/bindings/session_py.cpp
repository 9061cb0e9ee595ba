// Session: what the optimizer wrapper drives.
#include "bindings/bindings.h"

#include <algorithm>
#include <chrono>

#include "torch/session.h"

namespace py = pybind11;

namespace deft {

namespace {

// Waits in short slices, so that Ctrl-C and other signals get through to Python.
std::optional<std::size_t> wait(Session& session, const std::vector<Due>& dues, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSlice{100'000};
  const auto ends =
      Clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(timeout_s * 1e6));
  while (true) {
    std::optional<std::size_t> missing;
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(ends - Clock::now());
    {
      const py::gil_scoped_release release;
      missing = session.wait(dues, std::min(left, kSlice));
    }
    if (!missing.has_value() || left <= kSlice || !session.executor().failure().ok()) {
      return missing;
    }
    if (PyErr_CheckSignals() != 0) {
      throw py::error_already_set();
    }
  }
}

std::shared_ptr<Session> make_session(const Plan& plan, std::vector<at::Tensor> parameters,
                                      std::vector<std::shared_ptr<Link>> links,
                                      const std::string& prefix, std::int32_t rank,
                                      std::int32_t size, std::optional<bool> together) {
  SessionOptions options;
  options.prefix = prefix;
  options.rank = rank;
  options.size = size;
  options.together = together;
  return Session::create(plan, std::move(parameters), std::move(links), options);
}

void bind_shards(py::module_& module) {
  module.def("shard_of", [](std::int64_t elements, std::int32_t rank, std::int32_t size) {
    const Shard shard = shard_of(elements, rank, size);
    return std::make_pair(shard.begin, shard.elements);
  });
}

using SessionClass = py::class_<Session, std::shared_ptr<Session>>;

void bind_steps(SessionClass& session) {
  session
      .def(py::init(&make_session), py::arg("plan"), py::arg("parameters"), py::arg("links"),
           py::arg("prefix"), py::arg("rank"), py::arg("size"), py::arg("together") = py::none())
      .def("close_step", &Session::close_step, py::call_guard<py::gil_scoped_release>())
      .def("due", [](Session& s) { return s.executor().due(); })
      .def("alive", [](Session& s) { return s.executor().alive(); })
      .def(
          "flush", [](Session& s) { s.executor().flush(); },
          py::call_guard<py::gil_scoped_release>())
      .def(
          "resume_at", [](Session& s, std::int64_t step) { s.executor().resume_at(step); },
          py::arg("step"), py::call_guard<py::gil_scoped_release>())
      .def("bucket_memory", &Session::bucket_memory, py::arg("bucket"), py::arg("buffer"));
}

void bind_waits(SessionClass& session) {
  session.def("wait", &wait, py::arg("dues"), py::arg("timeout_s"))
      .def("install", &Session::install)
      .def("show", &Session::show)
      .def("request_replan", &Session::request_replan)
      .def("release",
           [](Session& s, const std::vector<Due>& dues) {
             for (const Due& due : dues) {
               s.executor().release(due);
             }
           })
      .def(
          "end_step", [](Session& s) { s.executor().end_step(); },
          py::call_guard<py::gil_scoped_release>())
      .def(
          "wait_idle",
          [](Session& s, double timeout_s) {
            const std::chrono::microseconds timeout(static_cast<std::int64_t>(timeout_s * 1e6));
            return s.executor().wait_idle(timeout) == WaitResult::kDone;
          },
          py::call_guard<py::gil_scoped_release>())
      .def("fail", [](Session& s,
                      const std::string& reason) { s.executor().fail(reason, Outcome::kAborted); })
      .def("failure",
           [](Session& s) -> std::optional<std::string> {
             const LinkStatus status = s.executor().failure();
             return status.ok() ? std::nullopt : std::optional<std::string>(status.reason);
           })
      .def("inspect", [](Session& s, const Due& due) { return s.executor().inspect(due); })
      .def("slots_of",
           [](const Session& s, std::int32_t bucket) {
             const auto slots = s.slots_of(bucket);
             return std::vector<std::int32_t>(slots.begin(), slots.end());
           })
      .def("link_stats", [](Session& s) { return s.executor().link_stats(); })
      .def("take_records", [](Session& s) { return s.executor().take_records(); })
      .def_property_readonly("step", [](Session& s) { return s.executor().step(); })
      .def_property_readonly("buffer_bytes", &Session::buffer_bytes);
}

}  // namespace

void bind_session(py::module_& module) {
  bind_shards(module);
  SessionClass session(module, "Session", "A plan on real tensors.");
  bind_steps(session);
  bind_waits(session);
}

}  // namespace deft
