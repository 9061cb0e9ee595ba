// A link that carries some all-reduces in a wire format. All ranks decode the same bytes and sum
// them in the order of ranks, so all get the same bits. Where an encoding says that a message is
// whole, its values travel as they are, together with what rounding has left. That is also how
// messages travel while a rank is missing, if the link calls the roll.
//
// One thread encodes and another decodes and sums, so that both overlap the network time of other
// messages. docs/internals/encoded-link.md
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/link/encoded/encoding.h"
#include "core/link/link.h"

namespace deft {

using Encodings = std::map<std::string, std::shared_ptr<Encoding>>;  // by the names of messages

struct EncodedLinkOptions {
  std::int32_t size = 1;  // ranks of the inner link
  std::int32_t rank = 0;
  float factor = 1.0F;  // of the sum: 1 / size for an average
  // Of the message that asks in each step whether all ranks take part. Empty: they do.
  std::string roll_call;
  // Carries what is encoded, and goes by tags. So the same names are encoded on all ranks. Null:
  // the inner link does.
  std::shared_ptr<Link> mesh;
  // As float32: of messages in host memory that travel over the mesh as they are. On two paths they
  // and what is encoded would overtake each other.
  Encodings exact;
};

class EncodedLink final : public Link {
 public:
  EncodedLink(std::shared_ptr<Link> inner, const EncodedLinkOptions& options, Encodings encodings);

  // Messages without an encoding travel as they are. All reach the inner link, or the mesh, in the
  // order in which they were handed over. Where that order matters on the inner link (in_order,
  // matches_by_order) none comes between the two stages of a message.
  void send(Message message, Completion done) override;
  void begin_step(std::int64_t step) override;
  [[nodiscard]] bool matches_by_order() const override;

 private:
  class Carrier;

  std::shared_ptr<Carrier> carrier_;  // shared with messages in flight, which may live longer
};

}  // namespace deft
