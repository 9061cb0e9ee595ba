// Order, credit, windows, several links, several messages of one generation.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/executor/executor.h"
#include "support.h"

namespace deft {
namespace {

using test::add_generation;
using test::Bench;
using Names = std::vector<std::string>;

TEST(ExecutorSend, KeepsTheOrderOfThePlan) {
  const Bench bench(test::synchronous_plan(3));
  bench.executor->begin_backward();
  bench.executor->slot_ready(2);
  bench.executor->slot_ready(1);
  EXPECT_EQ(bench.links[0]->sent(), 0);
  bench.executor->slot_ready(0);
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0", "1@0", "2@0"}));
}

// Also notes which steps begin, and to which its messages belong.
class NotingLink : public ManualLink {
 public:
  void send(Message message, Completion done) override {
    noted.push_back(message.name + " of " + std::to_string(message.step));
    ManualLink::send(std::move(message), std::move(done));
  }
  void begin_step(std::int64_t step) override { noted.push_back("begin " + std::to_string(step)); }

  Names noted;
};

TEST(ExecutorSend, AMessageOfAForwardBelongsToTheStepBefore) {
  Plan plan = test::bare_plan(2);
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0});
  add_generation(plan, {.bucket = 1, .apply_step = 1}).window = {1, Stage::kForward};
  const auto link = std::make_shared<NotingLink>();
  const auto executor =
      test::make_executor(plan, {link}, std::make_shared<std::atomic<std::int64_t>>(0));
  for (std::int64_t step = 0; step < 2; ++step) {
    executor->begin_backward();
    executor->begin_backward();
    executor->slot_ready(1);
    executor->slot_ready(0);
    while (link->complete_oldest()) continue;
    for (const Due& due : executor->due()) executor->release(due);
    executor->end_step();
  }
  EXPECT_EQ(link->noted,
            (Names{"begin 0", "0@0 of 0", "1@0 of 0", "begin 1", "0@1 of 1", "1@1 of 1"}));
}

TEST(ExecutorSend, WithoutPlanOrderTheReadyLeaveFirst) {
  Plan plan = test::synchronous_plan(3);
  plan.links[0].plan_order = false;
  const Bench bench(plan);
  bench.executor->begin_backward();
  bench.executor->slot_ready(2);
  EXPECT_EQ(bench.links[0]->pending(), (Names{"2@0"}));
  bench.executor->slot_ready(0);
  bench.executor->slot_ready(1);
  EXPECT_EQ(bench.links[0]->pending(), (Names{"2@0", "0@0", "1@0"}));
}

TEST(ExecutorSend, WithoutPlanOrderWindowsStillHold) {
  Plan plan = test::bare_plan(2);
  plan.links[0].plan_order = false;
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0, .apply_step = 1}).window = {1, Stage::kForward};
  add_generation(plan, {.bucket = 1});
  const Bench bench(plan);
  bench.backward();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"1@0"}));
  bench.complete_all();
  bench.finish_step();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0"}));
}

TEST(ExecutorSend, HoldsBackBeyondTheCreditInBytes) {
  Plan plan = test::synchronous_plan(4);
  plan.links[0].credit_bytes = 2 * test::kBucketBytes + 1;
  const Bench bench(plan);
  bench.backward();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0", "1@0"}));
  bench.links[0]->complete("1@0");
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0", "2@0"}));
  bench.complete_all();
  EXPECT_EQ(bench.links[0]->sent(), 4);
}

TEST(ExecutorSend, HoldsBackBeyondTheCreditInMessages) {
  Plan plan = test::synchronous_plan(3);
  plan.links[0].credit_messages = 1;
  const Bench bench(plan);
  bench.backward();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0"}));
  bench.links[0]->complete_oldest();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"1@0"}));
}

TEST(ExecutorSend, AMessageAboveTheCreditTravelsAlone) {
  Plan plan = test::synchronous_plan(2);
  plan.links[0].credit_bytes = 1;
  const Bench bench(plan);
  bench.backward();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0"}));
  bench.links[0]->complete_oldest();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"1@0"}));
}

