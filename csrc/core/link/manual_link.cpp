#include "core/link/manual_link.h"

#include <algorithm>
#include <cstddef>

#include "core/errors.h"

namespace deft {

void ManualLink::send(Message message, Completion done) {
  {
    const std::lock_guard lock(mutex_);
    ++sent_;
    if (!immediate_) {
      pending_.emplace_back(std::move(message), std::move(done));
      return;
    }
  }
  done(LinkStatus{});
}

std::vector<std::string> ManualLink::pending() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  names.reserve(pending_.size());
  for (const Entry& entry : pending_) names.push_back(entry.first.name);
  return names;
}

std::int64_t ManualLink::sent() const {
  const std::lock_guard lock(mutex_);
  return sent_;
}

ManualLink::Entry ManualLink::take(std::size_t at) {
  Entry entry = std::move(pending_[at]);
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(at));
  return entry;
}

void ManualLink::complete(const std::string& name, Outcome outcome, const std::string& reason) {
  std::unique_lock lock(mutex_);
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Entry& entry) { return entry.first.name == name; });
  if (found == pending_.end()) {
    throw ExecutorError("message " + name + " is not in flight on this link: complete one of " +
                        std::to_string(pending_.size()) + " that pending() names");
  }
  const Entry entry = take(static_cast<std::size_t>(found - pending_.begin()));
  lock.unlock();
  entry.second({outcome, reason});
}

bool ManualLink::complete_oldest(Outcome outcome, const std::string& reason) {
  std::unique_lock lock(mutex_);
  if (pending_.empty()) return false;
  const Entry entry = take(0);
  lock.unlock();
  entry.second({outcome, reason});
  return true;
}

}  // namespace deft
