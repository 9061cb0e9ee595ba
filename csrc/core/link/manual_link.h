// A link whose messages end when the caller says so: for tests and for diagnosis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/link/link.h"

namespace deft {

class ManualLink : public Link {
 public:
  // immediate: every message ends well inside send.
  explicit ManualLink(bool immediate = false) : immediate_(immediate) {}

  void send(Message message, Completion done) override;

  // Names of the messages in flight, in the order in which they were sent.
  [[nodiscard]] std::vector<std::string> pending() const;
  [[nodiscard]] std::int64_t sent() const;
  // Ends a message; throws ExecutorError when none of this name is in flight.
  void complete(const std::string& name, Outcome outcome = Outcome::kOk,
                const std::string& reason = {});
  // Ends the message that was sent first; false when none is in flight.
  bool complete_oldest(Outcome outcome = Outcome::kOk, const std::string& reason = {});

 private:
  using Entry = std::pair<Message, Completion>;

  Entry take(std::size_t at);

  const bool immediate_;
  mutable std::mutex mutex_;
  std::vector<Entry> pending_;
  std::int64_t sent_ = 0;
};

}  // namespace deft
