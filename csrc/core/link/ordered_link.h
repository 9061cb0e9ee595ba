// A link whose messages travel in the order in which they are handed over.
//
// Horovod runs what it finds waiting in the order in which it first met the names (the bits of its
// response cache), not in that of handing over. So this link holds a message back that would
// overtake one in flight, until that one has arrived. One with a new name comes last by itself.
#pragma once

#include <memory>

#include "core/link/link.h"

namespace deft {

class OrderedLink : public Link {
 public:
  explicit OrderedLink(std::shared_ptr<Link> inner);
  // Messages that do not ask for order pass at once. One that fails takes those held back with it.
  void send(Message message, Completion done) override;
  [[nodiscard]] bool matches_by_order() const override;
  [[nodiscard]] bool takes_any_integers() const override;

 private:
  class State;

  std::shared_ptr<State> state_;  // shared with completions, which may live longer
};

}  // namespace deft
