// Plan: built from the dictionaries of deft_horovod.plan, whose field names it shares.
#include "bindings/bindings.h"

#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/plan/plan.h"

namespace py = pybind11;

namespace deft {

namespace {

template <typename Value>
Value choose(const std::map<std::string, Value>& names, const py::dict& from, const char* key) {
  const auto name = from[key].cast<std::string>();
  const auto found = names.find(name);
  if (found == names.end()) {
    throw PlanError(std::string("unknown ") + key + " '" + name + "'");
  }
  return found->second;
}

const std::map<std::string, DType>& wires() {
  static const std::map<std::string, DType> names = {
      {"float16", DType::kFloat16}, {"float32", DType::kFloat32}, {"float64", DType::kFloat64}};
  return names;
}

const std::map<std::string, Op>& ops() {
  static const std::map<std::string, Op> names = {{"all_reduce", Op::kAllReduce},
                                                  {"reduce_scatter", Op::kReduceScatter},
                                                  {"all_gather", Op::kAllGather},
                                                  {"broadcast", Op::kBroadcast}};
  return names;
}

const std::map<std::string, Stage>& stages() {
  static const std::map<std::string, Stage> names = {{"forward", Stage::kForward},
                                                     {"backward", Stage::kBackward}};
  return names;
}

template <typename Record, typename Read>
std::vector<Record> read_all(const py::dict& from, const char* key, Read read) {
  std::vector<Record> records;
  for (const auto& item : from[key]) {
    records.push_back(read(item.cast<py::dict>()));
  }
  return records;
}

std::int64_t number(const py::dict& from, const char* key) {
  return from[key].cast<std::int64_t>();
}

std::int32_t small(const py::dict& from, const char* key) { return from[key].cast<std::int32_t>(); }

// message_bytes: of each bucket, as it travels; none: all as they are.
Plan plan_from(const py::dict& from, const std::vector<std::int64_t>& message_bytes) {
  Plan plan;
  plan.period = small(from, "period");
  plan.buffers = small(from, "buffers");
  plan.links = read_all<LinkSpec>(from, "links", [](const py::dict& d) {
    return LinkSpec{d["name"].cast<std::string>(), number(d, "credit_bytes"),
                    number(d, "credit_messages"), d["plan_order"].cast<bool>(),
                    d["fusion"].cast<bool>()};
  });
  plan.arenas = read_all<ArenaSpec>(from, "arenas", [](const py::dict& d) {
    return ArenaSpec{choose(wires(), d, "wire"), number(d, "elements")};
  });
  plan.slots = read_all<SlotSpec>(from, "slots", [](const py::dict& d) {
    return SlotSpec{small(d, "arena"), number(d, "begin"), number(d, "end")};
  });
  plan.buckets = read_all<BucketSpec>(from, "buckets", [](const py::dict& d) {
    return BucketSpec{small(d, "arena"), number(d, "begin"), number(d, "end"), 0};
  });
  if (!message_bytes.empty() && message_bytes.size() != plan.buckets.size()) {
    throw PlanError("the sizes of " + std::to_string(message_bytes.size()) +
                    " messages are given; expected one for each of " +
                    std::to_string(plan.buckets.size()) + " buckets");
  }
  for (std::size_t at = 0; at < message_bytes.size(); ++at) {
    plan.buckets[at].message_bytes = message_bytes[at];
  }
  plan.generations = read_all<GenerationSpec>(from, "generations", [](const py::dict& d) {
    return GenerationSpec{small(d, "bucket"), small(d, "first_step"), small(d, "last_step"),
                          small(d, "apply_step"), d["gated"].cast<bool>()};
  });
  plan.tasks = read_all<TaskSpec>(from, "tasks", [](const py::dict& d) {
    return TaskSpec{small(d, "generation"), choose(ops(), d, "op"), small(d, "link"),
                    Window{number(d, "step"), choose(stages(), d, "stage")}, small(d, "root")};
  });
  plan.validate();
  return plan;
}

}  // namespace

void bind_plan(const py::module_& module) {
  py::register_exception<PlanError>(module, "CorePlanError", PyExc_ValueError);
  py::class_<Plan>(module, "Plan", "The plan as the executor reads it.")
      .def(py::init(&plan_from), py::arg("fields"),
           py::arg("message_bytes") = std::vector<std::int64_t>())
      .def_property_readonly("buckets", [](const Plan& plan) { return plan.buckets.size(); })
      .def_property_readonly("tasks", [](const Plan& plan) { return plan.tasks.size(); });
}

}  // namespace deft
