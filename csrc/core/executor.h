// The window executor: runs a Plan. It decides nothing; it keeps order, credit, windows and gates.
//
// Threads: gradients arrive from autograd threads, completions from the link's thread, waits from
// the training thread. One mutex guards the state; it is never held while a link or a completion
// is called (a completion may send the next message from inside the link's own thread).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/bucket_table.h"
#include "core/link.h"
#include "core/plan.h"

namespace deft {

// Where a gradient of the current step has to be written for one bucket.
struct PackTarget {
  std::int32_t bucket = 0;
  std::int32_t buffer = 0;   // which copy of the arena
  bool accumulate = false;   // add to what earlier steps of this generation left there
};

enum class Phase : std::uint8_t { kCollecting, kHeld, kInFlight, kReduced, kFailed };

// One generation that somebody waits for, for error messages.
struct Pending {
  std::int32_t bucket = 0;
  std::int64_t first_step = 0;  // absolute
  std::int64_t last_step = 0;   // absolute
  Phase phase = Phase::kCollecting;
  std::string held_by;                     // kHeld: "window", "order", "credit" with detail
  std::vector<std::int32_t> missing_slots;  // kCollecting: gradients that never came
  std::int64_t waited_us = 0;              // since it was sent, or since it became ready
};

enum class WaitResult : std::uint8_t { kDone, kTimeout, kFailed };

// A generation whose apply point is due.
struct Due {
  std::int32_t generation = 0;  // index into the plan
  std::int32_t bucket = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int32_t buffer = 0;
  bool gated = false;
};

struct LinkStats {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  std::int64_t busy_us = 0;  // time with at least one message in flight
};

// One finished message, for cost fits and traces.
struct MessageRecord {
  std::int32_t task = 0;
  std::int64_t step = 0;  // absolute step of the window in which it could leave first
  std::int64_t bytes = 0;
  std::int64_t ready_us = 0;
  std::int64_t sent_us = 0;
  std::int64_t done_us = 0;
};

// Fills in pointers and name for a task; called without the lock.
using MessageFactory = std::function<Message(std::int32_t task, std::int32_t buffer)>;
using ClockUs = std::function<std::int64_t()>;  // monotonic microseconds

class Executor : public std::enable_shared_from_this<Executor> {
 public:
  Executor(Plan plan, std::vector<std::shared_ptr<Link>> links, MessageFactory factory,
           ClockUs clock_us);

  // --- the training loop tells where it is -------------------------------------------------
  // The first gradient of the current step: opens its backward window. Idempotent in a step.
  void begin_backward();
  // Where the gradient of `slot` in the current step belongs, one target per bucket it touches.
  [[nodiscard]] const std::vector<PackTarget>& targets(std::int32_t slot) const;
  // The gradient of `slot` of the current step has been packed. At most once a step; a second
  // call throws ExecutorError.
  void slot_ready(std::int32_t slot);
  [[nodiscard]] bool slot_collected(std::int32_t slot) const;
  // What is due at the boundary of the current step. Every slot must have been collected.
  [[nodiscard]] std::vector<Due> due() const;
  // Closes the step: the next forward window opens, buffers of the next step are chosen. Every
  // ungated due generation must be reduced.
  void end_step();
  // A due generation was applied: its buffer is free. Required before the buffer is needed again.
  void release(const Due& due);

  // --- waiting ------------------------------------------------------------------------------
  // Until the generation is reduced, the executor failed, or the time is over. Callers wait in
  // short slices to stay interruptible.
  [[nodiscard]] WaitResult wait(const Due& due, std::chrono::microseconds timeout);
  // Until no message is in flight on any link (finished or failed).
  [[nodiscard]] WaitResult wait_idle(std::chrono::microseconds timeout);
  [[nodiscard]] Pending inspect(const Due& due) const;

  // --- ends ---------------------------------------------------------------------------------
  // Nothing more is sent; whoever waits gets kFailed with this reason. Idempotent.
  void fail(const std::string& reason, Outcome outcome);
  [[nodiscard]] LinkStatus failure() const;  // ok() while nothing failed

  // --- numbers ------------------------------------------------------------------------------
  [[nodiscard]] std::int64_t step() const;
  [[nodiscard]] bool in_backward() const;
  [[nodiscard]] std::int64_t in_flight() const;  // messages
  [[nodiscard]] std::vector<LinkStats> link_stats() const;
  // Finished messages since the last call, oldest first; at most the latest 4,096 are kept.
  [[nodiscard]] std::vector<MessageRecord> take_records();
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const BucketTable& table() const { return table_; }
};

}  // namespace deft