TEST(ExecutorSend, DelayedMessagesLeaveInTheirWindow) {
  Plan plan = test::bare_plan(2);
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0, .apply_step = 1}).window = {1, Stage::kForward};
  add_generation(plan, {.bucket = 1, .apply_step = 1}).window = {1, Stage::kBackward};
  const Bench bench(plan);
  bench.backward();
  EXPECT_EQ(bench.links[0]->sent(), 0);
  bench.finish_step();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0"}));
  bench.executor->begin_backward();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0", "1@0"}));
  bench.collect_all();
  EXPECT_EQ(bench.links[0]->sent(), 2);
  bench.complete_all();
  bench.finish_step();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@1"}));
}

TEST(ExecutorSend, LinksDoNotWaitForEachOther) {
  Plan plan = test::bare_plan(3);
  plan.links[0].credit_messages = 1;
  plan.links.push_back({.name = "other"});
  add_generation(plan, {.bucket = 0}, 0);
  add_generation(plan, {.bucket = 1}, 0);
  add_generation(plan, {.bucket = 2}, 1);
  const Bench bench(plan);
  bench.executor->begin_backward();
  bench.executor->slot_ready(2);
  EXPECT_EQ(bench.links[0]->sent(), 0);
  EXPECT_EQ(bench.links[1]->pending(), (Names{"2@0"}));
  bench.executor->slot_ready(0);
  bench.executor->slot_ready(1);
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0"}));
}

TEST(ExecutorSend, TasksOfAGenerationRunInTurnOverLinks) {
  Plan plan = test::bare_plan(2);
  plan.links.push_back({.name = "other"});
  add_generation(plan, {.bucket = 0}).op = Op::kReduceScatter;
  add_generation(plan, {.bucket = 1}).op = Op::kReduceScatter;
  TaskSpec gather = plan.tasks[0];
  gather.op = Op::kAllGather;
  gather.link = 1;
  plan.tasks.push_back(gather);
  gather.generation = 1;
  plan.tasks.push_back(gather);
  const Bench bench(plan);
  bench.backward();
  EXPECT_EQ(bench.links[0]->pending(), (Names{"0@0", "1@0"}));
  EXPECT_TRUE(bench.links[1]->pending().empty());
  bench.links[0]->complete("1@0");
  EXPECT_TRUE(bench.links[1]->pending().empty()) << "the order of the second link counts too";
  bench.links[0]->complete("0@0");
  EXPECT_EQ(bench.links[1]->pending(), (Names{"2@0", "3@0"}));
  const Due due = bench.due_of(0);
  EXPECT_EQ(bench.executor->wait(due, std::chrono::microseconds(0)), WaitResult::kTimeout);
  bench.links[1]->complete("2@0");
  EXPECT_EQ(bench.executor->wait(due, std::chrono::microseconds(0)), WaitResult::kDone);
}

// A hundred thousand messages that all end inside send, released by one gradient: neither the
// stack nor the order may suffer.
TEST(ExecutorSend, SynchronousCompletionDoesNotRecurse) {
  constexpr std::int32_t kMessages = 100'000;
  Plan plan = test::synchronous_plan(kMessages);
  plan.links[0].credit_messages = 1;
  const Bench bench(plan, true);
  bench.executor->begin_backward();
  for (std::int32_t slot = kMessages - 1; slot > 0; --slot) bench.executor->slot_ready(slot);
  EXPECT_EQ(bench.links[0]->sent(), 0);
  bench.executor->slot_ready(0);
  EXPECT_EQ(bench.links[0]->sent(), kMessages);
  EXPECT_EQ(bench.executor->in_flight(), 0);
  const auto records = bench.executor->take_records();
  ASSERT_EQ(records.size(), RecordRing::kCapacity);
  EXPECT_EQ(records.front().task, kMessages - static_cast<std::int32_t>(records.size()));
  EXPECT_EQ(records.back().task, kMessages - 1);
}

// Calls `during` from inside send, then keeps or ends the message.
class HookedLink : public Link {
 public:
  void send(Message message, Completion done) override {
    if (during) during(message);
    if (keeps) {
      kept.push_back(std::move(done));
    } else {
      done(LinkStatus{});
    }
  }

  std::function<void(const Message&)> during;
  bool keeps = false;
  std::vector<Completion> kept;
};

std::shared_ptr<Executor> executor_over(const Plan& plan, const std::shared_ptr<HookedLink>& link) {
  return test::make_executor(plan, {link}, std::make_shared<std::atomic<std::int64_t>>(0));
}

