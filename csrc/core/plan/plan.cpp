#include "core/plan/plan.h"

#include "core/errors.h"
#include "core/plan/rules.h"

namespace deft {

void break_rule(const std::string& rule, const std::string& observed) {
  throw PlanError("the plan cannot run: " + observed + ", but the rule is: " + rule +
                  ". Make a new plan, or repair the one that was loaded");
}

void Plan::validate() const {
  check_layout(*this);
  check_timing(*this);
}

}  // namespace deft
