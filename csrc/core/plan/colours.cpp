#include "core/plan/colours.h"

#include <cstddef>

#include "core/plan/plan.h"

namespace deft {

namespace {

// Twice as many as are needed in a row: the last tasks of a cycle take the upper half where too few
// are left for the lower one, which the next cycle begins with.
constexpr std::int32_t kColours = 2 * kMostApart;

std::int32_t colour_at(std::int32_t position, std::int32_t count) {
  const std::int32_t rest = count % kColours;
  const bool upper = rest < kMostApart && position >= count - rest;
  return position % kColours + (upper ? kMostApart : 0);
}

}  // namespace

std::vector<std::int32_t> colours_of(const Plan& plan) {
  std::vector<std::int32_t> counts(plan.links.size(), 0);
  for (const TaskSpec& task : plan.tasks) {
    ++counts[static_cast<std::size_t>(task.link)];
  }
  std::vector<std::int32_t> seen(plan.links.size(), 0);
  std::vector<std::int32_t> colours;
  colours.reserve(plan.tasks.size());
  for (const TaskSpec& task : plan.tasks) {
    const auto link = static_cast<std::size_t>(task.link);
    const std::int32_t position = seen[link]++;
    colours.push_back(plan.links[link].fusion ? 0 : colour_at(position, counts[link]));
  }
  return colours;
}

}  // namespace deft
