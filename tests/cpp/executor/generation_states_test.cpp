#include "core/executor/generation_states.h"

#include <gtest/gtest.h>

#include "support.h"

namespace deft {
namespace {

TEST(GenerationStates, TellPastPresentAndFutureOwnersOfABufferApart) {
  const Plan plan = test::synchronous_plan(1);
  const Schedule schedule(plan);
  GenerationStates states(schedule, 1, 1);
  EXPECT_TRUE(states.at_buffer_of({0, 0}).released);
  EXPECT_EQ(states.find({0, 0}), nullptr);
  EXPECT_FALSE(states.is_reduced({0, 0}));

  states.begin({0, 0});
  ASSERT_NE(states.find({0, 0}), nullptr);
  EXPECT_EQ(states.find({0, 0})->progress, Progress::kCollecting);
  EXPECT_FALSE(states.is_reduced({0, 0}));
  states.find({0, 0})->progress = Progress::kReduced;
  EXPECT_TRUE(states.is_reduced({0, 0}));
  EXPECT_FALSE(states.is_released({0, 0}));
  states.find({0, 0})->released = true;
  EXPECT_TRUE(states.is_released({0, 0}));

  states.begin({0, 1});
  EXPECT_EQ(states.find({0, 0}), nullptr);
  EXPECT_TRUE(states.is_reduced({0, 0}));
  EXPECT_TRUE(states.is_released({0, 0}));
  EXPECT_FALSE(states.is_reduced({0, 1}));
  EXPECT_FALSE(states.is_reduced({0, 2}));
}

TEST(GenerationStates, BuffersAreSeparate) {
  Plan plan = test::synchronous_plan(2);
  plan.buffers = 2;
  const Schedule schedule(plan);
  GenerationStates states(schedule, 2, 2);
  states.begin({0, 0});
  states.begin({0, 1});
  states.begin({1, 1});
  states.find({0, 0})->progress = Progress::kReduced;
  EXPECT_TRUE(states.is_reduced({0, 0}));
  EXPECT_FALSE(states.is_reduced({0, 1}));
  EXPECT_FALSE(states.is_reduced({1, 1}));
  EXPECT_EQ(states.find({1, 0}), nullptr);
}

}  // namespace
}  // namespace deft
