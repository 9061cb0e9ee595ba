#include "core/executor/lane.h"

#include <utility>

namespace deft {

Lane::Lane(LinkSpec spec, std::shared_ptr<Link> link, std::span<const std::int32_t> tasks)
    : spec_(std::move(spec)), link_(std::move(link)), tasks_(tasks.begin(), tasks.end()) {}

std::optional<TaskInstance> Lane::head() const {
  if (tasks_.empty()) return std::nullopt;
  return TaskInstance{tasks_[position_], cycle_};
}

void Lane::advance() {
  if (++position_ < tasks_.size()) return;
  position_ = 0;
  ++cycle_;
}

void Lane::start_at(std::int64_t cycle) {
  position_ = 0;
  cycle_ = cycle;
}

void Lane::offer(TaskInstance task, Window window, bool is_open) {
  if (is_open) {
    open_.push_back(task);
  } else {
    closed_.push_back({task, window});
  }
}

void Lane::open_until(Window now) {
  std::size_t kept = 0;
  for (const Waiting& waiting : closed_) {
    if (waiting.window <= now) {
      open_.push_back(waiting.task);
    } else {
      closed_[kept++] = waiting;
    }
  }
  closed_.resize(kept);
}

std::optional<TaskInstance> Lane::take_offered() {
  if (taken_ == open_.size()) {
    open_.clear();
    taken_ = 0;
    return std::nullopt;
  }
  return open_[taken_++];
}

bool Lane::lacks_messages() const {
  return spec_.credit_messages > 0 && messages_in_flight_ >= spec_.credit_messages;
}

bool Lane::lacks_bytes(std::int64_t bytes) const {
  // A message larger than the whole credit travels alone.
  return spec_.credit_bytes > 0 && messages_in_flight_ > 0 &&
         bytes_in_flight_ + bytes > spec_.credit_bytes;
}

bool Lane::has_credit(std::int64_t bytes) const { return !lacks_messages() && !lacks_bytes(bytes); }

std::string Lane::held_by_credit(std::int64_t bytes) const {
  if (lacks_messages()) {
    return "credit: " + std::to_string(messages_in_flight_) + " of " +
           std::to_string(spec_.credit_messages) + " messages in flight on link " + spec_.name;
  }
  if (lacks_bytes(bytes)) {
    return "credit: " + std::to_string(bytes_in_flight_) + " of " +
           std::to_string(spec_.credit_bytes) + " bytes in flight on link " + spec_.name +
           ", the message has " + std::to_string(bytes);
  }
  return {};
}

void Lane::start(std::int64_t bytes, std::int64_t message_bytes, std::int64_t now_us) {
  if (messages_in_flight_ == 0) busy_since_us_ = now_us;
  ++messages_in_flight_;
  bytes_in_flight_ += bytes;
  ++stats_.messages;
  stats_.bytes += message_bytes;
}

void Lane::finish(std::int64_t bytes, std::int64_t now_us) {
  --messages_in_flight_;
  bytes_in_flight_ -= bytes;
  if (messages_in_flight_ == 0) stats_.busy_us += now_us - busy_since_us_;
}

LinkStats Lane::stats(std::int64_t now_us) const {
  LinkStats stats = stats_;
  if (messages_in_flight_ > 0) stats.busy_us += now_us - busy_since_us_;
  return stats;
}

}  // namespace deft
