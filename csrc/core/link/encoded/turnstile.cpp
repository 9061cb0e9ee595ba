#include "core/link/encoded/turnstile.h"

#include <utility>

namespace deft {

void Turnstile::pass(Send send, bool closes) {
  std::unique_lock lock(mutex_);
  waiting_.push_back({std::move(send), closes});
  drain(lock);
}

void Turnstile::open(Send send) {
  std::unique_lock lock(mutex_);
  waiting_.push_front({std::move(send), false});
  is_closed_ = false;
  drain(lock);
}

// The single-drainer rule, as in OrderedLink: order without a lock around the sends.
void Turnstile::drain(std::unique_lock<std::mutex>& lock) {
  if (is_draining_) return;
  is_draining_ = true;
  while (!is_closed_ && !waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    is_closed_ = next.closes;
    lock.unlock();
    next.send();
    next.send = nullptr;  // what it holds may call back here
    lock.lock();
  }
  is_draining_ = false;
}

}  // namespace deft
