// The ways in which plain C++ refuses: a plan that cannot run, a call that breaks its rules, values
// that no wire format takes.
#pragma once

#include <stdexcept>

namespace deft {

// The plan breaks a rule; the text names the first one.
class PlanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The executor was called in a way that its contract forbids.
class ExecutorError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A message that cannot be encoded or decoded as asked.
class WireError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace deft
