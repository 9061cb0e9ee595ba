// Tells when a backward pass begins: before its first node runs, not when its first gradient is
// there. Autograd announces every node that it runs to the observers of RecordFunction; the first
// announcement is the beginning. The watch then stops listening until the pass is over, because
// each announcement costs time.
#pragma once

#include <functional>
#include <memory>

namespace deft {

class BackwardWatch : public std::enable_shared_from_this<BackwardWatch> {
 public:
  // `on_begin` runs on the thread that runs the first node, without the GIL.
  static std::shared_ptr<BackwardWatch> attach(std::function<void()> on_begin);
  ~BackwardWatch();
  BackwardWatch(const BackwardWatch&) = delete;
  BackwardWatch& operator=(const BackwardWatch&) = delete;

  void detach();  // idempotent
  void begin() const { on_begin_(); }

  // No pass is running: listen, even if the last one ended with an error.
  static void listen();

 private:
  explicit BackwardWatch(std::function<void()> on_begin);

  const std::function<void()> on_begin_;
};

}  // namespace deft
