#include "core/link/ordered_link.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace deft {

class OrderedLink::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(std::shared_ptr<Link> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] bool matches_by_order() const { return inner_->matches_by_order(); }

  [[nodiscard]] bool takes_any_integers() const { return inner_->takes_any_integers(); }

  void send(Message message, Completion done) {
    if (!message.in_order) {
      inner_->send(std::move(message), std::move(done));
      return;
    }
    std::unique_lock lock(mutex_);
    waiting_.push_back({std::move(message), std::move(done)});
    drain(lock);
  }

 private:
  struct Waiting {
    Message message;
    Completion done;
  };

  // Its place in the order in which names were first seen.
  std::int64_t place_of(const std::string& name) {
    return places_.try_emplace(name, static_cast<std::int64_t>(places_.size())).first->second;
  }

  [[nodiscard]] bool would_overtake(std::int64_t place) const {
    return std::any_of(in_flight_.begin(), in_flight_.end(),
                       [place](std::int64_t other) { return place <= other; });
  }

  // The single-drainer rule, as in Lane: order on the inner link without a lock around its send.
  void drain(std::unique_lock<std::mutex>& lock) {
    if (is_draining_) return;
    is_draining_ = true;
    while (!waiting_.empty()) {
      const std::int64_t place = place_of(waiting_.front().message.name);
      if (would_overtake(place)) break;
      in_flight_.push_back(place);
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      inner_->send(std::move(next.message),
                   [self = shared_from_this(), place,
                    done = std::move(next.done)](const LinkStatus& status) {
                     self->finish(place, status);
                     done(status);
                   });
      lock.lock();
    }
    is_draining_ = false;
  }

  void finish(std::int64_t place, const LinkStatus& status) {
    std::unique_lock lock(mutex_);
    in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), place));
    if (status.ok()) {
      drain(lock);
      return;
    }
    const std::deque<Waiting> lost = std::exchange(waiting_, {});
    lock.unlock();
    for (const Waiting& waiting : lost) waiting.done(status);
  }

  const std::shared_ptr<Link> inner_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::int64_t> places_;
  std::vector<std::int64_t> in_flight_;
  std::deque<Waiting> waiting_;
  bool is_draining_ = false;
};

OrderedLink::OrderedLink(std::shared_ptr<Link> inner)
    : state_(std::make_shared<State>(std::move(inner))) {}

void OrderedLink::send(Message message, Completion done) {
  state_->send(std::move(message), std::move(done));
}

bool OrderedLink::matches_by_order() const { return state_->matches_by_order(); }

bool OrderedLink::takes_any_integers() const { return state_->takes_any_integers(); }

}  // namespace deft
