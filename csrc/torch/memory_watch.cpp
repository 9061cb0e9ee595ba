#include "torch/memory_watch.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace deft {

namespace {

std::unique_ptr<at::ObserverContext> before_operation(const at::RecordFunction& operation);

// Observers of RecordFunction are plain functions, so all watches of a thread share one.
class Watches {
 public:
  static Watches& of_this_thread() {
    static thread_local Watches watches;
    return watches;
  }

  void add(std::weak_ptr<MemoryWatch> watch) {
    watches_.push_back(std::move(watch));
    if (!observer_.has_value()) {
      observer_ = at::addThreadLocalCallback(at::RecordFunctionCallback(before_operation)
                                                 .needsInputs(true)
                                                 .scopes({at::RecordScope::FUNCTION}));
    }
  }

  // Those that have ended, here or on another thread.
  void forget_ended() {
    const auto ended = [](const std::weak_ptr<MemoryWatch>& entry) {
      const auto watch = entry.lock();
      return watch == nullptr || !watch->watching();
    };
    watches_.erase(std::remove_if(watches_.begin(), watches_.end(), ended), watches_.end());
    if (watches_.empty() && observer_.has_value()) {
      at::removeCallback(*observer_);
      observer_.reset();
    }
  }

  [[nodiscard]] std::shared_ptr<MemoryWatch> concerned(
      c10::ArrayRef<const c10::IValue> inputs) const {
    for (const auto& entry : watches_) {
      auto watch = entry.lock();
      if (watch != nullptr && watch->concerned(inputs)) return watch;
    }
    return nullptr;
  }

 private:
  std::vector<std::weak_ptr<MemoryWatch>> watches_;
  std::optional<at::CallbackHandle> observer_;
};

std::unique_ptr<at::ObserverContext> before_operation(const at::RecordFunction& operation) {
  Watches& watches = Watches::of_this_thread();
  while (const auto watch = watches.concerned(operation.inputs())) watch->tell();
  return nullptr;
}

}  // namespace

MemoryWatch::MemoryWatch(std::function<void()> on_use) : on_use_(std::move(on_use)) {}

std::shared_ptr<MemoryWatch> MemoryWatch::create(std::function<void()> on_use) {
  return std::shared_ptr<MemoryWatch>(new MemoryWatch(std::move(on_use)));
}

void MemoryWatch::begin(const std::vector<at::Tensor>& tensors) {
  end();
  {
    const std::lock_guard lock(mutex_);
    watched_.clear();
    for (const at::Tensor& tensor : tensors) {
      watched_.insert(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
    }
    watched_.erase(nullptr);  // a tensor without storage, as a sparse one
    watching_ = !watched_.empty();
  }
  if (watching()) Watches::of_this_thread().add(weak_from_this());
}

void MemoryWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    if (!watching_) return;
    watching_ = false;
  }
  Watches::of_this_thread().forget_ended();
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
