// Tells of the first operation that takes the memory of certain tensors, before it runs: reading,
// writing, or making a view. Torch's dispatcher announces every operation to the observers of
// RecordFunction; what never comes there (numpy, compiled code, pickling) is not told.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace deft {

class MemoryWatch : public std::enable_shared_from_this<MemoryWatch> {
 public:
  // `on_use` runs on the thread of the operation, with or without the GIL, and must not throw.
  static std::shared_ptr<MemoryWatch> create(std::function<void()> on_use);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // Watches the calling thread, until it has told once or is ended.
  void begin(const std::vector<at::Tensor>& tensors);
  void end();

  [[nodiscard]] bool watching() const;
  [[nodiscard]] bool concerned(c10::ArrayRef<const c10::IValue> inputs) const;
  void tell();

 private:
  explicit MemoryWatch(std::function<void()> on_use);

  const std::function<void()> on_use_;
  mutable std::mutex mutex_;
  bool watching_ = false;
  std::unordered_set<const c10::StorageImpl*> watched_;
};

}  // namespace deft
