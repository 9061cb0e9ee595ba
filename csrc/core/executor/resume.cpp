// Leaving the cycle of a plan at any boundary, and coming back into its middle.
#include <algorithm>
#include <limits>
#include <string>

#include "core/errors.h"
#include "core/executor/executor.h"

namespace deft {

void Executor::flush() {
  std::unique_lock lock(mutex_);
  if (window_.stage == Stage::kBackward) {
    throw ExecutorError("flush was called inside the backward of step " +
                        std::to_string(window_.step) + ": end the step first");
  }
  flushed_ = true;
  for (const Instance instance : begun(window_.step)) {
    GenerationState* state = states_.find(instance);
    if (state != nullptr && state->progress == Progress::kCollecting) {
      make_ready(instance, *state, clock_us_());
    }
  }
  constexpr Window kEnd{std::numeric_limits<std::int64_t>::max(), Stage::kBackward};
  for (Lane& lane : lanes_) lane.open_until(kEnd);
  drain_all(lock);
}

// Generations that have taken in gradients before `step` and are applied at or after it.
std::vector<Instance> Executor::begun(std::int64_t step) const {
  std::vector<Instance> found;
  const std::int64_t period = plan_.period;
  for (std::size_t at = 0; at < plan_.generations.size(); ++at) {
    const GenerationSpec& spec = plan_.generations[at];
    const std::int64_t oldest = std::max<std::int64_t>(0, (step - spec.apply_step) / period);
    for (std::int64_t cycle = oldest; cycle * period + spec.first_step < step; ++cycle) {
      const Instance instance{static_cast<std::int32_t>(at), cycle};
      const bool has_begun = schedule_.first_step(instance) < step;  // not before step 0
      if (has_begun && schedule_.apply_step(instance) >= step) found.push_back(instance);
    }
  }
  return found;
}

// After a flush the order goes on without those that never began.
void Executor::skip_unbegun(Lane& lane) const {
  const std::int64_t last_cycle = window_.step / plan_.period + 1;  // some begin a cycle early
  for (auto head = lane.head(); head && head->cycle <= last_cycle; head = lane.head()) {
    if (states_.find(schedule_.instance_of(*head)) != nullptr) return;
    lane.advance();
  }
}

void Executor::resume_at(std::int64_t step) {
  std::unique_lock lock(mutex_);
  window_ = {step, Stage::kForward};
  const auto instances = begun(step);
  std::int64_t oldest = step / plan_.period;
  for (const Instance instance : instances) {
    states_.begin(instance);
    oldest = std::min(oldest, instance.cycle);
  }
  for (Lane& lane : lanes_) {
    if (!lane.spec().plan_order && !instances.empty()) {
      throw ExecutorError("link " + lane.spec().name +
                          " has no fixed order, so what has left it by step " +
                          std::to_string(step) + " is not known: resume plans with plan_order");
    }
    lane.start_at(oldest);
  }
  // A message may have waited for one on another lane, so go on until nothing moves.
  for (bool moved = true; moved;) {
    moved = false;
    for (Lane& lane : lanes_) moved = pass_sent(lane) || moved;
  }
  for (const Instance instance : instances) {
    GenerationState& state = *states_.find(instance);
    if (state.tasks_done == schedule_.tasks_of(instance.generation).size()) {
      state.progress = Progress::kReduced;
    } else if (schedule_.last_step(instance) < step) {
      make_ready(instance, state, clock_us_());
    }
  }
  choose_buffers(step);
  drain_all(lock);
}

// Moves over the messages that have left and arrived by now. True if there was one.
bool Executor::pass_sent(Lane& lane) {
  bool moved = false;
  for (auto head = lane.head(); head; head = lane.head()) {
    const Instance instance = schedule_.instance_of(*head);
    if (schedule_.last_step(instance) >= window_.step || schedule_.window(*head) > window_) break;
    GenerationState* state = states_.find(instance);
    if (state != nullptr) {  // else it was applied long ago
      if (schedule_.tasks_of(instance.generation)[state->tasks_done] != head->task) break;
      ++state->tasks_done;
    }
    lane.advance();
    moved = true;
  }
  return moved;
}

std::vector<Due> Executor::alive() const {
  const std::lock_guard lock(mutex_);
  auto instances = begun(window_.step);
  std::stable_sort(instances.begin(), instances.end(), [&](Instance a, Instance b) {
    return schedule_.apply_step(a) < schedule_.apply_step(b);
  });
  std::vector<Due> alive;
  for (const Instance instance : instances) {
    if (states_.is_released(instance)) continue;
    Due due = due_of(instance);
    due.last_step = std::min(due.last_step, window_.step - 1);
    alive.push_back(due);
  }
  return alive;
}

}  // namespace deft
