// The steps of the training loop: buffers, collecting, boundaries, misuse.
#include "core/executor/executor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/errors.h"
#include "support.h"

namespace deft {
namespace {

using test::add_generation;
using test::Bench;

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const ExecutorError& error) {
    return error.what();
  }
  return "accepted";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Executor, RunsASynchronousStep) {
  const Bench bench(test::synchronous_plan(2));
  EXPECT_EQ(bench.executor->step(), 0);
  EXPECT_FALSE(bench.executor->in_backward());
  bench.executor->begin_backward();
  bench.executor->begin_backward();
  EXPECT_TRUE(bench.executor->in_backward());
  bench.executor->slot_ready(0);
  EXPECT_TRUE(bench.executor->slot_collected(0));
  EXPECT_FALSE(bench.executor->slot_collected(1));
  EXPECT_EQ(bench.links[0]->pending(), (std::vector<std::string>{"0@0"}));
  bench.executor->slot_ready(1);
  EXPECT_EQ(bench.executor->in_flight(), 2);
  bench.complete_all();
  bench.finish_step();
  EXPECT_EQ(bench.executor->step(), 1);
  EXPECT_FALSE(bench.executor->in_backward());
  EXPECT_FALSE(bench.executor->slot_collected(0));
}

TEST(Executor, ASlotOverSeveralBucketsMakesEachReady) {
  Plan plan = test::synchronous_plan(3);
  plan.slots = {{0, 0, 20}, {0, 20, 24}};
  const Bench bench(plan);
  EXPECT_EQ(bench.executor->targets(0).size(), 3U);
  EXPECT_EQ(bench.executor->targets(1).size(), 1U);
  bench.executor->begin_backward();
  bench.executor->slot_ready(0);
  EXPECT_EQ(bench.links[0]->sent(), 2);
  bench.executor->slot_ready(1);
  EXPECT_EQ(bench.links[0]->sent(), 3);
}

