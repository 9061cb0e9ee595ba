// Fusion groups: which messages of a link Horovod must not fuse with each other.
#pragma once

#include <cstdint>
#include <vector>

namespace deft {

struct Plan;

// Messages of a link that can be kept apart while all of them are in flight.
constexpr std::int32_t kMostApart = 8;

// Of each task; 0 where the link may fuse. Any kMostApart tasks that follow each other on a link
// have different ones, also where one cycle meets the next.
[[nodiscard]] std::vector<std::int32_t> fusion_groups_of(const Plan& plan);

}  // namespace deft
