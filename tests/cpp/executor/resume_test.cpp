// Leaving a cycle at a boundary, and coming back into its middle.
#include <gtest/gtest.h>

#include <vector>

#include "core/errors.h"
#include "core/executor/executor.h"
#include "support.h"

namespace deft {
namespace {

using test::add_generation;
using test::Bench;

// One bucket, every step applied one step late.
Plan late_plan() {
  Plan plan = test::bare_plan(1);
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0, .apply_step = 1}).window = {1, Stage::kForward};
  return plan;
}

TEST(ExecutorResume, AFlushOpensEveryWindowForWhatHasBegun) {
  const Bench bench(late_plan());
  bench.backward();
  EXPECT_TRUE(bench.executor->due().empty());
  EXPECT_EQ(bench.executor->in_flight(), 0);
  bench.executor->end_step();
  EXPECT_EQ(bench.executor->in_flight(), 1);  // its window is the next forward
  bench.complete_all();
  bench.executor->flush();
  const std::vector<Due> alive = bench.executor->alive();
  ASSERT_EQ(alive.size(), 1U);
  EXPECT_EQ(alive[0].apply_step, 1);
  bench.executor->release(alive[0]);
  EXPECT_TRUE(bench.executor->alive().empty());
  EXPECT_THROW(bench.executor->begin_backward(), ExecutorError);
}

TEST(ExecutorResume, ASumThatIsNotCompleteIsSentAsItIs) {
  Plan plan = test::bare_plan(1);
  plan.period = 3;
  add_generation(plan, {.bucket = 0, .last_step = 2, .apply_step = 2});
  const Bench bench(plan);
  bench.backward();
  bench.executor->end_step();
  bench.executor->flush();
  EXPECT_EQ(bench.executor->in_flight(), 1);
  const std::vector<Due> alive = bench.executor->alive();
  ASSERT_EQ(alive.size(), 1U);
  EXPECT_EQ(alive[0].first_step, 0);
  EXPECT_EQ(alive[0].last_step, 0);
}

TEST(ExecutorResume, FlushInsideBackwardIsRefused) {
  const Bench bench(late_plan());
  bench.executor->begin_backward();
  EXPECT_THROW(bench.executor->flush(), ExecutorError);
}

TEST(ExecutorResume, WhatHadArrivedByThenIsReduced) {
  const Bench bench(late_plan());
  bench.executor->resume_at(7);
  EXPECT_EQ(bench.executor->step(), 7);
  EXPECT_EQ(bench.executor->in_flight(), 0);
  const std::vector<Due> alive = bench.executor->alive();
  ASSERT_EQ(alive.size(), 1U);
  EXPECT_EQ(alive[0].first_step, 6);
  EXPECT_EQ(bench.executor->inspect(alive[0]).progress, Progress::kReduced);
}

TEST(ExecutorResume, ALinkWithoutOrderCannotBeResumed) {
  Plan plan = late_plan();
  plan.links[0].plan_order = false;
  const Bench bench(plan);
  EXPECT_THROW(bench.executor->resume_at(7), ExecutorError);
}

}  // namespace
}  // namespace deft
