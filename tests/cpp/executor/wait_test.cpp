// Waiting, diagnosis, failure, and completions that come too late.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "core/executor/executor.h"
#include "support.h"

namespace deft {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::add_generation;
using test::Bench;

TEST(ExecutorWait, TimesOutThenSucceeds) {
  const Bench bench(test::synchronous_plan(1));
  bench.backward();
  const Due due = bench.due_of(0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(bench.executor->wait(due, milliseconds(20)), WaitResult::kTimeout);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(20));
  EXPECT_EQ(bench.executor->wait_idle(microseconds(0)), WaitResult::kTimeout);
  bench.complete_all();
  EXPECT_EQ(bench.executor->wait(due, microseconds::max()), WaitResult::kDone);
  EXPECT_EQ(bench.executor->wait_idle(microseconds(0)), WaitResult::kDone);
}

TEST(ExecutorWait, ACompletionWakesTheWaiter) {
  const Bench bench(test::synchronous_plan(1));
  bench.backward();
  const Due due = bench.due_of(0);
  std::thread network([&] {
    std::this_thread::sleep_for(milliseconds(20));
    bench.complete_all();
  });
  EXPECT_EQ(bench.executor->wait(due, seconds(60)), WaitResult::kDone);
  network.join();
}

TEST(ExecutorWait, AFailureWakesAllWaiters) {
  const Bench bench(test::synchronous_plan(2));
  bench.backward();
  std::vector<WaitResult> results(2, WaitResult::kDone);
  std::vector<std::thread> waiters;
  for (std::int32_t bucket = 0; bucket < 2; ++bucket) {
    const Due due = bench.due_of(bucket);
    waiters.emplace_back([&bench, &results, due] {
      results[static_cast<std::size_t>(due.bucket)] = bench.executor->wait(due, seconds(60));
    });
  }
  std::this_thread::sleep_for(milliseconds(20));
  bench.links[0]->complete("0@0", Outcome::kAborted, "shut down");
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(results, (std::vector<WaitResult>{WaitResult::kFailed, WaitResult::kFailed}));
  EXPECT_EQ(bench.executor->wait_idle(microseconds(0)), WaitResult::kTimeout)
      << "the link still owns the buffer of the other message";
  bench.complete_all();
  EXPECT_EQ(bench.executor->wait_idle(microseconds(0)), WaitResult::kFailed);
}

TEST(ExecutorWait, TheFirstFailureStays) {
  const Bench bench(test::synchronous_plan(1));
  EXPECT_TRUE(bench.executor->failure().ok());
  bench.executor->fail("first", Outcome::kAborted);
  bench.executor->fail("second", Outcome::kInvalid);
  EXPECT_EQ(bench.executor->failure().reason, "first");
  EXPECT_EQ(bench.executor->failure().outcome, Outcome::kAborted);
  bench.backward();
  EXPECT_EQ(bench.links[0]->sent(), 0);
  const Due due = bench.due_of(0);
  EXPECT_EQ(bench.executor->wait(due, seconds(60)), WaitResult::kFailed);
  EXPECT_EQ(bench.executor->inspect(due).progress, Progress::kFailed);
  EXPECT_EQ(bench.executor->inspect(due).held_by, "first");
}

TEST(ExecutorWait, AFailureIsNeverOk) {
  const Bench bench(test::synchronous_plan(1));
  bench.executor->fail("odd", Outcome::kOk);
  EXPECT_FALSE(bench.executor->failure().ok());
}

TEST(ExecutorWait, WhatWasReducedBeforeAFailureIsDone) {
  const Bench bench(test::synchronous_plan(2));
  bench.backward();
  bench.links[0]->complete("0@0");
  bench.executor->fail("late", Outcome::kAborted);
  EXPECT_EQ(bench.executor->wait(bench.due_of(0), microseconds(0)), WaitResult::kDone);
  EXPECT_EQ(bench.executor->wait(bench.due_of(1), microseconds(0)), WaitResult::kFailed);
}

TEST(ExecutorWait, ALateCompletionIsHarmless) {
  std::vector<std::shared_ptr<ManualLink>> links;
  {
    const Bench bench(test::synchronous_plan(2));
    bench.backward();
    links = bench.links;
  }
  ASSERT_EQ(links[0]->pending().size(), 2U);
  EXPECT_TRUE(links[0]->complete_oldest());
  EXPECT_TRUE(links[0]->complete_oldest(Outcome::kAborted, "shut down"));
}

TEST(ExecutorWait, InspectTellsWhichGradientsAreMissing) {
  Plan plan = test::synchronous_plan(1);
  plan.slots = {{0, 0, 4}, {0, 4, 8}};
  const Bench bench(plan);
  const Due due{.generation = 0};
  EXPECT_EQ(bench.executor->inspect(due).progress, Progress::kCollecting);
  bench.executor->begin_backward();
  bench.executor->slot_ready(1);
  const Pending pending = bench.executor->inspect(due);
  EXPECT_EQ(pending.progress, Progress::kCollecting);
  EXPECT_EQ(pending.missing_slots, (std::vector<std::int32_t>{0}));
}

TEST(ExecutorWait, InspectTellsCreditAndOrder) {
  Plan plan = test::synchronous_plan(3);
  plan.links[0].credit_bytes = test::kBucketBytes;
  const Bench bench(plan);
  bench.now_us->store(10);
  bench.backward();
  bench.now_us->store(25);
  const Pending sent = bench.executor->inspect(bench.due_of(0));
  EXPECT_EQ(sent.progress, Progress::kInFlight);
  EXPECT_EQ(sent.waited_us, 15);
  const Pending next = bench.executor->inspect(bench.due_of(1));
  EXPECT_EQ(next.progress, Progress::kHeld);
  EXPECT_EQ(next.waited_us, 15);
  EXPECT_EQ(next.held_by, "credit: 32 of 32 bytes in flight on link wire, the message has 32");
  const Pending last = bench.executor->inspect(bench.due_of(2));
  EXPECT_EQ(last.held_by, "plan: after bucket 1 in the order of link wire (" + next.held_by + ")");
  bench.complete_all();
  EXPECT_EQ(bench.executor->inspect(bench.due_of(2)).progress, Progress::kReduced);
}

TEST(ExecutorWait, InspectTellsWindowsAndWhatTheHeadOfTheOrderMisses) {
  Plan plan = test::bare_plan(2);
  plan.period = 2;
  add_generation(plan, {.bucket = 0, .last_step = 1, .apply_step = 1});
  add_generation(plan, {.bucket = 1, .last_step = 0, .apply_step = 1});
  add_generation(plan, {.bucket = 1, .first_step = 1, .last_step = 1, .apply_step = 2});
  plan.tasks[1].window = {1, Stage::kForward};
  plan.buffers = 2;
  const Bench bench(plan);
  bench.backward();
  const Due second{.generation = 1};
  EXPECT_EQ(bench.executor->inspect(second).held_by,
            "plan: after bucket 0 in the order of link wire (plan: window backward of step 1 is "
            "not open)");
  bench.executor->end_step();
  bench.executor->begin_backward();
  EXPECT_EQ(bench.executor->inspect(second).held_by,
            "plan: after bucket 0 in the order of link wire (gradients: 1 of bucket 0 are "
            "missing)");
}

TEST(ExecutorWait, InspectTellsThatAWindowIsNotOpen) {
  Plan plan = test::bare_plan(1);
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0, .apply_step = 1}).window = {1, Stage::kBackward};
  const Bench bench(plan);
  bench.backward();
  const Due due{.generation = 0};
  EXPECT_EQ(bench.executor->inspect(due).held_by, "plan: window backward of step 1 is not open");
}

TEST(ExecutorWait, InspectTellsThatASecondMessageWaits) {
  Plan plan = test::bare_plan(2);
  plan.links.push_back({.name = "other"});
  add_generation(plan, {.bucket = 0}).op = Op::kReduceScatter;
  TaskSpec gather = plan.tasks[0];
  gather.link = 1;
  plan.tasks.push_back(gather);
  add_generation(plan, {.bucket = 1}, 1);
  const Bench bench(plan);
  bench.backward();
  EXPECT_EQ(bench.executor->inspect(bench.due_of(1)).held_by,
            "plan: after bucket 0 in the order of link other (plan: an earlier message of the "
            "same generation is not done)");
}

}  // namespace
}  // namespace deft
