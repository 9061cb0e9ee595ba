#include "torch/backward_watch.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace deft {

namespace {

// Nodes that are running on this thread: more than one when a node starts a backward pass of its
// own, as reentrant checkpoints do.
thread_local int running_nodes = 0;

// Callbacks of RecordFunction are plain functions, so all watches share one and are found here.
class Watches {
 public:
  static Watches& all() {
    static Watches watches;
    return watches;
  }

  void add(const std::shared_ptr<BackwardWatch>& watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watches_.push_back({watch.get(), watch});
    if (!handle_.has_value()) {
      handle_ = at::addGlobalCallback(
          at::RecordFunctionCallback(before_node, after_node)
              .scopes({at::RecordScope::BACKWARD_FUNCTION}));
    }
  }

  void remove(const BackwardWatch* watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto same = [watch](const Entry& entry) { return entry.address == watch; };
    watches_.erase(std::remove_if(watches_.begin(), watches_.end(), same), watches_.end());
    if (watches_.empty() && handle_.has_value()) {
      at::removeCallback(*handle_);
      handle_.reset();
    }
  }

 private:
  struct Entry {
    const BackwardWatch* address;  // known even while it is being destroyed
    std::weak_ptr<BackwardWatch> watch;
  };

  static std::unique_ptr<at::ObserverContext> before_node(const at::RecordFunction& /*node*/) {
    if (running_nodes++ == 0) {
      all().on_outer_node(torch::autograd::get_current_graph_task_id());
    }
    return nullptr;
  }

  static void after_node(const at::RecordFunction& /*node*/, at::ObserverContext* /*context*/) {
    --running_nodes;
  }

  void on_outer_node(int graph_task) {
    std::vector<std::shared_ptr<BackwardWatch>> watches;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (graph_task <= last_graph_task_) {
        return;
      }
      last_graph_task_ = graph_task;  // they are numbered in the order in which they begin
      for (const Entry& entry : watches_) {
        if (auto alive = entry.watch.lock()) {
          watches.push_back(std::move(alive));
        }
      }
    }
    for (const auto& watch : watches) {
      watch->begin();
    }
  }

  std::mutex mutex_;
  std::vector<Entry> watches_;
  std::optional<at::CallbackHandle> handle_;
  int last_graph_task_ = -1;
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

}  // namespace deft
