// Rules on time: generations, tasks, buffers.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/rules.h"
#include "core/plan/schedule.h"

namespace deft {
namespace {

template <typename Number>
std::string text(Number value) {
  return std::to_string(value);
}

std::string text_of(const Window& window) {
  return std::string(name_of(window.stage)) + " of step " + text(window.step);
}

void check_generations(const Plan& plan) {
  const auto period = static_cast<std::size_t>(plan.period);
  std::vector<bool> covered(plan.buckets.size() * period, false);
  const auto last_of_period = plan.period - 1;
  const std::string rule = "the generations of a bucket cover every step of the period once";
  for (std::size_t at = 0; at < plan.generations.size(); ++at) {
    const GenerationSpec& spec = plan.generations[at];
    const std::string who = "generation " + text(at);
    if (spec.bucket < 0 || static_cast<std::size_t>(spec.bucket) >= plan.buckets.size()) {
      break_rule("references are in range",
                 who + " names bucket " + text(spec.bucket) + " of " + text(plan.buckets.size()));
    }
    if (spec.first_step > spec.last_step || spec.last_step < 0 || spec.last_step > last_of_period ||
        spec.first_step < spec.last_step - last_of_period) {
      break_rule("a generation ends in the period and covers at most so many steps, first to last",
                 who + " covers steps " + text(spec.first_step) + " to " + text(spec.last_step) +
                     " of a period of " + text(plan.period));
    }
    if (spec.apply_step < spec.last_step) {
      break_rule("a generation is applied after its last gradient",
                 who + " is applied at step " + text(spec.apply_step) + ", its last step is " +
                     text(spec.last_step));
    }
    for (std::int32_t step = spec.first_step; step <= spec.last_step; ++step) {
      const auto place = static_cast<std::size_t>(step < 0 ? step + plan.period : step);
      const std::size_t cell = static_cast<std::size_t>(spec.bucket) * period + place;
      if (covered[cell]) {
        break_rule(rule, "step " + text(place) + " of bucket " + text(spec.bucket) +
                             " is covered again by " + who);
      }
      covered[cell] = true;
    }
  }
  for (std::size_t cell = 0; cell < covered.size(); ++cell) {
    if (!covered[cell]) {
      break_rule(rule, "step " + text(cell % period) + " of bucket " + text(cell / period) +
                           " is not covered");
    }
  }
}

// A parameter has one gradient at a boundary.
void check_boundaries(const Plan& plan) {
  const auto period = static_cast<std::size_t>(plan.period);
  std::vector<bool> applied(plan.buckets.size() * period, false);
  for (std::size_t at = 0; at < plan.generations.size(); ++at) {
    const GenerationSpec& spec = plan.generations[at];
    const auto place = static_cast<std::size_t>(spec.apply_step) % period;
    const std::size_t cell = static_cast<std::size_t>(spec.bucket) * period + place;
    if (applied[cell]) {
      break_rule("one generation of a bucket at most is applied at a boundary",
                 "generation " + text(at) + " is not alone of bucket " + text(spec.bucket) +
                     " at step " + text(place) + " of the period");
    }
    applied[cell] = true;
  }
}

void check_tasks(const Plan& plan) {
  std::vector<bool> travels(plan.generations.size(), false);
  for (std::size_t at = 0; at < plan.tasks.size(); ++at) {
    const TaskSpec& task = plan.tasks[at];
    const std::string who = "task " + text(at);
    if (task.generation < 0 || static_cast<std::size_t>(task.generation) >= travels.size() ||
        task.link < 0 || static_cast<std::size_t>(task.link) >= plan.links.size()) {
      break_rule("references are in range", who + " names generation " + text(task.generation) +
                                                " of " + text(travels.size()) + " and link " +
                                                text(task.link) + " of " + text(plan.links.size()));
    }
    if (task.root < 0) break_rule("a root is a rank", who + " has root " + text(task.root));
    const GenerationSpec& spec = plan.generations[static_cast<std::size_t>(task.generation)];
    const Window earliest{spec.last_step, Stage::kBackward};
    if (task.window < earliest) {
      break_rule("a task does not leave before its last gradient",
                 who + " may leave in the " + text_of(task.window) +
                     ", its last gradient comes in the " + text_of(earliest));
    }
    travels[static_cast<std::size_t>(task.generation)] = true;
  }
  const auto idle = std::find(travels.begin(), travels.end(), false);
  if (idle != travels.end()) {
    break_rule("every generation has a task",
               "generation " + text(idle - travels.begin()) + " has none");
  }
}

// Instance n + buffers of a bucket writes where instance n was: n must be applied before its first
// step. The inner loop ends there, so it is short however late a generation is applied.
void check_buffers(const Plan& plan, const Schedule& schedule) {
  for (std::size_t at = 0; at < plan.generations.size(); ++at) {
    const GenerationSpec& spec = plan.generations[at];
    const Instance instance{static_cast<std::int32_t>(at), 0};
    const std::int64_t next_user = schedule.number(instance) + plan.buffers;
    for (std::int64_t step = spec.last_step + 1; step <= spec.apply_step; ++step) {
      if (schedule.number(schedule.collecting(spec.bucket, step)) < next_user) continue;
      break_rule("there is a buffer for every generation of a bucket that can coexist",
                 "generation " + text(at) + " of bucket " + text(spec.bucket) +
                     " is applied at step " + text(spec.apply_step) + " but step " + text(step) +
                     " needs its buffer, one of " + text(plan.buffers));
    }
  }
}

// What is applied at a boundary must be able to leave before it. A message waits for its own
// window and for those of all messages before it on its link and in its generation; waiting
// follows the order of the tasks, so no two messages wait for each other.
class Deadlines {
 public:
  explicit Deadlines(const Plan& plan)
      : plan_(plan), lanes_(plan.links.size()), generations_(plan.generations.size()) {}

