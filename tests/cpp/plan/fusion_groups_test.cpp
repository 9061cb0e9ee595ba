#include "core/plan/fusion_groups.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>

#include "core/plan/plan.h"

namespace deft {
namespace {

Plan plan_with(std::int32_t tasks, std::int32_t links, bool fusion) {
  Plan plan;
  for (std::int32_t link = 0; link < links; ++link) {
    LinkSpec spec;
    spec.name = "wire";
    spec.fusion = fusion;
    plan.links.push_back(spec);
  }
  for (std::int32_t task = 0; task < tasks; ++task) {
    TaskSpec spec;
    spec.link = task * task % links;
    plan.tasks.push_back(spec);
  }
  return plan;
}

TEST(FusionGroups, NeighboursOnALinkDifferAlsoBetweenCycles) {
  for (std::int32_t count = 1; count <= 100; ++count) {
    for (std::int32_t links = 1; links <= 2; ++links) {
      const Plan plan = plan_with(count, links, false);
      const std::vector<std::int32_t> groups = fusion_groups_of(plan);
      for (std::int32_t link = 0; link < links; ++link) {
        std::vector<std::int32_t> own;
        for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
          if (plan.tasks[task].link == link) {
            own.push_back(groups[task]);
          }
        }
        for (std::size_t first = 0; first < own.size(); ++first) {
          std::set<std::int32_t> together;
          std::size_t in_flight = 0;  // a task is never in flight twice
          for (; in_flight < own.size() && in_flight < kMostApart; ++in_flight) {
            together.insert(own[(first + in_flight) % own.size()]);
          }
          EXPECT_EQ(together.size(), in_flight) << count << " tasks, from " << first;
        }
      }
    }
  }
}

TEST(FusionGroups, WhatMayBeFusedHasNone) {
  for (const std::int32_t group : fusion_groups_of(plan_with(20, 1, true))) {
    EXPECT_EQ(group, 0);
  }
}

}  // namespace
}  // namespace deft
