#include "core/plan/schedule.h"

#include <gtest/gtest.h>

#include <vector>

#include "support.h"

namespace deft {
namespace {

// Bucket 0: steps 0-1 merged, applied at 3; step 2 at once. Bucket 1: all three steps, at once.
Plan example() {
  Plan plan = test::bare_plan(2);
  plan.period = 3;
  plan.buffers = 3;
  test::add_generation(plan, {.bucket = 0, .first_step = 2, .last_step = 2, .apply_step = 2});
  test::add_generation(plan, {.bucket = 0, .first_step = 0, .last_step = 1, .apply_step = 3});
  test::add_generation(plan, {.bucket = 1, .first_step = 0, .last_step = 2, .apply_step = 2});
  plan.validate();
  return plan;
}

TEST(Schedule, UnrollsCycles) {
  const Plan plan = example();
  const Schedule schedule(plan);
  EXPECT_EQ(schedule.collecting(0, 0), (Instance{1, 0}));
  EXPECT_EQ(schedule.collecting(0, 2), (Instance{0, 0}));
  EXPECT_EQ(schedule.collecting(0, 7), (Instance{1, 2}));
  EXPECT_EQ(schedule.first_step({1, 2}), 6);
  EXPECT_EQ(schedule.last_step({1, 2}), 7);
  EXPECT_EQ(schedule.starting_at(1, 6), (Instance{1, 2}));
  EXPECT_EQ(schedule.window({1, 2}), (Window{7, Stage::kBackward}));
  EXPECT_EQ(schedule.instance_of({1, 2}), (Instance{1, 2}));
}

TEST(Schedule, NumbersInstancesByTheirStepsAndTakesBuffersInTurn) {
  const Plan plan = example();
  const Schedule schedule(plan);
  std::vector<std::int64_t> numbers;
  std::vector<std::int32_t> buffers;
  for (std::int64_t step = 0; step < 7; ++step) {
    numbers.push_back(schedule.number(schedule.collecting(0, step)));
    buffers.push_back(schedule.buffer(schedule.collecting(0, step)));
  }
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{0, 0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(buffers, (std::vector<std::int32_t>{0, 0, 1, 2, 2, 0, 1}));
}

// Steps 2 of one cycle and 0 of the next are merged: the very first such generation has one step.
TEST(Schedule, AGenerationMayBeginInTheCycleBefore) {
  Plan plan = test::bare_plan(1);
  plan.period = 3;
  plan.buffers = 2;
  test::add_generation(plan, {.bucket = 0, .first_step = -1, .last_step = 0, .apply_step = 0});
  test::add_generation(plan, {.bucket = 0, .first_step = 1, .last_step = 1, .apply_step = 1});
  plan.validate();
  const Schedule schedule(plan);
  const Instance first{0, 0};
  const Instance second{0, 1};
  EXPECT_EQ(schedule.collecting(0, 0), first);
  EXPECT_EQ(schedule.collecting(0, 1), (Instance{1, 0}));
  EXPECT_EQ(schedule.collecting(0, 2), second);
  EXPECT_EQ(schedule.collecting(0, 3), second);
  EXPECT_EQ(schedule.first_step(first), 0);
  EXPECT_EQ(schedule.last_step(first), 0);
  EXPECT_EQ(schedule.first_step(second), 2);
  EXPECT_EQ(schedule.last_step(second), 3);
  EXPECT_EQ(schedule.starting_at(0, 0), first);
  EXPECT_EQ(schedule.starting_at(0, 2), second);
  EXPECT_EQ(schedule.number(first), 0);
  EXPECT_EQ(schedule.number({1, 0}), 1);
  EXPECT_EQ(schedule.number(second), 2);
}

TEST(Schedule, NothingIsDueBeforeItsFirstCycle) {
  const Plan plan = example();
  const Schedule schedule(plan);
  EXPECT_TRUE(schedule.due_at(0).empty());  // generation 1 falls on steps 3, 6, 9
  EXPECT_EQ(schedule.due_at(2), (std::vector<Instance>{{0, 0}, {2, 0}}));
  EXPECT_EQ(schedule.due_at(3), (std::vector<Instance>{{1, 0}}));
  EXPECT_EQ(schedule.due_at(6), (std::vector<Instance>{{1, 1}}));
}

TEST(Schedule, KnowsTheTasksOfAGenerationAndOfALink) {
  Plan plan = test::bare_plan(2);
  plan.links.push_back({.name = "other"});
  test::add_generation(plan, {.bucket = 0});
  test::add_generation(plan, {.bucket = 1}, 1);
  plan.tasks.push_back(plan.tasks[0]);
  plan.tasks[2].link = 1;
  const Schedule schedule(plan);
  const auto of_generation = schedule.tasks_of(0);
  const auto on_link = schedule.tasks_on(1);
  EXPECT_EQ(std::vector(of_generation.begin(), of_generation.end()),
            (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(std::vector(on_link.begin(), on_link.end()), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(schedule.bucket_of(2), 0);
  EXPECT_EQ(schedule.bytes_of_task(1), test::kBucketBytes);
  EXPECT_EQ(schedule.message_bytes_of_task(1), test::kBucketBytes);
}

TEST(Schedule, KnowsWhatTravelsOfAnEncodedBucket) {
  Plan plan = test::bare_plan(2);
  test::add_generation(plan, {.bucket = 0});
  test::add_generation(plan, {.bucket = 1});
  plan.buckets[1].message_bytes = 7;
  const Schedule schedule(plan);
  EXPECT_EQ(schedule.message_bytes_of_task(0), test::kBucketBytes);
  EXPECT_EQ(schedule.message_bytes_of_task(1), 7);
  EXPECT_EQ(schedule.bytes_of_task(1), test::kBucketBytes);
}

}  // namespace
}  // namespace deft
