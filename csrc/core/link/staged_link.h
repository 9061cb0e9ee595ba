// A link that moves a device's messages by way of host memory, for links that read only that.
//
// A message waits for its bytes and is copied out by one thread, travels, and is copied back by
// another, so that both copies of one message overlap the network time of its neighbours.
#pragma once

#include <cstdint>
#include <memory>

#include "core/link/link.h"
#include "core/link/serial_worker.h"

namespace deft {

// Calls block until the bytes are there, and throw std::exception when they cannot be. One thread
// at a time uses each of to_host and to_device.
class DeviceCopier {
 public:
  virtual ~DeviceCopier() = default;
  // Memory that a device can copy from and to without another copy (pinned).
  virtual std::shared_ptr<void> host_memory(std::int64_t bytes) = 0;
  // after: what has to be done on the device first; null: nothing.
  virtual void to_host(void* host, const void* device, std::int64_t bytes,
                       const ReadySignal* after) = 0;
  virtual void to_device(void* device, const void* host, std::int64_t bytes) = 0;
};

class StagedLink : public Link {
 public:
  StagedLink(std::shared_ptr<Link> inner, std::shared_ptr<DeviceCopier> copier);
  // Messages reach the inner link in the order in which they were handed over, those of host memory
  // too.
  void send(Message message, Completion done) override;
  [[nodiscard]] bool matches_by_order() const override;
  [[nodiscard]] bool takes_any_integers() const override;

 private:
  class Carrier;

  std::shared_ptr<Carrier> carrier_;  // shared with messages in flight, which may live longer
  SerialWorker out_;
};

}  // namespace deft
