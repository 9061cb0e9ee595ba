#include "core/link/staged_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/link/manual_link.h"
#include "link/host_copier.h"

namespace deft {
namespace {

using testing_support::HostCopier;

using Floats = std::vector<float>;

// What a peer with the same values would make of it, in host memory alone.
class Doubling : public Link {
 public:
  void send(Message message, Completion done) override {
    EXPECT_EQ(message.device, -1);
    EXPECT_EQ(message.ready, nullptr);
    names.push_back(message.name);
    const auto* from = static_cast<const float*>(message.input);
    auto* to = static_cast<float*>(message.output);
    // A reduce-scatter keeps the second half, an all-gather repeats the input.
    if (message.op == Op::kReduceScatter) from += message.output_elements;
    for (std::int64_t i = 0; i < message.output_elements; ++i) {
      to[i] = 2 * from[i % message.input_elements];
    }
    done({});
  }

  std::vector<std::string> names;
};

class Signal : public ReadySignal {
 public:
  [[nodiscard]] bool ready() const override { return set; }
  std::atomic<bool> set = false;
};

Message message_on(Floats& input, Floats& output, const std::string& name = "m") {
  Message message;
  message.name = name;
  message.input = input.data();
  message.input_elements = static_cast<std::int64_t>(input.size());
  message.output = output.data();
  message.output_elements = static_cast<std::int64_t>(output.size());
  message.device = 0;
  return message;
}

LinkStatus sent(Link& link, Message message) {
  std::promise<LinkStatus> promise;
  link.send(std::move(message), [&](const LinkStatus& status) { promise.set_value(status); });
  auto future = promise.get_future();
  if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
    return {Outcome::kAborted, "no answer"};
  }
  return future.get();
}

class StagedLinkTest : public testing::Test {
 protected:
  std::shared_ptr<HostCopier> copier_ = std::make_shared<HostCopier>();
  std::shared_ptr<Doubling> inner_ = std::make_shared<Doubling>();
  StagedLink link_{inner_, copier_};
};

TEST_F(StagedLinkTest, InPlace) {
  Floats values(1000);
  std::iota(values.begin(), values.end(), 0.0F);
  ASSERT_TRUE(sent(link_, message_on(values, values)).ok());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], 2.0F * static_cast<float>(i));
}

TEST_F(StagedLinkTest, AnInputElsewhereStaysAsItIs) {
  Floats input(7, 3.0F);
  Floats output(7, 0.0F);
  ASSERT_TRUE(sent(link_, message_on(input, output)).ok());
  EXPECT_EQ(input, Floats(7, 3.0F));
  EXPECT_EQ(output, Floats(7, 6.0F));
}

TEST_F(StagedLinkTest, AShardWithinItsWholeComesBackAlone) {
  Floats whole = {1, 2, 3, 4};
  Message scatter = message_on(whole, whole);
  scatter.op = Op::kReduceScatter;
  scatter.output = whole.data() + 2;
  scatter.output_elements = 2;
  ASSERT_TRUE(sent(link_, scatter).ok());
  EXPECT_EQ(whole, (Floats{1, 2, 6, 8}));
  Message gather = message_on(whole, whole);
  gather.op = Op::kAllGather;
  gather.input = whole.data() + 2;
  gather.input_elements = 2;
  ASSERT_TRUE(sent(link_, gather).ok());
  EXPECT_EQ(whole, (Floats{12, 16, 12, 16}));
}

