// A link whose messages travel in the order in which they are handed over.
//
// Horovod runs what it finds waiting in the order in which it first met the names (the bits of its
// response cache), whatever was handed over first. So a message that would overtake one in flight
// is held back until that one has arrived; whoever is new comes last by itself.
#pragma once

#include <memory>

#include "core/link/link.h"

namespace deft {

class OrderedLink : public Link {
 public:
  explicit OrderedLink(std::shared_ptr<Link> inner);
  // Messages that do not ask for order pass at once. One that fails takes those held back with it.
  void send(Message message, Completion done) override;

 private:
  class State;

  std::shared_ptr<State> state_;  // shared with completions, which may live longer
};

}  // namespace deft
