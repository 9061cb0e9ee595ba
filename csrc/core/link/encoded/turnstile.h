// Lets sends of several threads pass one after another, in an order that all ranks share.
//
// A message of two stages closes it behind its first one, and opens it with its second: otherwise
// timing would decide which messages the second one comes between.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

namespace deft {

class Turnstile {
 public:
  using Send = std::function<void()>;

  // Those that come while it is closed wait, and pass in the order in which they came.
  void pass(Send send, bool closes);
  // Before those that wait.
  void open(Send send);

 private:
  struct Waiting {
    Send send;
    bool closes = false;
  };

  void drain(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::deque<Waiting> waiting_;
  bool is_closed_ = false;
  bool is_draining_ = false;
};

}  // namespace deft
