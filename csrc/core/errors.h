// The two ways in which the core refuses: a plan that cannot run, and a call that breaks its rules.
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

}  // namespace deft
