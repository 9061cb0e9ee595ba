// The cyclic plan unrolled over absolute steps: pure arithmetic on the plan, no state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan.h"

namespace deft {

// One run of a generation: that of cycle `cycle`, whose steps are shifted by cycle * period.
struct Instance {
  std::int32_t generation = 0;
  std::int64_t cycle = 0;

  bool operator==(const Instance&) const = default;
};

// One message of one instance.
struct TaskInstance {
  std::int32_t task = 0;
  std::int64_t cycle = 0;

  bool operator==(const TaskInstance&) const = default;
};

class Schedule {
 public:
  // Keeps a pointer: the plan must be valid, must not change, and must live longer.
  explicit Schedule(const Plan& plan);

  // The instance that carries the gradients of `bucket` in an absolute step.
  [[nodiscard]] Instance collecting(std::int32_t bucket, std::int64_t step) const;
  [[nodiscard]] Instance instance_of(TaskInstance task) const;
  // The instance of `generation` whose first absolute step this is.
  [[nodiscard]] Instance starting_at(std::int32_t generation, std::int64_t first_step) const;

  // Never before step 0, where the training began.
  [[nodiscard]] std::int64_t first_step(Instance instance) const;
  [[nodiscard]] std::int64_t last_step(Instance instance) const;
  [[nodiscard]] std::int64_t apply_step(Instance instance) const;
  [[nodiscard]] Window window(TaskInstance task) const;

  // Counts the instances of the same bucket from 0 on, in the order of their steps.
  [[nodiscard]] std::int64_t number(Instance instance) const;
  [[nodiscard]] std::int32_t buffer(Instance instance) const;

  // The messages of a generation, in the order in which they run.
  [[nodiscard]] std::span<const std::int32_t> tasks_of(std::int32_t generation) const;
  // The messages of a link, in the order of the plan.
  [[nodiscard]] std::span<const std::int32_t> tasks_on(std::int32_t link) const;
  // Instances applied at the boundary of an absolute step, in the order of the plan.
  [[nodiscard]] std::vector<Instance> due_at(std::int64_t step) const;

  [[nodiscard]] std::int32_t bucket_of(std::int32_t task) const;
  [[nodiscard]] std::int32_t bucket_of(Instance instance) const;
  // Of its values: what credits count.
  [[nodiscard]] std::int64_t bytes_of_task(std::int32_t task) const;
  // As it travels.
  [[nodiscard]] std::int64_t message_bytes_of_task(std::int32_t task) const;

 private:
  [[nodiscard]] const GenerationSpec& generation(Instance instance) const;

  const Plan* plan_;
  std::vector<std::int32_t> collecting_;          // [bucket * period + step of the cycle]
  std::vector<std::int32_t> rank_;                // [generation]: position among its bucket's
  std::vector<std::int32_t> generations_;         // [bucket]: how many a cycle
  std::vector<std::vector<std::int32_t>> tasks_;  // [generation]
  std::vector<std::vector<std::int32_t>> lanes_;  // [link]
  std::vector<std::vector<std::int32_t>> due_;    // [step of the cycle]: generations
};

}  // namespace deft
