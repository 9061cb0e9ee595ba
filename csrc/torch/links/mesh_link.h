// Parts of buffers, from rank to rank: a connection between any two, in both directions at once.
//
// Gloo's own exchanges do not always send and receive at once: there a rank says that it is ready
// to receive only after it has begun to send, over the same connection, and what it says waits
// until all has been sent. Here all ranks say so first. Messages meet by their tags, so ranks may
// send them in any order, and any number is on its way at the same time.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>

#include "core/link/link.h"
#include "core/link/worker_pool.h"

namespace c10d {
class Backend;
}

namespace deft {

// Carries all-gathers and all-to-alls of host memory, and refuses all else. After a failure every
// message fails, with the first reason, and the connections are closed: that is how the ranks that
// wait for this one learn of it.
class MeshLink final : public Link {
 public:
  // Takes the group over: its caller keeps no reference. `path` stands in messages.
  MeshLink(c10::intrusive_ptr<c10d::Backend> group, std::string path);

  void send(Message message, Completion done) override;
  // Waits until nothing is in flight; false when the time is over before that.
  [[nodiscard]] bool wait_idle(std::chrono::microseconds timeout) const;

 private:
  class Carrier;

  std::shared_ptr<Carrier> carrier_;  // shared with the messages in flight
  WorkerPool waiters_;
};

}  // namespace deft