TEST(ExecutorSend, ThePlanHoldsWhileSendIsStillRunning) {
  const auto link = std::make_shared<HookedLink>();
  const auto executor = executor_over(test::synchronous_plan(3), link);
  Names order;
  link->during = [&](const Message& message) {
    if (order.empty()) {  // gradients arrive while the first message is being sent
      executor->slot_ready(2);
      executor->slot_ready(1);
      EXPECT_EQ(order.size(), 0U) << "nothing leaves before send has returned";
    }
    order.push_back(message.name);
  };
  executor->begin_backward();
  executor->slot_ready(0);
  EXPECT_EQ(order, (Names{"0@0", "1@0", "2@0"}));
}

TEST(ExecutorSend, ASecondCompletionGivesNoCreditBack) {
  const auto link = std::make_shared<HookedLink>();
  link->keeps = true;
  Plan plan = test::synchronous_plan(4);
  plan.links[0].credit_messages = 1;
  const auto executor = executor_over(plan, link);
  executor->begin_backward();
  for (std::int32_t slot = 0; slot < 4; ++slot) executor->slot_ready(slot);
  ASSERT_EQ(link->kept.size(), 1U);
  const Completion first = link->kept[0];
  first(LinkStatus{});
  first(LinkStatus{});
  EXPECT_EQ(link->kept.size(), 2U);
  EXPECT_EQ(executor->in_flight(), 1);
}

TEST(ExecutorSend, ALinkThatThrowsFailsTheExecutor) {
  const auto link = std::make_shared<HookedLink>();
  link->during = [](const Message&) { throw std::runtime_error("no route"); };
  const auto executor = executor_over(test::synchronous_plan(2), link);
  executor->begin_backward();
  executor->slot_ready(0);
  executor->slot_ready(1);
  EXPECT_EQ(executor->failure().outcome, Outcome::kInvalid);
  EXPECT_NE(executor->failure().reason.find("bucket 0"), std::string::npos);
  EXPECT_NE(executor->failure().reason.find("no route"), std::string::npos);
  EXPECT_EQ(executor->in_flight(), 0);
}

TEST(ExecutorSend, AFailingCompletionSendsNothing) {
  Plan plan = test::synchronous_plan(3);
  plan.links[0].credit_messages = 2;
  const Bench bench(plan);
  bench.backward();
  bench.links[0]->complete("0@0", Outcome::kAborted, "rank 1 is gone");
  EXPECT_EQ(bench.links[0]->sent(), 2);
  bench.links[0]->complete("1@0");
  EXPECT_EQ(bench.links[0]->sent(), 2);
  EXPECT_EQ(bench.executor->failure().outcome, Outcome::kAborted);
  EXPECT_NE(bench.executor->failure().reason.find("rank 1 is gone"), std::string::npos);
}

TEST(ExecutorSend, RecordsAndStatsTellWhatTheClockSaw) {
  Plan plan = test::synchronous_plan(2);
  plan.links[0].credit_messages = 1;
  const Bench bench(plan);
  bench.executor->begin_backward();
  bench.now_us->store(100);
  bench.collect_all();
  bench.now_us->store(130);
  bench.links[0]->complete("0@0");
  bench.now_us->store(150);
  EXPECT_EQ(bench.executor->link_stats().at(0).busy_us, 50);
  bench.links[0]->complete("1@0");
  const auto records = bench.executor->take_records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].task, 1);
  EXPECT_EQ(records[1].step, 0);
  EXPECT_EQ(records[1].bytes, test::kBucketBytes);
  EXPECT_EQ(records[1].ready_us, 100);
  EXPECT_EQ(records[1].sent_us, 130);
  EXPECT_EQ(records[1].done_us, 150);
  EXPECT_TRUE(bench.executor->take_records().empty());
  const LinkStats stats = bench.executor->link_stats().at(0);
  EXPECT_EQ(stats.messages, 2);
  EXPECT_EQ(stats.bytes, 2 * test::kBucketBytes);
  EXPECT_EQ(stats.busy_us, 50);
}

TEST(ExecutorSend, RecordsAndStatsTellTheBytesThatTravel) {
  Plan plan = test::synchronous_plan(2);
  plan.buckets[1].message_bytes = 9;
  const Bench bench(plan);
  bench.backward();
  bench.links[0]->complete("1@0");
  const auto records = bench.executor->take_records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].bytes, 9);
  EXPECT_EQ(bench.executor->link_stats().at(0).bytes, test::kBucketBytes + 9);
}

}  // namespace
}  // namespace deft
