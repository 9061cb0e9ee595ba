// Waiting, and what a wait that takes too long can tell.
#include <algorithm>
#include <utility>

#include "core/executor/executor.h"

namespace deft {
namespace {

// A deadline that far away must not overflow the clock.
constexpr std::chrono::microseconds kLongestWait = std::chrono::hours(24);

}  // namespace

WaitResult Executor::wait(const Due& due, std::chrono::microseconds timeout) {
  const Instance instance = instance_of(due);
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return states_.is_reduced(instance) || !failure_.ok(); };
  if (!changed_.wait_for(lock, std::min(timeout, kLongestWait), is_over)) {
    return WaitResult::kTimeout;
  }
  return states_.is_reduced(instance) ? WaitResult::kDone : WaitResult::kFailed;
}

WaitResult Executor::wait_idle(std::chrono::microseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto is_idle = [&] { return in_flight_ == 0; };
  if (!changed_.wait_for(lock, std::min(timeout, kLongestWait), is_idle)) {
    return WaitResult::kTimeout;
  }
  return failure_.ok() ? WaitResult::kDone : WaitResult::kFailed;
}

Pending Executor::inspect(const Due& due) const {
  const Instance instance = instance_of(due);
  const std::lock_guard lock(mutex_);
  Pending pending;
  pending.bucket = schedule_.bucket_of(instance);
  pending.first_step = schedule_.first_step(instance);
  pending.last_step = schedule_.last_step(instance);
  if (states_.is_reduced(instance)) {
    pending.progress = Progress::kReduced;
    return pending;
  }
  const GenerationState* state = states_.find(instance);
  const Progress progress = state == nullptr ? Progress::kCollecting : state->progress;
  pending.progress = failure_.ok() ? progress : Progress::kFailed;
  if (progress == Progress::kCollecting) {
    pending.missing_slots = missing_slots(pending.bucket);
  } else {
    const std::int64_t since = progress == Progress::kInFlight ? state->sent_us : state->ready_us;
    pending.waited_us = clock_us_() - since;
  }
  if (!failure_.ok()) {
    pending.held_by = failure_.reason;
  } else if (progress == Progress::kHeld) {
    pending.held_by = held_by(instance, *state);
  }
  return pending;
}

std::string Executor::held_by(Instance instance, const GenerationState& state) const {
  const std::int32_t task = schedule_.tasks_of(instance.generation)[state.tasks_done];
  const TaskInstance own{task, instance.cycle};
  const Lane& lane = lane_of(task);
  const std::optional<TaskInstance> head = lane.head();
  if (!lane.spec().plan_order || !head || *head == own) return held_at_head(own, lane);
  return "plan: after bucket " + std::to_string(schedule_.bucket_of(head->task)) +
         " in the order of link " + lane.spec().name + " (" + held_at_head(*head, lane) + ")";
}

std::string Executor::held_at_head(TaskInstance head, const Lane& lane) const {
  const Window window = schedule_.window(head);
  if (!is_open(window)) {
    return std::string("plan: window ") + name_of(window.stage) + " of step " +
           std::to_string(window.step) + " is not open";
  }
  if (!can_run(head)) {
    const Instance instance = schedule_.instance_of(head);
    const GenerationState* state = states_.find(instance);
    if (state != nullptr && state->progress != Progress::kCollecting) {
      return "plan: an earlier message of the same generation is not done";
    }
    const std::int32_t bucket = schedule_.bucket_of(instance);
    return "gradients: " + std::to_string(missing_slots(bucket).size()) + " of bucket " +
           std::to_string(bucket) + " are missing";
  }
  const std::string credit = lane.held_by_credit(schedule_.bytes_of_task(head.task));
  return credit.empty() ? "nothing: it is being sent" : credit;
}

std::string Executor::text_of(TaskInstance task) const {
  const TaskSpec& spec = plan_.tasks[static_cast<std::size_t>(task.task)];
  return std::string(name_of(spec.op)) + " of bucket " +
         std::to_string(schedule_.bucket_of(task.task)) + ", last gradient in step " +
         std::to_string(schedule_.last_step(schedule_.instance_of(task))) + ", on link " +
         plan_.links[static_cast<std::size_t>(spec.link)].name;
}

LinkStatus Executor::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::int64_t Executor::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

std::vector<LinkStats> Executor::link_stats() const {
  const std::lock_guard lock(mutex_);
  const std::int64_t now_us = clock_us_();
  std::vector<LinkStats> stats;
  stats.reserve(lanes_.size());
  for (const Lane& lane : lanes_) stats.push_back(lane.stats(now_us));
  return stats;
}

std::vector<MessageRecord> Executor::take_records() {
  const std::lock_guard lock(mutex_);
  return records_.take();
}

}  // namespace deft
