#include "core/executor/record_ring.h"

#include <gtest/gtest.h>

namespace deft {
namespace {

void push_steps(RecordRing& ring, std::int64_t from, std::int64_t to) {
  for (std::int64_t step = from; step < to; ++step) ring.push({.task = 0, .step = step});
}

TEST(RecordRing, GivesBackInOrderAndEmptiesItself) {
  RecordRing ring;
  push_steps(ring, 0, 3);
  const auto taken = ring.take();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken.front().step, 0);
  EXPECT_EQ(taken.back().step, 2);
  EXPECT_TRUE(ring.take().empty());
}

TEST(RecordRing, KeepsTheLatest) {
  constexpr auto kCapacity = static_cast<std::int64_t>(RecordRing::kCapacity);
  RecordRing ring;
  push_steps(ring, 0, kCapacity + 10);
  const auto taken = ring.take();
  ASSERT_EQ(taken.size(), RecordRing::kCapacity);
  for (std::size_t at = 0; at < taken.size(); ++at) {
    ASSERT_EQ(taken[at].step, static_cast<std::int64_t>(at) + 10);
  }
  push_steps(ring, 7, 9);
  EXPECT_EQ(ring.take().size(), 2U);
}

}  // namespace
}  // namespace deft
