#include "core/plan/fusion_groups.h"

#include <cstddef>

#include "core/plan/plan.h"

namespace deft {

namespace {

// Twice as many as are needed in a row: the last tasks of a cycle take the upper half where too few
// are left for the lower one, which the next cycle begins with.
constexpr std::int32_t kFusionGroups = 2 * kMostApart;

std::int32_t fusion_group_at(std::int32_t position, std::int32_t count) {
  const std::int32_t rest = count % kFusionGroups;
  const bool upper = rest < kMostApart && position >= count - rest;
  return position % kFusionGroups + (upper ? kMostApart : 0);
}

}  // namespace

std::vector<std::int32_t> fusion_groups_of(const Plan& plan) {
  std::vector<std::int32_t> counts(plan.links.size(), 0);
  for (const TaskSpec& task : plan.tasks) {
    ++counts[static_cast<std::size_t>(task.link)];
  }
  std::vector<std::int32_t> seen(plan.links.size(), 0);
  std::vector<std::int32_t> groups;
  groups.reserve(plan.tasks.size());
  for (const TaskSpec& task : plan.tasks) {
    const auto link = static_cast<std::size_t>(task.link);
    const std::int32_t position = seen[link]++;
    groups.push_back(plan.links[link].fusion ? 0 : fusion_group_at(position, counts[link]));
  }
  return groups;
}

}  // namespace deft
