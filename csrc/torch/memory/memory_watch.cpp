#include "torch/libtorch.h"

#include "torch/memory/memory_watch.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace deft {

namespace {

// The watches that were begun on this thread. Some of them may have ended.
std::vector<std::weak_ptr<MemoryWatch>>& watches_of_this_thread() {
  static thread_local std::vector<std::weak_ptr<MemoryWatch>> watches;
  return watches;
}

void forget_ended() {
  auto& watches = watches_of_this_thread();
  const auto ended = [](const std::weak_ptr<MemoryWatch>& entry) {
    const auto watch = entry.lock();
    return watch == nullptr || !watch->watching();
  };
  watches.erase(std::remove_if(watches.begin(), watches.end(), ended), watches.end());
}

std::shared_ptr<MemoryWatch> first_concerned(c10::ArrayRef<const c10::IValue> inputs) {
  for (const auto& entry : watches_of_this_thread()) {
    auto watch = entry.lock();
    if (watch != nullptr && watch->concerned(inputs)) return watch;
  }
  return nullptr;
}

std::unique_ptr<at::ObserverContext> before_operation(const at::RecordFunction& operation) {
  while (const auto watch = first_concerned(operation.inputs())) watch->tell();
  return nullptr;
}

// Observers of RecordFunction are plain functions, so all watches share one. It is a global one:
// autograd restores those of a thread around each node, whatever was done to them inside.
class UseObserver {
 public:
  static UseObserver& shared() {
    static UseObserver observer;
    return observer;
  }

  void need() {
    const std::lock_guard lock(mutex_);
    if (++needed_ > 1) return;
    if (handle_.has_value()) {
      at::reenableCallback(*handle_);
    } else {
      handle_ = at::addGlobalCallback(at::RecordFunctionCallback(before_operation)
                                          .needsInputs(true)
                                          .scopes({at::RecordScope::FUNCTION}));
    }
  }

  void need_no_longer() {
    const std::lock_guard lock(mutex_);
    if (--needed_ == 0 && handle_.has_value()) at::disableCallback(*handle_);
  }

 private:
  std::mutex mutex_;
  int needed_ = 0;
  std::optional<at::CallbackHandle> handle_;
};

}  // namespace

MemoryWatch::MemoryWatch(std::function<void()> on_use) : on_use_(std::move(on_use)) {}

MemoryWatch::~MemoryWatch() { end(); }

std::shared_ptr<MemoryWatch> MemoryWatch::create(std::function<void()> on_use) {
  return std::shared_ptr<MemoryWatch>(new MemoryWatch(std::move(on_use)));
}

void MemoryWatch::begin(const std::vector<at::Tensor>& tensors) {
  end();
  forget_ended();
  {
    const std::lock_guard lock(mutex_);
    watched_.clear();
    for (const at::Tensor& tensor : tensors) {
      watched_.insert(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
    }
    watched_.erase(nullptr);  // a tensor without storage, as a sparse one
    watching_ = !watched_.empty();
  }
  if (!watching()) return;
  watches_of_this_thread().push_back(weak_from_this());
  UseObserver::shared().need();
}

void MemoryWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    if (!watching_) return;
    watching_ = false;
  }
  UseObserver::shared().need_no_longer();
}

bool MemoryWatch::watching() const {
  const std::lock_guard lock(mutex_);
  return watching_;
}

bool MemoryWatch::concerned(c10::ArrayRef<const c10::IValue> inputs) const {
  const std::lock_guard lock(mutex_);
  if (!watching_) return false;
  const auto is_watched = [this](const at::Tensor& tensor) {
    if (!tensor.defined()) return false;
    const auto& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
    return watched_.count(storage.unsafeGetStorageImpl()) > 0;
  };
  return std::any_of(inputs.begin(), inputs.end(), [&](const c10::IValue& input) {
    if (input.isTensor()) return is_watched(input.toTensor());
    if (!input.isTensorList()) return false;
    const auto list = input.toTensorList();
    return std::any_of(list.begin(), list.end(), is_watched);
  });
}

void MemoryWatch::tell() {
  end();
  on_use_();
}

}  // namespace deft
