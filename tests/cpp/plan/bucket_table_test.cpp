#include "core/plan/bucket_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/plan/plan.h"
#include "support.h"

namespace deft {
namespace {

std::vector<std::int32_t> list(std::span<const std::int32_t> values) {
  return {values.begin(), values.end()};
}

TEST(BucketTable, CutsABigSlotAndSharesABucketAmongSmallOnes) {
  Plan plan;
  plan.arenas = {{DType::kFloat32, 64}};
  plan.slots = {{0, 0, 40}, {0, 40, 48}, {0, 48, 60}};  // the last one is padded to 64
  plan.buckets = {{0, 0, 16}, {0, 16, 32}, {0, 32, 64}};
  const BucketTable table(plan);
  EXPECT_EQ(list(table.buckets_of(0)), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(list(table.buckets_of(1)), (std::vector<std::int32_t>{2}));
  EXPECT_EQ(list(table.slots_of(0)), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(list(table.slots_of(2)), (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(BucketTable, ListsNeedNotBeSortedAndArenasDoNotMix) {
  Plan plan;
  plan.arenas = {{DType::kFloat32, 16}, {DType::kFloat16, 16}};
  plan.slots = {{1, 0, 16}, {0, 8, 16}, {0, 0, 8}};
  plan.buckets = {{0, 8, 16}, {1, 0, 16}, {0, 0, 8}};
  const BucketTable table(plan);
  EXPECT_EQ(list(table.buckets_of(0)), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(list(table.buckets_of(1)), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(list(table.buckets_of(2)), (std::vector<std::int32_t>{2}));
  EXPECT_EQ(list(table.slots_of(1)), (std::vector<std::int32_t>{0}));
}

TEST(BucketTable, EqualsTheDefinitionOnRandomPlans) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const Plan plan = test::random_plan(random);
    const BucketTable table(plan);
    for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
      for (std::size_t bucket = 0; bucket < plan.buckets.size(); ++bucket) {
        const SlotSpec& s = plan.slots[slot];
        const BucketSpec& b = plan.buckets[bucket];
        const bool overlap = s.arena == b.arena && s.begin < b.end && b.begin < s.end;
        const auto of_slot = list(table.buckets_of(static_cast<std::int32_t>(slot)));
        const auto of_bucket = list(table.slots_of(static_cast<std::int32_t>(bucket)));
        EXPECT_EQ(std::count(of_slot.begin(), of_slot.end(), bucket), overlap ? 1 : 0);
        EXPECT_EQ(std::count(of_bucket.begin(), of_bucket.end(), slot), overlap ? 1 : 0);
      }
    }
  }
}

}  // namespace
}  // namespace deft
