// How messages leave and land. The lock is never held while a link, a completion or the factory
// is called.
#include <exception>
#include <utility>

#include "core/executor/executor.h"

namespace deft {

void Executor::make_ready(Instance instance, GenerationState& state, std::int64_t now_us) {
  state.progress = Progress::kHeld;
  state.ready_us = now_us;
  const std::int32_t task = schedule_.tasks_of(instance.generation)[state.tasks_done];
  Lane& lane = lane_of(task);
  if (lane.spec().plan_order) return;
  const TaskInstance entry{task, instance.cycle};
  const Window window = schedule_.window(entry);
  lane.offer(entry, window, is_open(window));
}

Lane& Executor::lane_of(std::int32_t task) {
  return lanes_[static_cast<std::size_t>(plan_.tasks[static_cast<std::size_t>(task)].link)];
}

const Lane& Executor::lane_of(std::int32_t task) const {
  return lanes_[static_cast<std::size_t>(plan_.tasks[static_cast<std::size_t>(task)].link)];
}

// Its generation is complete, and so are the tasks of the generation before it.
bool Executor::can_run(TaskInstance task) const {
  const Instance instance = schedule_.instance_of(task);
  const GenerationState* state = states_.find(instance);
  return state != nullptr && state->progress == Progress::kHeld &&
         schedule_.tasks_of(instance.generation)[state->tasks_done] == task.task;
}

std::optional<TaskInstance> Executor::next(Lane& lane) {
  if (!lane.spec().plan_order) return lane.take_offered();
  if (flushed_) skip_unbegun(lane);
  const std::optional<TaskInstance> head = lane.head();
  if (!head || !can_run(*head) || !is_open(schedule_.window(*head)) ||
      !lane.has_credit(schedule_.bytes_of_task(head->task))) {
    return std::nullopt;
  }
  lane.advance();
  return head;
}

Executor::FlightId Executor::launch(Lane& lane, TaskInstance task) {
  GenerationState& state = *states_.find(schedule_.instance_of(task));
  const std::int64_t now_us = clock_us_();
  state.progress = Progress::kInFlight;
  state.sent_us = now_us;
  lane.start(schedule_.bytes_of_task(task.task), schedule_.message_bytes_of_task(task.task),
             now_us);
  ++in_flight_;
  if (free_flights_.empty()) {
    free_flights_.push_back(flights_.size());
    flights_.emplace_back();
  }
  const FlightId flight_id{free_flights_.back(), ++last_serial_};
  free_flights_.pop_back();
  flights_[flight_id.place] = {task, flight_id.serial, state.ready_us, now_us};
  return flight_id;
}

std::string Executor::send(const Lane& lane, TaskInstance task, FlightId flight_id) {
  try {
    const std::int32_t buffer = schedule_.buffer(schedule_.instance_of(task));
    Message message = factory_(task.task, buffer);
    message.step = step_to_begin(task);
    lane.link()->send(std::move(message),
                      [weak = weak_from_this(), flight_id](const LinkStatus& status) {
                        if (const auto self = weak.lock()) self->complete(flight_id, status);
                      });
    return {};
  } catch (const std::exception& error) {
    return std::string("could not be sent: ") + error.what();
  }
}

// What may leave in a forward leaves on every rank that has ended the step before, also where no
// backward follows.
std::int64_t Executor::step_to_begin(TaskInstance task) const {
  const Window window = schedule_.window(task);
  return window.stage == Stage::kBackward ? window.step : window.step - 1;
}

bool Executor::land(FlightId flight_id, TaskInstance& task) {
  Flight& flight = flights_[flight_id.place];
  // A link that completes twice must not give its credit back twice.
  if (flight.serial != flight_id.serial) return false;
  task = flight.task;
  flight.serial = -1;
  free_flights_.push_back(flight_id.place);
  const std::int64_t now_us = clock_us_();
  lane_of(task.task).finish(schedule_.bytes_of_task(task.task), now_us);
  records_.push({task.task, schedule_.window(task).step, schedule_.message_bytes_of_task(task.task),
                 flight.ready_us, flight.sent_us, now_us});
  if (--in_flight_ == 0) changed_.notify_all();
  return true;
}

void Executor::complete(FlightId flight_id, const LinkStatus& status) {
  std::unique_lock lock(mutex_);
  TaskInstance task;
  if (!land(flight_id, task)) return;
  if (!status.ok()) {
    fail_locked(text_of(task) + ": " + status.reason, status.outcome);
    return;
  }
  const Instance instance = schedule_.instance_of(task);
  GenerationState& state = *states_.find(instance);
  if (++state.tasks_done < schedule_.tasks_of(instance.generation).size()) {
    make_ready(instance, state, clock_us_());
  } else {
    state.progress = Progress::kReduced;
    changed_.notify_all();
  }
  drain_all(lock);
}

void Executor::drain(std::unique_lock<std::mutex>& lock, Lane& lane) {
  if (lane.is_draining) return;
  lane.is_draining = true;
  while (failure_.ok()) {
    const std::optional<TaskInstance> task = next(lane);
    if (!task) break;
    const FlightId flight_id = launch(lane, *task);
    lock.unlock();
    const std::string refusal = send(lane, *task, flight_id);
    lock.lock();
    TaskInstance landed;
    if (!refusal.empty() && land(flight_id, landed)) {
      fail_locked(text_of(landed) + " " + refusal, Outcome::kInvalid);
    }
  }
  lane.is_draining = false;
}

void Executor::drain_all(std::unique_lock<std::mutex>& lock) {
  for (Lane& lane : lanes_) drain(lock, lane);
}

void Executor::open_window(std::unique_lock<std::mutex>& lock, Window window) {
  window_ = window;
  for (Lane& lane : lanes_) lane.open_until(window);
  drain_all(lock);
}

void Executor::fail(const std::string& reason, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  fail_locked(reason, outcome);
}

void Executor::fail_locked(const std::string& reason, Outcome outcome) {
  if (!failure_.ok()) return;
  failure_ = {outcome == Outcome::kOk ? Outcome::kInvalid : outcome, reason};
  changed_.notify_all();
}

}  // namespace deft
