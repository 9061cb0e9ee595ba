// Plans and executors for the tests: small, exact, and seeded where they are random.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/executor/executor.h"
#include "core/link/manual_link.h"
#include "core/plan/plan.h"

namespace deft::test {

constexpr std::int64_t kSlotElements = 8;  // of float32: the header and four elements of data
constexpr std::int64_t kBucketBytes = kSlotElements * 4;

// One arena, `count` slots, one bucket for each, one link; no generations, no tasks.
[[nodiscard]] Plan bare_plan(std::int32_t count);
// bare_plan, each bucket a generation a step, applied at once, one task each in bucket order.
[[nodiscard]] Plan synchronous_plan(std::int32_t count);
// Adds a generation and its only task; the task leaves in (last_step, backward). Returns the task.
TaskSpec& add_generation(Plan& plan, const GenerationSpec& generation, std::int32_t link = 0);
// A valid plan with merges, delays, gates, several links, several tasks and shared buckets.
[[nodiscard]] Plan random_plan(std::mt19937& random);

// Names a message "task@buffer".
[[nodiscard]] std::string message_name(std::int32_t task, std::int32_t buffer);

// An executor over one ManualLink for each link of the plan, with a clock that the test moves.
struct Bench {
  explicit Bench(Plan plan, bool immediate = false);

  // Collects every slot of the current step, in index order.
  void collect_all() const;
  // begin_backward and collect_all.
  void backward() const;
  // Completes everything in flight until nothing more leaves.
  void complete_all() const;
  // Releases what is due, expects it to be reduced; then ends the step.
  void finish_step() const;
  [[nodiscard]] Due due_of(std::int32_t bucket) const;

  std::vector<std::shared_ptr<ManualLink>> links;
  std::shared_ptr<std::atomic<std::int64_t>> now_us;
  std::shared_ptr<Executor> executor;
};

[[nodiscard]] std::shared_ptr<Executor> make_executor(
    Plan plan, std::vector<std::shared_ptr<Link>> links,
    std::shared_ptr<std::atomic<std::int64_t>> now_us);

}  // namespace deft::test
