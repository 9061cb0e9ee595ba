// A link that moves a device's messages by way of host memory, for links that read only that.
//
// A message waits for its bytes and is copied out by one thread, travels, and is copied back by
// another, so that both copies of one message overlap the network time of its neighbours.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "core/link/buffer_pool.h"
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
  // Of the same device, for the threads of another link.
  [[nodiscard]] virtual std::shared_ptr<DeviceCopier> another() const = 0;
};

class StagedLink : public Link {
 public:
  // direct: the inner link takes messages of the device itself, so none is staged.
  StagedLink(std::shared_ptr<Link> inner, const std::shared_ptr<DeviceCopier>& copier,
             bool direct = false);

  // Another one with the same buffers, whose inner link is given. Messages of these names are
  // staged, even if it is direct.
  [[nodiscard]] std::shared_ptr<StagedLink> around(std::shared_ptr<Link> inner,
                                                   std::set<std::string> names) const;
  [[nodiscard]] const std::shared_ptr<Link>& inner() const;

  // Messages reach the inner link in the order in which they were handed over, those of host memory
  // too.
  void send(Message message, Completion done) override;
  void begin_step(std::int64_t step) override;
  [[nodiscard]] bool matches_by_order() const override;
  [[nodiscard]] bool takes_any_integers() const override;

 private:
  class Carrier;
  struct Parts {
    std::shared_ptr<Link> inner;
    std::shared_ptr<DeviceCopier> copier;
    std::shared_ptr<BufferPool> pool;
    bool direct = false;
    std::set<std::string> names;
  };

  explicit StagedLink(Parts parts);

  std::shared_ptr<Carrier> carrier_;  // shared with messages in flight, which may live longer
  SerialWorker out_;
};

}  // namespace deft