  void check() {
    std::int64_t latest = 0;
    for (const TaskSpec& task : plan_.tasks) latest = std::max(latest, task.window.step);
    const std::int64_t cycles = 2 + latest / plan_.period;  // then it repeats itself
    for (std::int64_t cycle = 0; cycle < cycles; ++cycle) {
      std::fill(generations_.begin(), generations_.end(), Window{});
      for (std::size_t at = 0; at < plan_.tasks.size(); ++at) check_task(at, cycle);
    }
  }

 private:
  void check_task(std::size_t at, std::int64_t cycle) {
    const TaskSpec& task = plan_.tasks[at];
    const GenerationSpec& spec = plan_.generations[static_cast<std::size_t>(task.generation)];
    Window& of_generation = generations_[static_cast<std::size_t>(task.generation)];
    Window& of_lane = lanes_[static_cast<std::size_t>(task.link)];
    const std::int64_t shift = cycle * plan_.period;
    Window leaves{task.window.step + shift, task.window.stage};
    leaves = std::max(leaves, of_generation);
    if (plan_.links[static_cast<std::size_t>(task.link)].plan_order) {
      leaves = std::max(leaves, of_lane);
      of_lane = leaves;
    }
    of_generation = leaves;
    Window deadline{spec.apply_step + shift, Stage::kBackward};
    if (spec.gated) deadline = {deadline.step + 1, Stage::kForward};
    if (leaves > deadline) {
      break_rule("a generation can leave before it is applied",
                 "task " + text(at) + " of generation " + text(task.generation) +
                     " cannot leave before the " + text_of(leaves) +
                     " (its window, or that of a task listed before it), it is needed in the " +
                     text_of(deadline));
    }
  }

  const Plan& plan_;
  std::vector<Window> lanes_;
  std::vector<Window> generations_;
};

}  // namespace

void check_timing(const Plan& plan) {
  check_generations(plan);
  check_boundaries(plan);
  check_tasks(plan);
  check_buffers(plan, Schedule(plan));
  Deadlines(plan).check();
}

}  // namespace deft
