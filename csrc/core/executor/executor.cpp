// The steps of the training loop. Sending is in send.cpp, waiting in wait.cpp.
#include "core/executor/executor.h"

#include <algorithm>
#include <utility>

#include "core/errors.h"

namespace deft {
namespace {

Plan validated(Plan plan) {
  plan.validate();
  return plan;
}

std::string text_of_list(const std::vector<std::int32_t>& values) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t at = 0; at < std::min(values.size(), kShown); ++at) {
    text += (at > 0 ? ", " : "") + std::to_string(values[at]);
  }
  if (values.size() > kShown) text += " and " + std::to_string(values.size() - kShown) + " more";
  return text;
}

}  // namespace

Executor::Executor(Plan plan, std::vector<std::shared_ptr<Link>> links, MessageFactory factory,
                   ClockUs clock_us)
    : plan_(validated(std::move(plan))),
      table_(plan_),
      schedule_(plan_),
      factory_(std::move(factory)),
      clock_us_(std::move(clock_us)),
      states_(schedule_, plan_.buckets.size(), plan_.buffers),
      targets_(plan_.slots.size()),
      collected_step_(plan_.slots.size(), -1),
      uncollected_(plan_.slots.size()) {
  if (links.size() != plan_.links.size() ||
      std::find(links.begin(), links.end(), nullptr) != links.end()) {
    throw ExecutorError("the executor was given " + std::to_string(links.size()) +
                        " links (or one that is null), the plan names " +
                        std::to_string(plan_.links.size()) + ": pass one link for each, in order");
  }
  if (!factory_ || !clock_us_) {
    throw ExecutorError("the executor was given no message factory or no clock: pass both");
  }
  for (std::size_t link = 0; link < links.size(); ++link) {
    lanes_.emplace_back(plan_.links[link], std::move(links[link]),
                        schedule_.tasks_on(static_cast<std::int32_t>(link)));
  }
  for (std::size_t at = 0; at < plan_.slots.size(); ++at) {
    for (const std::int32_t bucket : table_.buckets_of(static_cast<std::int32_t>(at))) {
      targets_[at].push_back({bucket, 0, false});
    }
  }
  for (std::size_t at = 0; at < plan_.buckets.size(); ++at) {
    const auto slots = table_.slots_of(static_cast<std::int32_t>(at)).size();
    slots_in_bucket_.push_back(static_cast<std::int32_t>(slots));
  }
  missing_ = slots_in_bucket_;
  choose_buffers(0);
}

void Executor::choose_buffers(std::int64_t step) {
  for (std::vector<PackTarget>& targets : targets_) {
    for (PackTarget& target : targets) {
      const Instance instance = schedule_.collecting(target.bucket, step);
      target.buffer = schedule_.buffer(instance);
      target.accumulate = schedule_.first_step(instance) != step;
    }
  }
}

void Executor::begin_backward() {
  std::unique_lock lock(mutex_);
  if (window_.stage == Stage::kBackward) return;
  if (flushed_) {
    throw ExecutorError("begin_backward was called after flush: make a new executor");
  }
  if (weak_from_this().expired()) {
    throw ExecutorError("the executor is not owned by a shared_ptr, completions could not find it");
  }
  const auto buckets = static_cast<std::int32_t>(plan_.buckets.size());
  const auto starts = [&](Instance instance) {
    return schedule_.first_step(instance) == window_.step;
  };
  for (std::int32_t bucket = 0; bucket < buckets; ++bucket) {
    const Instance instance = schedule_.collecting(bucket, window_.step);
    if (!starts(instance) || states_.at_buffer_of(instance).released) continue;
    throw ExecutorError("buffer " + std::to_string(schedule_.buffer(instance)) + " of bucket " +
                        std::to_string(bucket) + " is needed by the backward of step " +
                        std::to_string(window_.step) +
                        " but holds a generation that was not released: apply and release what "
                        "is due before the next backward begins");
  }
  for (std::int32_t bucket = 0; bucket < buckets; ++bucket) {
    const Instance instance = schedule_.collecting(bucket, window_.step);
    if (starts(instance)) states_.begin(instance);
  }
  const std::int64_t step = window_.step;
  open_window(lock, {step, Stage::kBackward});
  lock.unlock();
  for (const Lane& lane : lanes_) lane.link()->begin_step(step);
}

void Executor::check_slot(std::int32_t slot) const {
  if (slot >= 0 && static_cast<std::size_t>(slot) < plan_.slots.size()) return;
  throw ExecutorError("slot " + std::to_string(slot) + " is not one of the plan's " +
                      std::to_string(plan_.slots.size()) + ": pass the index of a parameter");
}

const std::vector<PackTarget>& Executor::targets(std::int32_t slot) const {
  check_slot(slot);
  return targets_[static_cast<std::size_t>(slot)];
}

