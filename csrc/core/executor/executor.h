// The window executor: runs a Plan. It decides nothing; it keeps order, credit, windows and gates.
//
// Threads: gradients arrive from autograd threads, completions from the link's thread, waits from
// the training thread. One mutex guards the state; it is never held while a link or a completion
// is called (a completion may send the next message from inside the link's own thread).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/executor/generation_states.h"
#include "core/executor/lane.h"
#include "core/executor/record_ring.h"
#include "core/link/link.h"
#include "core/plan/bucket_table.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace deft {

// Where a gradient of the current step has to be written for one bucket.
struct PackTarget {
  std::int32_t bucket = 0;
  std::int32_t buffer = 0;  // which copy of the arena
  bool accumulate = false;  // add to what earlier steps of this generation left there
};

// What a caller waits for, in the words of an error message.
struct Pending {
  std::int32_t bucket = 0;
  std::int64_t first_step = 0;  // absolute
  std::int64_t last_step = 0;   // absolute
  Progress progress = Progress::kCollecting;
  std::string held_by;                      // kHeld: "plan: ..." or "credit: ..."; kFailed: why
  std::vector<std::int32_t> missing_slots;  // kCollecting: gradients that never came
  std::int64_t waited_us = 0;               // since it was sent, or since it became ready
};

enum class WaitResult : std::uint8_t { kDone, kTimeout, kFailed };

// A generation whose apply point is due.
struct Due {
  std::int32_t generation = 0;  // index into the plan
  std::int32_t bucket = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t apply_step = 0;
  std::int32_t buffer = 0;
  bool gated = false;
};

// Fills in pointers and name for a task; called without the lock.
using MessageFactory = std::function<Message(std::int32_t task, std::int32_t buffer)>;
// Monotonic microseconds. Called with the lock held: must not call the executor.
using ClockUs = std::function<std::int64_t()>;

// Owned by a shared_ptr: completions hold a weak reference, so that one that arrives after the
// executor is gone does nothing. A failing completion sends nothing (Horovod calls those with the
// lock of its queue held); a link or factory that throws fails the executor.
class Executor : public std::enable_shared_from_this<Executor> {
 public:
  // Throws PlanError for a plan that cannot run, ExecutorError without one link for each in it.
  Executor(Plan plan, std::vector<std::shared_ptr<Link>> links, MessageFactory factory,
           ClockUs clock_us);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // --- the training loop tells where it is -------------------------------------------------
  // The first gradient of the current step: opens its backward window. Idempotent in a step.
  // Throws ExecutorError when a buffer that this step needs has not been released.
  void begin_backward();
  // Where the gradient of `slot` in the current step belongs, one target per bucket it touches.
  // Valid until end_step; the buffers may be written once begin_backward has returned.
  [[nodiscard]] const std::vector<PackTarget>& targets(std::int32_t slot) const;
  // The gradient of `slot` of the current step has been packed. At most once a step; a second
  // call throws ExecutorError.
  void slot_ready(std::int32_t slot);
  [[nodiscard]] bool slot_collected(std::int32_t slot) const;
  // The generations that are due at the boundary of the current step and were not released, in
  // plan order. Every slot must have been collected.
  [[nodiscard]] std::vector<Due> due() const;
  // Closes the step: the next forward window opens, buffers of the next step are chosen. Every
  // slot must have been collected, every ungated due generation must be reduced.
  void end_step();
  // A due generation was applied: its buffer is free. Required before the buffer is needed again.
  void release(const Due& due);

  // --- leaving the cycle and coming back -----------------------------------------------------
  // No further step comes: generations that have begun are complete as they are, every window is
  // open. Between steps only. The caller can then wait for what is alive and release it.
  void flush();
  // Continues the cycle at an absolute step: all steps before it count as run, and all messages
  // that may leave by its forward window as arrived. Must be the first call.
  void resume_at(std::int64_t step);
  // Generations that have begun and were not released, in the order in which they are applied. The
  // last step of one that is not complete is the latest that it holds.
  [[nodiscard]] std::vector<Due> alive() const;

