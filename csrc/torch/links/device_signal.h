// "The gradient is really in the bucket": a CUDA event on the stream that packed it.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "core/link/link.h"

namespace deft {

class DeviceSignal final : public ReadySignal {
 public:
  explicit DeviceSignal(const c10::Device& device);
  ~DeviceSignal() override;
  DeviceSignal(const DeviceSignal&) = delete;
  DeviceSignal& operator=(const DeviceSignal&) = delete;

  // Marks the work queued so far on the calling thread's current stream, and what was marked before
  // on another one: gradients of one bucket may be computed on several.
  void record();
  [[nodiscard]] bool ready() const override;
  [[nodiscard]] void* native_event() const override { return event_; }

 private:
  c10::Device device_;
  void* event_;
};

// Null for host memory, which is there as soon as the copy returns.
[[nodiscard]] std::shared_ptr<DeviceSignal> make_signal(const c10::Device& device);

}  // namespace deft