TEST(Executor, MergedGenerationsAccumulateAndTravelOnce) {
  Plan plan = test::bare_plan(1);
  plan.period = 3;
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0, .first_step = 0, .last_step = 1, .apply_step = 1});
  add_generation(plan, {.bucket = 0, .first_step = 2, .last_step = 2, .apply_step = 2});
  const Bench bench(plan);
  std::vector<std::int32_t> buffers;
  std::vector<bool> accumulates;
  std::vector<std::int64_t> sent;
  std::vector<std::size_t> due;
  for (int step = 0; step < 6; ++step) {
    buffers.push_back(bench.executor->targets(0).at(0).buffer);
    accumulates.push_back(bench.executor->targets(0).at(0).accumulate);
    bench.backward();
    sent.push_back(bench.links[0]->sent());
    bench.complete_all();
    due.push_back(bench.executor->due().size());
    bench.finish_step();
  }
  EXPECT_EQ(buffers, (std::vector<std::int32_t>{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(accumulates, (std::vector<bool>{false, true, false, false, true, false}));
  EXPECT_EQ(sent, (std::vector<std::int64_t>{0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(due, (std::vector<std::size_t>{0, 1, 1, 0, 1, 1}));
}

TEST(Executor, DueNamesAbsoluteStepsAndSkipsWhatWasReleased) {
  Plan plan = test::bare_plan(2);
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0, .apply_step = 1});
  add_generation(plan, {.bucket = 1, .gated = true});
  const Bench bench(plan, true);
  bench.backward();
  ASSERT_EQ(bench.executor->due().size(), 1U);
  bench.finish_step();
  bench.backward();
  const std::vector<Due> due = bench.executor->due();
  ASSERT_EQ(due.size(), 2U);
  EXPECT_EQ(due[0].generation, 0);
  EXPECT_EQ(due[0].first_step, 0);
  EXPECT_EQ(due[0].last_step, 0);
  EXPECT_EQ(due[0].buffer, 0);
  EXPECT_FALSE(due[0].gated);
  EXPECT_EQ(due[1].bucket, 1);
  EXPECT_EQ(due[1].last_step, 1);
  EXPECT_EQ(due[1].buffer, 1);
  EXPECT_TRUE(due[1].gated);
  bench.executor->release(due[0]);
  EXPECT_EQ(bench.executor->due().size(), 1U);
}

TEST(Executor, GatedGenerationsOutliveTheirBoundary) {
  Plan plan = test::bare_plan(1);
  add_generation(plan, {.bucket = 0, .gated = true});
  const Bench bench(plan);
  bench.backward();
  const Due due = bench.due_of(0);
  bench.executor->end_step();
  EXPECT_EQ(bench.executor->wait(due, std::chrono::microseconds(0)), WaitResult::kTimeout);
  EXPECT_TRUE(says(refusal([&] { bench.executor->begin_backward(); }), "was not released"));
  EXPECT_FALSE(bench.executor->in_backward());
  bench.complete_all();
  EXPECT_EQ(bench.executor->wait(due, std::chrono::microseconds(0)), WaitResult::kDone);
  EXPECT_TRUE(says(refusal([&] { bench.executor->begin_backward(); }), "was not released"));
  bench.executor->release(due);
  EXPECT_NO_THROW(bench.executor->begin_backward());
}

TEST(Executor, RefusesMisuseAndStaysUsable) {
  const Bench bench(test::synchronous_plan(2));
  Executor& executor = *bench.executor;
  EXPECT_TRUE(says(refusal([&] { executor.slot_ready(0); }), "outside of its backward"));
  executor.begin_backward();
  executor.slot_ready(0);
  EXPECT_TRUE(says(refusal([&] { executor.slot_ready(0); }), "twice"));
  EXPECT_TRUE(says(refusal([&] { executor.slot_ready(2); }), "slot 2 is not one of the plan's 2"));
  EXPECT_TRUE(says(refusal([&] { executor.slot_ready(-1); }), "slot -1"));
  EXPECT_TRUE(says(refusal([&] { (void)executor.targets(2); }), "slot 2"));
  EXPECT_TRUE(says(refusal([&] { (void)executor.slot_collected(2); }), "slot 2"));
  EXPECT_TRUE(says(refusal([&] { (void)executor.due(); }), "missing are slots 1"));
  EXPECT_TRUE(says(refusal([&] { executor.end_step(); }), "missing are slots 1"));
  executor.slot_ready(1);
  EXPECT_TRUE(says(refusal([&] { executor.end_step(); }), "bucket 0, due at its boundary"));
  const Due due = bench.due_of(1);
  EXPECT_TRUE(says(refusal([&] { executor.release(due); }), "not reduced"));
  bench.complete_all();
  bench.executor->release(due);
  EXPECT_TRUE(says(refusal([&] { executor.release(due); }), "a second time"));
  bench.finish_step();
  EXPECT_TRUE(says(refusal([&] { executor.release(due); }), "a second time"));
  EXPECT_TRUE(says(refusal([&] { executor.release({.generation = 5}); }), "not one of the plan"));
  EXPECT_TRUE(says(refusal([&] { executor.release({.generation = 0, .first_step = -1}); }),
                   "not one of the plan"));
}

TEST(Executor, RefusesBadConstruction) {
  const Plan plan = test::synchronous_plan(1);
  const auto factory = [](std::int32_t, std::int32_t) { return Message{}; };
  const auto clock = [] { return std::int64_t{0}; };
  const auto link = std::make_shared<ManualLink>();
  EXPECT_THROW(Executor(plan, {}, factory, clock), ExecutorError);
  EXPECT_THROW(Executor(plan, {nullptr}, factory, clock), ExecutorError);
  EXPECT_THROW(Executor(plan, {link}, nullptr, clock), ExecutorError);
  EXPECT_THROW(Executor(plan, {link}, factory, nullptr), ExecutorError);
  Plan broken = plan;
  broken.tasks.clear();
  EXPECT_THROW(Executor(broken, {link}, factory, clock), PlanError);
  Executor unowned(plan, {link}, factory, clock);
  EXPECT_TRUE(says(refusal([&] { unowned.begin_backward(); }), "shared_ptr"));
}

TEST(Executor, ABufferThatWasNotReleasedIsNotWritten) {
  Plan plan = test::synchronous_plan(1);
  plan.buffers = 2;
  const Bench bench(plan, true);
  for (int step = 0; step < 2; ++step) {
    bench.backward();
    bench.executor->end_step();  // reduced, never released
  }
  EXPECT_TRUE(says(refusal([&] { bench.executor->begin_backward(); }), "buffer 0 of bucket 0"));
}

}  // namespace
}  // namespace deft
