#include "core/executor/lane.h"

#include <gtest/gtest.h>

#include <vector>

namespace deft {
namespace {

Lane lane(LinkSpec spec, const std::vector<std::int32_t>& tasks = {4, 2}) {
  return {std::move(spec), nullptr, tasks};
}

TEST(Lane, RepeatsTheOrderOfThePlanCycleAfterCycle) {
  Lane ordered = lane({.name = "wire"});
  std::vector<TaskInstance> seen;
  for (int at = 0; at < 5; ++at) {
    seen.push_back(ordered.head().value_or(TaskInstance{-1, -1}));
    ordered.advance();
  }
  EXPECT_EQ(seen, (std::vector<TaskInstance>{{4, 0}, {2, 0}, {4, 1}, {2, 1}, {4, 2}}));
  EXPECT_FALSE(lane({.name = "unused"}, {}).head().has_value());
}

TEST(Lane, BytesInFlightStayWithinTheCredit) {
  Lane limited = lane({.name = "wire", .credit_bytes = 100});
  EXPECT_TRUE(limited.has_credit(500)) << "a message above the credit travels alone";
  limited.start(60, 60, 0);
  EXPECT_TRUE(limited.has_credit(40));
  EXPECT_FALSE(limited.has_credit(41));
  EXPECT_EQ(limited.held_by_credit(40), "");
  EXPECT_EQ(limited.held_by_credit(41),
            "credit: 60 of 100 bytes in flight on link wire, the message has 41");
  limited.finish(60, 0);
  EXPECT_TRUE(limited.has_credit(500));
}

TEST(Lane, MessagesInFlightStayWithinTheCredit) {
  Lane limited = lane({.name = "wire", .credit_messages = 2});
  limited.start(1, 1, 0);
  EXPECT_TRUE(limited.has_credit(1));
  limited.start(1, 1, 0);
  EXPECT_FALSE(limited.has_credit(1));
  EXPECT_EQ(limited.held_by_credit(1), "credit: 2 of 2 messages in flight on link wire");
  limited.finish(1, 0);
  EXPECT_TRUE(limited.has_credit(1));
}

TEST(Lane, OffersLeaveInReadinessOrderOnceTheirWindowIsOpen) {
  Lane eager = lane({.name = "wire", .plan_order = false});
  const Window now{3, Stage::kForward};
  const Window later{3, Stage::kBackward};
  eager.offer({1, 0}, later, false);
  eager.offer({2, 0}, now, true);
  eager.offer({3, 0}, {4, Stage::kForward}, false);
  EXPECT_EQ(eager.take_offered(), (TaskInstance{2, 0}));
  EXPECT_EQ(eager.take_offered(), std::nullopt);
  eager.open_until(later);
  eager.offer({5, 0}, now, true);
  EXPECT_EQ(eager.take_offered(), (TaskInstance{1, 0}));
  EXPECT_EQ(eager.take_offered(), (TaskInstance{5, 0}));
  EXPECT_EQ(eager.take_offered(), std::nullopt);
  eager.open_until({4, Stage::kForward});
  EXPECT_EQ(eager.take_offered(), (TaskInstance{3, 0}));
}

TEST(Lane, StartsAtTheBeginningOfAnyCycle) {
  Lane wire = lane({.name = "wire"});
  wire.start_at(5);
  ASSERT_TRUE(wire.head().has_value());
  EXPECT_EQ(wire.head()->cycle, 5);
  while (wire.head()->cycle == 5) wire.advance();
  EXPECT_EQ(wire.head()->cycle, 6);
}

TEST(Lane, BusyTimeIsTheUnionOfFlights) {
  Lane busy = lane({.name = "wire"});
  busy.start(10, 10, 100);
  busy.start(20, 20, 150);
  busy.finish(10, 180);
  EXPECT_EQ(busy.stats(190).busy_us, 90);
  busy.finish(20, 200);
  busy.start(5, 5, 300);
  busy.finish(5, 307);
  const LinkStats stats = busy.stats(1000);
  EXPECT_EQ(stats.busy_us, 107);
  EXPECT_EQ(stats.messages, 3);
  EXPECT_EQ(stats.bytes, 35);
}

TEST(Lane, CreditsCountValuesAndStatsWhatTravels) {
  Lane encoded = lane({.name = "wire", .credit_bytes = 100});
  encoded.start(80, 20, 0);
  EXPECT_FALSE(encoded.has_credit(40));
  EXPECT_EQ(encoded.stats(0).bytes, 20);
  encoded.finish(80, 10);
  EXPECT_TRUE(encoded.has_credit(40));
  EXPECT_EQ(encoded.stats(10).bytes, 20);
}

}  // namespace
}  // namespace deft