void Executor::slot_ready(std::int32_t slot) {
  check_slot(slot);
  std::unique_lock lock(mutex_);
  std::int64_t& collected_step = collected_step_[static_cast<std::size_t>(slot)];
  if (window_.stage != Stage::kBackward || collected_step == window_.step) {
    throw ExecutorError("slot " + std::to_string(slot) + " was reported ready in step " +
                        std::to_string(window_.step) +
                        (collected_step == window_.step
                             ? " twice: report every gradient once a step"
                             : " outside of its backward: call begin_backward first"));
  }
  collected_step = window_.step;
  --uncollected_;
  bool may_send = false;
  for (const std::int32_t bucket : table_.buckets_of(slot)) {
    if (--missing_[static_cast<std::size_t>(bucket)] == 0 && finish_bucket(bucket)) may_send = true;
  }
  if (may_send) drain_all(lock);
}

// All of this step's gradients of the bucket are there. True when its generation is complete.
bool Executor::finish_bucket(std::int32_t bucket) {
  const Instance instance = schedule_.collecting(bucket, window_.step);
  if (schedule_.last_step(instance) != window_.step) return false;
  make_ready(instance, *states_.find(instance), clock_us_());
  return true;
}

bool Executor::slot_collected(std::int32_t slot) const {
  check_slot(slot);
  const std::lock_guard lock(mutex_);
  return collected_step_[static_cast<std::size_t>(slot)] == window_.step;
}

std::vector<std::int32_t> Executor::missing_slots(std::int32_t bucket) const {
  std::vector<std::int32_t> missing;
  for (const std::int32_t slot : table_.slots_of(bucket)) {
    if (collected_step_[static_cast<std::size_t>(slot)] != window_.step) missing.push_back(slot);
  }
  return missing;
}

void Executor::check_collected(const char* caller) const {
  if (uncollected_ == 0) return;
  std::vector<std::int32_t> missing;
  for (std::size_t at = 0; at < collected_step_.size(); ++at) {
    if (collected_step_[at] != window_.step) missing.push_back(static_cast<std::int32_t>(at));
  }
  throw ExecutorError(std::string(caller) + " was called in step " + std::to_string(window_.step) +
                      " before all gradients were collected; missing are slots " +
                      text_of_list(missing) +
                      ": pack zeros for parameters without a gradient and report them ready");
}

std::vector<Due> Executor::due() const {
  const std::lock_guard lock(mutex_);
  check_collected("due");
  std::vector<Due> due;
  for (const Instance instance : schedule_.due_at(window_.step)) {
    if (!states_.is_released(instance)) due.push_back(due_of(instance));
  }
  return due;
}

Due Executor::due_of(Instance instance) const {
  Due due;
  due.generation = instance.generation;
  due.bucket = schedule_.bucket_of(instance);
  due.first_step = schedule_.first_step(instance);
  due.last_step = schedule_.last_step(instance);
  due.apply_step = schedule_.apply_step(instance);
  due.buffer = schedule_.buffer(instance);
  due.gated = plan_.generations[static_cast<std::size_t>(instance.generation)].gated;
  return due;
}

void Executor::end_step() {
  std::unique_lock lock(mutex_);
  check_collected("end_step");
  for (const Instance instance : schedule_.due_at(window_.step)) {
    const bool gated = plan_.generations[static_cast<std::size_t>(instance.generation)].gated;
    if (gated || states_.is_reduced(instance)) continue;
    throw ExecutorError("end_step was called in step " + std::to_string(window_.step) +
                        " while bucket " + std::to_string(schedule_.bucket_of(instance)) +
                        ", due at its boundary, is not reduced: wait for everything due first" +
                        (failure_.ok() ? "" : " (the executor failed: " + failure_.reason + ")"));
  }
  const std::int64_t next_step = window_.step + 1;
  missing_ = slots_in_bucket_;
  uncollected_ = plan_.slots.size();
  if (plan_.period > 1 || plan_.buffers > 1) choose_buffers(next_step);
  open_window(lock, {next_step, Stage::kForward});
}

Instance Executor::instance_of(const Due& due) const {
  const auto at = static_cast<std::size_t>(due.generation);
  if (due.generation >= 0 && at < plan_.generations.size()) {
    const Instance instance = schedule_.starting_at(due.generation, due.first_step);
    if (instance.cycle >= 0 && schedule_.first_step(instance) == due.first_step) return instance;
  }
  throw ExecutorError("generation " + std::to_string(due.generation) + " from step " +
                      std::to_string(due.first_step) +
                      " on is not one of the plan: pass what due() returned");
}

void Executor::release(const Due& due) {
  const Instance instance = instance_of(due);
  const std::lock_guard lock(mutex_);
  GenerationState* state = states_.find(instance);
  if (state == nullptr || state->released || state->progress != Progress::kReduced) {
    throw ExecutorError("bucket " + std::to_string(schedule_.bucket_of(instance)) + " of step " +
                        std::to_string(due.last_step) +
                        " was released while it is not reduced or a second time: wait for it, "
                        "apply it, release it once");
  }
  state->released = true;
}

std::int64_t Executor::step() const {
  const std::lock_guard lock(mutex_);
  return window_.step;
}

bool Executor::in_backward() const {
  const std::lock_guard lock(mutex_);
  return window_.stage == Stage::kBackward;
}

}  // namespace deft
