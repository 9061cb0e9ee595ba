// A link that carries some all-reduces in a wire format: every rank gathers the encoded values of
// all ranks, decodes them and sums them in the order of ranks. So all ranks get the same bits.
//
// One thread encodes and another decodes and sums, so that both overlap the network time of other
// messages. docs/internals/encoded-link.md
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/link/encoding.h"
#include "core/link/link.h"
#include "core/link/serial_worker.h"

namespace deft {

using Encodings = std::map<std::string, std::shared_ptr<Encoding>>;  // by the names of messages

struct EncodedLinkOptions {
  std::int32_t size = 1;  // ranks of the inner link
  float factor = 1.0F;    // of the sum: 1 / size for an average
};

class EncodedLink final : public Link {
 public:
  EncodedLink(std::shared_ptr<Link> inner, EncodedLinkOptions options, Encodings encodings);

  // Messages without an encoding travel as they are. All reach the inner link in the order in which
  // they were handed over.
  void send(Message message, Completion done) override;

 private:
  class Carrier;

  std::shared_ptr<Carrier> carrier_;  // shared with messages in flight, which may live longer
  SerialWorker out_;
};

}  // namespace deft
