// Messages over a process group of torch.distributed: beside Horovod's queue, or without Horovod.
//
// A process group matches messages by their order alone, so all ranks send the same messages, of
// the same sizes, in the same order on this link: the plan says so. Nothing else may use its
// group: that would disturb the order, and keep connections open that a failure has to close.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/link/link.h"
#include "core/link/serial_worker.h"

namespace c10d {
class Backend;
}

namespace deft {

struct C10dLinkOptions {
  std::string path;                 // for messages: "the second link (Gloo on eth1)"
  std::vector<std::int32_t> ranks;  // of the job, by their rank in the group
  Reduction reduction = Reduction::kAverage;
  // Applied as Horovod does it, so that on two ranks the results are equal bit for bit.
  double prescale = 1.0;
  double postscale = 1.0;
};

// After a failure every message fails, with the first reason, and the connections are closed: that
// is how the ranks that wait for this one learn of it.
class C10dLink final : public Link {
 public:
  // Takes the group over: its caller keeps no reference.
  C10dLink(c10::intrusive_ptr<c10d::Backend> group, C10dLinkOptions options);

  void send(Message message, Completion done) override;
  [[nodiscard]] bool matches_by_order() const override { return true; }
  // Waits until nothing is in flight; false when the time is over before that.
  [[nodiscard]] bool wait_idle(std::chrono::microseconds timeout) const;

 private:
  class Carrier;

  std::shared_ptr<Carrier> carrier_;  // shared with the messages in flight
  SerialWorker worker_;
};

}  // namespace deft
