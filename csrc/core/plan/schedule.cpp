#include "core/plan/schedule.h"

#include <algorithm>

namespace deft {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

// Where in the cycle a step lies that may belong to the cycle before.
std::int32_t in_cycle(std::int32_t step, std::int32_t period) {
  return step < 0 ? step + period : step;
}

}  // namespace

Schedule::Schedule(const Plan& plan)
    : plan_(&plan),
      collecting_(plan.buckets.size() * index(plan.period)),
      rank_(plan.generations.size()),
      generations_(plan.buckets.size()),
      tasks_(plan.generations.size()),
      lanes_(plan.links.size()),
      due_(index(plan.period)) {
  for (std::size_t at = 0; at < plan.generations.size(); ++at) {
    const GenerationSpec& spec = plan.generations[at];
    const auto generation = static_cast<std::int32_t>(at);
    for (std::int32_t step = spec.first_step; step <= spec.last_step; ++step) {
      const std::int32_t place = in_cycle(step, plan.period);
      collecting_[index(spec.bucket) * index(plan.period) + index(place)] = generation;
    }
    due_[index(spec.apply_step % plan.period)].push_back(generation);
  }
  for (std::size_t bucket = 0; bucket < plan.buckets.size(); ++bucket) {
    for (std::int32_t step = 0; step < plan.period; ++step) {
      const std::int32_t here = collecting_[bucket * index(plan.period) + index(step)];
      if (plan.generations[index(here)].last_step == step) {
        rank_[index(here)] = generations_[bucket]++;
      }
    }
  }
  for (std::size_t at = 0; at < plan.tasks.size(); ++at) {
    tasks_[index(plan.tasks[at].generation)].push_back(static_cast<std::int32_t>(at));
    lanes_[index(plan.tasks[at].link)].push_back(static_cast<std::int32_t>(at));
  }
}

const GenerationSpec& Schedule::generation(Instance instance) const {
  return plan_->generations[index(instance.generation)];
}

Instance Schedule::collecting(std::int32_t bucket, std::int64_t step) const {
  const std::int64_t period = plan_->period;
  const std::int32_t here = collecting_[index(bucket * period + step % period)];
  const bool begins_early = plan_->generations[index(here)].last_step < step % period;
  return {here, step / period + (begins_early ? 1 : 0)};
}

Instance Schedule::instance_of(TaskInstance task) const {
  return {plan_->tasks[index(task.task)].generation, task.cycle};
}

Instance Schedule::starting_at(std::int32_t generation, std::int64_t first_step) const {
  const std::int64_t shift = first_step - plan_->generations[index(generation)].first_step;
  return {generation, shift / plan_->period};
}

std::int64_t Schedule::first_step(Instance instance) const {
  return std::max<std::int64_t>(0,
                                instance.cycle * plan_->period + generation(instance).first_step);
}

std::int64_t Schedule::last_step(Instance instance) const {
  return instance.cycle * plan_->period + generation(instance).last_step;
}

std::int64_t Schedule::apply_step(Instance instance) const {
  return instance.cycle * plan_->period + generation(instance).apply_step;
}

Window Schedule::window(TaskInstance task) const {
  const Window& relative = plan_->tasks[index(task.task)].window;
  return {task.cycle * plan_->period + relative.step, relative.stage};
}

std::int64_t Schedule::number(Instance instance) const {
  const std::int64_t a_cycle = generations_[index(generation(instance).bucket)];
  return instance.cycle * a_cycle + rank_[index(instance.generation)];
}

std::int32_t Schedule::buffer(Instance instance) const {
  return static_cast<std::int32_t>(number(instance) % plan_->buffers);
}

std::span<const std::int32_t> Schedule::tasks_of(std::int32_t generation) const {
  return tasks_[index(generation)];
}

std::span<const std::int32_t> Schedule::tasks_on(std::int32_t link) const {
  return lanes_[index(link)];
}

std::vector<Instance> Schedule::due_at(std::int64_t step) const {
  std::vector<Instance> due;
  for (const std::int32_t generation : due_[index(step % plan_->period)]) {
    const std::int64_t shift = step - plan_->generations[index(generation)].apply_step;
    if (shift >= 0) due.push_back({generation, shift / plan_->period});
  }
  return due;
}

std::int32_t Schedule::bucket_of(std::int32_t task) const {
  return plan_->generations[index(plan_->tasks[index(task)].generation)].bucket;
}

std::int32_t Schedule::bucket_of(Instance instance) const { return generation(instance).bucket; }

std::int64_t Schedule::bytes_of_task(std::int32_t task) const {
  const BucketSpec& bucket = plan_->buckets[index(bucket_of(task))];
  return (bucket.end - bucket.begin) * bytes_of(plan_->arenas[index(bucket.arena)].wire);
}

std::int64_t Schedule::message_bytes_of_task(std::int32_t task) const {
  const BucketSpec& bucket = plan_->buckets[index(bucket_of(task))];
  return bucket.message_bytes > 0 ? bucket.message_bytes : bytes_of_task(task);
}

}  // namespace deft
