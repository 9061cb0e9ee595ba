#include "core/link/encoded/roll_call.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace deft {

namespace {

// Sums are modulo 256, so an element counts so many ranks at most.
constexpr std::int32_t kCounted = 255;
// Messages of a forward come after the backward of its step has been asked about.
constexpr std::size_t kRemembered = 4;

}  // namespace

RollCall::RollCall(std::shared_ptr<Link> link, std::string name, std::int32_t size,
                   std::int32_t rank)
    : link_(std::move(link)), name_(std::move(name)), size_(size), rank_(rank) {}

void RollCall::call(std::int64_t step) {
  std::unique_lock lock(mutex_);
  note(step);
  ask(lock);
}

void RollCall::pass(std::int64_t step, Job job) {
  std::unique_lock lock(mutex_);
  note(step);
  waiting_.push_back({step, std::move(job)});
  run_jobs();
  ask(lock);
}

void RollCall::note(std::int64_t step) {
  if (step <= latest_) return;
  if (latest_ < 0) oldest_ = step;
  latest_ = step;
  to_ask_.push_back(step);
}

void RollCall::ask(std::unique_lock<std::mutex>& lock) {
  if (is_asking_ || has_failed_ || to_ask_.empty()) return;
  is_asking_ = true;
  const std::int64_t step = to_ask_.front();
  to_ask_.pop_front();
  const Message question = message();
  lock.unlock();
  link_->send(question, [self = shared_from_this(), question, step](const LinkStatus& status) {
    self->answer(step, !status.ok() || self->is_everyone(question), !status.ok());
  });
}

void RollCall::answer(std::int64_t step, bool everyone, bool failed) {
  std::unique_lock lock(mutex_);
  answers_[step] = everyone;
  if (answers_.size() > kRemembered) {
    answers_.erase(answers_.begin());
    oldest_ = answers_.begin()->first;
  }
  is_asking_ = false;
  has_failed_ = has_failed_ || failed;
  run_jobs();
  ask(lock);
}

void RollCall::run_jobs() {
  while (!waiting_.empty()) {
    const Waiting& next = waiting_.front();
    const auto found = answers_.find(next.step);
    if (found == answers_.end() && next.step >= oldest_ && !has_failed_) return;
    next.job(found == answers_.end() || found->second);
    waiting_.pop_front();
  }
}

Message RollCall::message() const {
  const auto elements = static_cast<std::size_t>((size_ + kCounted - 1) / kCounted);
  const auto ones = std::make_shared<std::vector<std::uint8_t>>(elements);
  (*ones)[static_cast<std::size_t>(rank_ / kCounted)] = 1;
  Message message;
  message.name = name_;
  message.dtype = DType::kUInt8;
  message.input = message.output = ones->data();
  message.input_elements = message.output_elements = static_cast<std::int64_t>(elements);
  message.owner = ones;
  return message;
}

bool RollCall::is_everyone(const Message& answered) const {
  const auto* counts = static_cast<const std::uint8_t*>(answered.output);
  std::int32_t here = 0;
  for (std::int64_t i = 0; i < answered.output_elements; ++i) here += counts[i];
  return here == size_;
}

}  // namespace deft
