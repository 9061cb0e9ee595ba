#include "torch/libtorch.h"

#include "torch/backward_watch.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace deft {

namespace {

// Observers of RecordFunction are plain functions, so all watches share one and are found here.
class Watches {
 public:
  static Watches& all() {
    static Watches watches;
    return watches;
  }

  void add(const std::shared_ptr<BackwardWatch>& watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watches_.push_back({watch.get(), watch});
    if (!observer_.has_value()) {
      observer_ = at::addGlobalCallback(
          at::RecordFunctionCallback(before_node).scopes({at::RecordScope::BACKWARD_FUNCTION}));
    }
  }

  void remove(const BackwardWatch* watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto same = [watch](const Entry& entry) { return entry.address == watch; };
    watches_.erase(std::remove_if(watches_.begin(), watches_.end(), same), watches_.end());
    if (watches_.empty() && observer_.has_value()) {
      at::removeCallback(*observer_);
      observer_.reset();
    }
  }

  void listen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (observer_.has_value()) {
      at::reenableCallback(*observer_);
    }
  }

 private:
  struct Entry {
    const BackwardWatch* address;  // known even while it is being destroyed
    std::weak_ptr<BackwardWatch> watch;
  };

  static std::unique_ptr<at::ObserverContext> before_node(const at::RecordFunction& /*node*/) {
    const int pass = torch::autograd::get_current_graph_task_id();
    if (pass >= 0) {  // else the node runs outside a backward pass
      all().on_node(pass);
    }
    return nullptr;
  }

  void on_node(int pass) {
    std::vector<std::shared_ptr<BackwardWatch>> watches;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!observer_.has_value() || pass <= last_pass_) {
        return;
      }
      last_pass_ = pass;  // they are numbered in the order in which they begin
      at::disableCallback(*observer_);
      for (const Entry& entry : watches_) {
        if (auto alive = entry.watch.lock()) {
          watches.push_back(std::move(alive));
        }
      }
    }
    torch::autograd::Engine::get_default_engine().queue_callback([] { all().listen(); });
    for (const auto& watch : watches) {
      watch->begin();
    }
  }

  std::mutex mutex_;
  std::vector<Entry> watches_;
  std::optional<at::CallbackHandle> observer_;
  int last_pass_ = -1;
};

}  // namespace

BackwardWatch::BackwardWatch(std::function<void()> on_begin) : on_begin_(std::move(on_begin)) {}

std::shared_ptr<BackwardWatch> BackwardWatch::attach(std::function<void()> on_begin) {
  std::shared_ptr<BackwardWatch> watch(new BackwardWatch(std::move(on_begin)));
  Watches::all().add(watch);
  return watch;
}

BackwardWatch::~BackwardWatch() { detach(); }

void BackwardWatch::detach() { Watches::all().remove(this); }

void BackwardWatch::listen() { Watches::all().listen(); }

}  // namespace deft
