// What makes a plan runnable. Each function throws PlanError naming the first rule that is broken.
#pragma once

#include <string>

namespace deft {

struct Plan;

// Links, arenas, slots and buckets: ranges are sane and the buckets tile every arena.
void check_layout(const Plan& plan);

// Generations and tasks: every gradient travels, in time, in a buffer that is free. Expects a
// plan whose layout was checked.
void check_timing(const Plan& plan);

[[noreturn]] void break_rule(const std::string& rule, const std::string& observed);

}  // namespace deft
