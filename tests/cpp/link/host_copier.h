// A device that is none, for tests of what is staged.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>

#include "core/link/staged_link.h"

namespace deft::testing_support {

// "Device" memory is host memory that only this touches.
class HostCopier : public DeviceCopier {
 public:
  std::shared_ptr<void> host_memory(std::int64_t bytes) override {
    ++buffers;
    return {::operator new(static_cast<std::size_t>(bytes)), [](void* p) { ::operator delete(p); }};
  }
  void to_host(void* host, const void* device, std::int64_t bytes,
               const ReadySignal* after) override {
    while (after != nullptr && !after->ready()) std::this_thread::yield();
    if (broken) throw std::runtime_error("no device");
    std::memcpy(host, device, static_cast<std::size_t>(bytes));
  }
  void to_device(void* device, const void* host, std::int64_t bytes) override {
    if (broken) throw std::runtime_error("no device");
    std::memcpy(device, host, static_cast<std::size_t>(bytes));
  }
  [[nodiscard]] std::shared_ptr<DeviceCopier> another() const override {
    return std::make_shared<HostCopier>();
  }

  std::atomic<int> buffers = 0;
  std::atomic<bool> broken = false;
};

}  // namespace deft::testing_support