  // --- waiting ------------------------------------------------------------------------------
  // Returns when the generation is reduced, the executor failed, or the time is over. Callers wait
  // in short slices to stay interruptible.
  [[nodiscard]] WaitResult wait(const Due& due, std::chrono::microseconds timeout);
  // Returns when no message is in flight on any link: kFailed if the executor failed, else kDone.
  // Messages that the plan still holds do not count.
  [[nodiscard]] WaitResult wait_idle(std::chrono::microseconds timeout);
  [[nodiscard]] Pending inspect(const Due& due) const;

  // --- ends ---------------------------------------------------------------------------------
  // Nothing more is sent, and every wait returns kFailed with this reason. Idempotent.
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

 private:
  // A message in flight. The serial tells it from later ones that reuse its place.
  struct Flight {
    TaskInstance task;
    std::int64_t serial = -1;
    std::int64_t ready_us = 0;
    std::int64_t sent_us = 0;
  };
  struct FlightId {
    std::size_t place = 0;
    std::int64_t serial = 0;
  };

  // The state of a step.
  void choose_buffers(std::int64_t step);
  void check_slot(std::int32_t slot) const;
  void check_collected(const char* caller) const;
  bool finish_bucket(std::int32_t bucket);
  [[nodiscard]] Due due_of(Instance instance) const;
  [[nodiscard]] std::vector<std::int32_t> missing_slots(std::int32_t bucket) const;
  [[nodiscard]] Instance instance_of(const Due& due) const;

  // Leaving the cycle and coming back: resume.cpp.
  [[nodiscard]] bool is_open(Window window) const { return flushed_ || window <= window_; }
  [[nodiscard]] std::vector<Instance> begun(std::int64_t step) const;
  void skip_unbegun(Lane& lane) const;
  bool pass_sent(Lane& lane);

  // The state of a message.
  void make_ready(Instance instance, GenerationState& state, std::int64_t now_us);
  [[nodiscard]] bool can_run(TaskInstance task) const;
  [[nodiscard]] Lane& lane_of(std::int32_t task);
  [[nodiscard]] const Lane& lane_of(std::int32_t task) const;
  [[nodiscard]] std::optional<TaskInstance> next(Lane& lane);
  FlightId launch(Lane& lane, TaskInstance task);
  // Without the lock. Returns why the message could not be sent, or nothing.
  [[nodiscard]] std::string send(const Lane& lane, TaskInstance task, FlightId flight_id);
  [[nodiscard]] std::int64_t step_to_begin(TaskInstance task) const;
  // Takes the message out of flight; false when it is no longer there.
  bool land(FlightId flight_id, TaskInstance& task);
  void complete(FlightId flight_id, const LinkStatus& status);
  void drain(std::unique_lock<std::mutex>& lock, Lane& lane);
  void drain_all(std::unique_lock<std::mutex>& lock);
  void open_window(std::unique_lock<std::mutex>& lock, Window window);
  void fail_locked(const std::string& reason, Outcome outcome);

  // Texts.
  [[nodiscard]] std::string held_by(Instance instance, const GenerationState& state) const;
  [[nodiscard]] std::string held_at_head(TaskInstance head, const Lane& lane) const;
  [[nodiscard]] std::string text_of(TaskInstance task) const;

  // Fixed.
  const Plan plan_;
  const BucketTable table_;
  const Schedule schedule_;
  const MessageFactory factory_;
  const ClockUs clock_us_;
  std::vector<std::int32_t> slots_in_bucket_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // something was reduced, failed, or the last flight landed
  Window window_;                    // the current one: its step is the current step
  bool flushed_ = false;             // no step comes any more
  std::vector<Lane> lanes_;
  GenerationStates states_;
  std::vector<std::vector<PackTarget>> targets_;  // [slot]; written by end_step only
  std::vector<std::int64_t> collected_step_;      // [slot]: the last step it was collected in
  std::vector<std::int32_t> missing_;             // [bucket]: slots not collected in this step
  std::size_t uncollected_ = 0;                   // slots not collected in this step
  std::vector<Flight> flights_;
  std::vector<std::size_t> free_flights_;
  std::int64_t last_serial_ = 0;
  std::int64_t in_flight_ = 0;
  LinkStatus failure_;
  RecordRing records_;
};

}  // namespace deft
