#include "core/link/ordered_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/link/manual_link.h"

namespace deft {
namespace {

using Names = std::vector<std::string>;

class OrderedLinkTest : public testing::Test {
 protected:
  // What is in flight holds the link, and the link what is in flight.
  void TearDown() override { complete_all(); }

  void send(const std::string& name, bool in_order = true) {
    Message message;
    message.name = name;
    message.in_order = in_order;
    link_->send(std::move(message), [this, name](const LinkStatus& status) {
      (status.ok() ? done_ : failed_).push_back(name);
    });
  }
  void send_all(const Names& names) {
    for (const std::string& name : names) send(name);
  }
  void complete_all() {
    while (wire_->complete_oldest()) {
    }
  }

  std::shared_ptr<ManualLink> wire_ = std::make_shared<ManualLink>();
  std::unique_ptr<OrderedLink> link_ = std::make_unique<OrderedLink>(wire_);
  Names done_;
  Names failed_;
};

TEST_F(OrderedLinkTest, WhatKeepsTheOrderOfFirstMeetingIsInFlightTogether) {
  send_all({"a", "b", "c"});
  EXPECT_EQ(wire_->pending(), (Names{"a", "b", "c"}));
  complete_all();
  send_all({"a", "c", "d"});
  EXPECT_EQ(wire_->pending(), (Names{"a", "c", "d"}));
}

TEST_F(OrderedLinkTest, WhatWouldOvertakeWaitsUntilThatHasArrived) {
  send_all({"a", "b", "c"});
  complete_all();
  send_all({"b", "c", "a", "b"});
  EXPECT_EQ(wire_->pending(), (Names{"b", "c"}));
  wire_->complete("b");
  EXPECT_EQ(wire_->pending(), (Names{"c"})) << "c would still be overtaken";
  wire_->complete("c");
  EXPECT_EQ(wire_->pending(), (Names{"a", "b"})) << "and what waited behind it may go along";
}

TEST_F(OrderedLinkTest, ANewNameComesAfterAllThatAreKnownAndNoneIsInFlightTwice) {
  send_all({"a", "new", "a", "a"});
  EXPECT_EQ(wire_->pending(), (Names{"a", "new"}));
  wire_->complete("new");
  EXPECT_EQ(wire_->pending(), (Names{"a"}));
  complete_all();
  EXPECT_EQ(done_, (Names{"new", "a", "a", "a"}));
}

TEST_F(OrderedLinkTest, WhoDoesNotAskForOrderPassesAtOnce) {
  send_all({"a", "a"});
  send("free", false);
  send("free too", false);
  EXPECT_EQ(wire_->pending(), (Names{"a", "free", "free too"}));
}

TEST_F(OrderedLinkTest, OneThatFailsTakesThoseHeldBackWithItAndTheNextGoesOn) {
  send_all({"a", "a", "b"});
  wire_->complete("a", Outcome::kAborted, "a peer died");
  EXPECT_EQ(failed_, (Names{"a", "b", "a"})) << "held back first, as they stand behind it";
  send("b");
  EXPECT_EQ(wire_->pending(), (Names{"b"}));
}

TEST_F(OrderedLinkTest, AnswersMayOutliveTheLink) {
  send_all({"a", "a"});
  link_.reset();
  complete_all();
  EXPECT_EQ(done_, (Names{"a", "a"}));
}

TEST(OrderedLink, AnImmediateLinkDoesNotRecurse) {
  OrderedLink link(std::make_shared<ManualLink>(true));
  int done = 0;
  for (int number = 0; number < 3; ++number) {
    Message message;
    message.name = "same";
    message.in_order = true;
    link.send(std::move(message), [&](const LinkStatus&) { ++done; });
  }
  EXPECT_EQ(done, 3);
}

// Under the thread sanitizer too: two threads hand over and one answers.
TEST(OrderedLink, ThreadsHandOverAndAnswerAtTheSameTime) {
  constexpr int kEach = 500;
  const auto wire = std::make_shared<ManualLink>();
  OrderedLink link(wire);
  std::atomic<int> done = 0;
  const auto hand_over = [&](const std::string& prefix) {
    for (int number = 0; number < kEach; ++number) {
      Message message;
      message.name = prefix + std::to_string(number % 7);
      message.in_order = true;
      link.send(std::move(message), [&](const LinkStatus&) { ++done; });
    }
  };
  std::thread one(hand_over, "one");
  std::thread other(hand_over, "other");
  while (done < 2 * kEach) wire->complete_oldest();
  one.join();
  other.join();
  EXPECT_EQ(wire->sent(), 2 * kEach);
}

}  // namespace
}  // namespace deft