TEST_F(StagedLinkTest, WaitsForTheDeviceAndKeepsTheOrder) {
  Floats first(3, 1.0F);
  Floats second(3, 1.0F);
  const auto signal = std::make_shared<Signal>();
  Message late = message_on(first, first, "late");
  late.ready = signal;
  std::promise<void> arrived;
  link_.send(late, [&](const LinkStatus&) { arrived.set_value(); });
  Message host = message_on(second, second, "host");
  host.device = -1;
  std::promise<void> both;
  link_.send(host, [&](const LinkStatus&) { both.set_value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(first, Floats(3, 1.0F)) << "it is not there yet";
  std::fill(first.begin(), first.end(), 5.0F);
  signal->set = true;
  arrived.get_future().wait();
  both.get_future().wait();
  EXPECT_EQ(first, Floats(3, 10.0F));
  EXPECT_EQ(inner_->names, (std::vector<std::string>{"late", "host"}));
}

TEST_F(StagedLinkTest, BuffersAreUsedAgain) {
  Floats large(1000, 1.0F);
  Floats small(10, 1.0F);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(sent(link_, message_on(large, large)).ok());
    ASSERT_TRUE(sent(link_, message_on(small, small)).ok());
  }
  EXPECT_EQ(copier_->buffers, 1);
}

TEST_F(StagedLinkTest, ACopyThatFailsSaysWhichMessage) {
  Floats values(4, 1.0F);
  copier_->broken = true;
  const LinkStatus status = sent(link_, message_on(values, values, "bucket 3"));
  EXPECT_EQ(status.outcome, Outcome::kAborted);
  EXPECT_NE(status.reason.find("bucket 3"), std::string::npos);
  EXPECT_NE(status.reason.find("no device"), std::string::npos);
  EXPECT_TRUE(inner_->names.empty());
}

// A link that takes messages of a device, and tells which.
class Direct : public Link {
 public:
  using Seen = std::vector<std::pair<std::string, std::int32_t>>;

  void send(Message message, Completion done) override {
    seen.emplace_back(message.name, message.device);
    done({});
  }
  void begin_step(std::int64_t step) override { steps.push_back(step); }

  Seen seen;
  std::vector<std::int64_t> steps;
};

TEST(StagedLink, WhatTheInnerLinkTakesItselfIsNotStaged) {
  const auto direct = std::make_shared<Direct>();
  const auto copier = std::make_shared<HostCopier>();
  StagedLink link(direct, copier, true);
  Floats values(4, 1.0F);
  Message message = message_on(values, values, "exact");
  message.ready = std::make_shared<Signal>();  // that is for the inner link to wait for
  ASSERT_TRUE(sent(link, message).ok());
  EXPECT_EQ(copier->buffers, 0);

  const auto other = std::make_shared<Direct>();
  const auto around = link.around(other, {"encoded"});
  EXPECT_EQ(around->inner(), other);
  ASSERT_TRUE(sent(*around, message_on(values, values, "encoded")).ok());
  ASSERT_TRUE(sent(*around, message).ok());
  EXPECT_EQ(other->seen, (Direct::Seen{{"encoded", -1}, {"exact", 0}}));
  EXPECT_EQ(direct->seen, (Direct::Seen{{"exact", 0}}));
}

TEST_F(StagedLinkTest, AroundAnotherLinkItHasTheSameBuffers) {
  const auto other = std::make_shared<Doubling>();
  const auto around = link_.around(other, {});
  Floats values(10, 1.0F);
  ASSERT_TRUE(sent(link_, message_on(values, values)).ok());
  ASSERT_TRUE(sent(*around, message_on(values, values)).ok());
  EXPECT_EQ(values, Floats(10, 4.0F));
  EXPECT_EQ(copier_->buffers, 1);
  EXPECT_EQ(other->names.size(), 1U);
}

TEST(StagedLink, TheInnerLinkLearnsOfSteps) {
  const auto direct = std::make_shared<Direct>();
  StagedLink(direct, std::make_shared<HostCopier>()).begin_step(7);
  EXPECT_EQ(direct->steps, (std::vector<std::int64_t>{7}));
}

TEST(StagedLink, AFailureOfTheInnerLinkIsPassedOnAndNothingIsCopiedBack) {
  const auto wire = std::make_shared<ManualLink>();
  StagedLink link(wire, std::make_shared<HostCopier>());
  Floats values(4, 1.0F);
  std::promise<LinkStatus> promise;
  link.send(message_on(values, values),
            [&](const LinkStatus& status) { promise.set_value(status); });
  while (!wire->complete_oldest(Outcome::kAborted, "a peer died")) std::this_thread::yield();
  EXPECT_EQ(promise.get_future().get().reason, "a peer died");
  EXPECT_EQ(values, Floats(4, 1.0F));
}

TEST(StagedLink, AnswersMayOutliveTheLink) {
  const auto wire = std::make_shared<ManualLink>();
  auto link = std::make_unique<StagedLink>(wire, std::make_shared<HostCopier>());
  Floats values(4, 1.0F);
  std::promise<void> promise;
  link->send(message_on(values, values), [&](const LinkStatus&) { promise.set_value(); });
  while (wire->pending().empty()) std::this_thread::yield();
  link.reset();
  wire->complete_oldest();
  promise.get_future().wait();
}

// Under the thread sanitizer too.
TEST(StagedLink, ManyMessagesFromTwoThreads) {
  constexpr int kEach = 200;
  const auto copier = std::make_shared<HostCopier>();
  StagedLink link(std::make_shared<ManualLink>(true), copier);
  std::vector<Floats> memory(2 * kEach, Floats(8, 1.0F));
  std::atomic<int> done = 0;
  const auto hand_over = [&](int from) {
    for (int i = from; i < from + kEach; ++i) {
      auto& values = memory[static_cast<std::size_t>(i)];
      link.send(message_on(values, values, std::to_string(i)),
                [&](const LinkStatus& status) { done += static_cast<int>(status.ok()); });
    }
  };
  std::thread one(hand_over, 0);
  std::thread other(hand_over, kEach);
  one.join();
  other.join();
  while (done < 2 * kEach) std::this_thread::yield();
  EXPECT_EQ(done, 2 * kEach);
}

}  // namespace
}  // namespace deft
