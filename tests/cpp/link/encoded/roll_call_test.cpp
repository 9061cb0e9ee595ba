#include "core/link/encoded/roll_call.h"

#include <gtest/gtest.h>

#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "encoded_job.h"

namespace deft {
namespace {

using testing_support::Floats;
using testing_support::Job;
using testing_support::left_in;
using testing_support::MeetingLink;
using testing_support::message_on;
using testing_support::sent;
using testing_support::values_of;
using testing_support::wait_for;

// Keeps what is sent; the test says how many ranks answer.
class AskedLink : public Link {
 public:
  void send(Message message, Completion done) override {
    asked.emplace_back(std::move(message), std::move(done));
  }

  // The oldest question: the other ranks that are here add their ones.
  void answer(std::int32_t others, const LinkStatus& status = {}) {
    auto [message, done] = std::move(asked.front());
    asked.erase(asked.begin());
    auto* counts = static_cast<std::uint8_t*>(message.output);
    for (std::int32_t i = 0; i < others; ++i) {
      ++counts[(message.output_elements > 1 && i >= 254) ? 1 : 0];
    }
    done(status);
  }

  std::vector<std::pair<Message, Completion>> asked;
};

class RollCallTest : public testing::Test {
 protected:
  std::shared_ptr<RollCall> of(std::int32_t size, std::int32_t rank = 0) {
    return std::make_shared<RollCall>(link_, "here", size, rank);
  }
  RollCall::Job job(int number) {
    return [this, number](bool everyone) { ran_.emplace_back(number, everyone); };
  }
  using Ran = std::vector<std::pair<int, bool>>;

  std::shared_ptr<AskedLink> link_ = std::make_shared<AskedLink>();
  Ran ran_;
};

TEST_F(RollCallTest, ARankThatGivesZeroIsMissing) {
  const auto roll = of(3);
  for (const std::int32_t others : {2, 1, 0}) {
    const std::int64_t step = 2 - others;
    roll->call(step);
    ASSERT_EQ(link_->asked.size(), 1U);
    EXPECT_EQ(link_->asked[0].first.name, "here");
    link_->answer(others);
    roll->pass(step, job(others));
  }
  EXPECT_EQ(ran_, (Ran{{2, true}, {1, false}, {0, false}}));
}

TEST_F(RollCallTest, JobsWaitForTheirAnswerAndKeepTheirOrder) {
  const auto roll = of(2);
  roll->call(5);
  roll->pass(4, job(1));  // before all that was asked
  roll->pass(5, job(2));
  roll->pass(4, job(3));
  EXPECT_EQ(ran_, (Ran{{1, true}}));
  link_->answer(0);
  EXPECT_EQ(ran_, (Ran{{1, true}, {2, false}, {3, true}}));
}

TEST_F(RollCallTest, AJobAsksWhereNoOneHas) {
  const auto roll = of(2);
  roll->pass(0, job(1));
  ASSERT_EQ(link_->asked.size(), 1U);
  roll->call(0);
  EXPECT_EQ(link_->asked.size(), 1U);
  link_->answer(1);
  EXPECT_EQ(ran_, (Ran{{1, true}}));
}

// All questions have one name, and a link takes a name once at a time.
TEST_F(RollCallTest, OneQuestionIsOnItsWayAtATime) {
  const auto roll = of(2);
  roll->call(0);
  roll->call(1);
  roll->pass(1, job(1));
  roll->pass(0, job(0));
  EXPECT_EQ(link_->asked.size(), 1U);
  link_->answer(1);
  EXPECT_EQ(link_->asked.size(), 1U);
  EXPECT_TRUE(ran_.empty());
  link_->answer(0);
  EXPECT_EQ(ran_, (Ran{{1, false}, {0, true}}));
}

TEST_F(RollCallTest, AMessageOfAForwardHasTheAnswerOfTheStepBefore) {
  const auto roll = of(2);
  for (std::int64_t step = 0; step < 20; ++step) {
    roll->call(step);
    link_->answer(step == 18 ? 0 : 1);
  }
  roll->pass(19, job(19));
  roll->pass(18, job(18));
  EXPECT_EQ(ran_, (Ran{{19, true}, {18, false}}));
}

TEST_F(RollCallTest, AFailureHoldsNobodyAndSendsNothing) {
  const auto roll = of(2);
  roll->call(0);
  roll->call(1);
  roll->pass(0, job(0));
  roll->pass(1, job(1));
  link_->answer(0, {Outcome::kAborted, "a peer died"});
  EXPECT_EQ(ran_, (Ran{{0, true}, {1, true}}));
  EXPECT_TRUE(link_->asked.empty());
}

TEST_F(RollCallTest, CountsMoreRanksThanAByteHolds) {
  const auto roll = of(300, 10);
  for (const std::int32_t others : {299, 298, 43}) {  // 256 of 300 are missing from the last
    const std::int64_t step = 299 - others;
    roll->call(step);
    link_->answer(others);
    roll->pass(step, job(others));
  }
  EXPECT_EQ(ran_, (Ran{{299, true}, {298, false}, {43, false}}));
}

// A question that the last rank answers with a zero.
class AbsentLink : public Link {
 public:
  explicit AbsentLink(std::shared_ptr<Link> inner) : inner_(std::move(inner)) {}
  void send(Message message, Completion done) override {
    if (message.name == "here" && is_absent) {
      std::memset(const_cast<void*>(message.input), 0, 1);
    }
    inner_->send(std::move(message), std::move(done));
  }

  bool is_absent = false;

 private:
  const std::shared_ptr<Link> inner_;
};

class MissingTest : public testing::TestWithParam<std::tuple<std::size_t, bool>> {
 protected:
  std::size_t ranks_ = std::get<0>(GetParam());
  bool owners_ = std::get<1>(GetParam());
};

TEST_P(MissingTest, MeanwhileMessagesAreWhole) {
  Job job(ranks_, {"m"}, owners_);
  std::vector<std::shared_ptr<AbsentLink>> inner;
  std::vector<std::shared_ptr<EncodedLink>> links;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const auto mine = static_cast<std::int32_t>(rank);
    inner.push_back(std::make_shared<AbsentLink>(std::make_shared<MeetingLink>(job.meeting, rank)));
    const auto size = static_cast<std::int32_t>(ranks_);
    links.push_back(std::make_shared<EncodedLink>(
        inner.back(),
        EncodedLinkOptions{size, mine, 1.0F / static_cast<float>(size), "here", {}, {}},
        job.encodings[rank]));
  }
  for (std::int64_t step = 0; step < 6; ++step) {
    const bool missing = step == 2 || step == 3;
    inner.back()->is_absent = missing;
    std::vector<Floats> values = values_of(ranks_, static_cast<unsigned>(step));
    std::vector<std::future<LinkStatus>> answers;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (step % 2 == 0) links[rank]->begin_step(step);
      Message message = message_on(values[rank], "m");
      message.step = step;
      answers.push_back(sent(*links[rank], message));
    }
    for (auto& answer : answers) ASSERT_TRUE(wait_for(answer).ok());
    for (const Floats& of_rank : values) EXPECT_EQ(of_rank, values[0]) << step;
    EXPECT_EQ(left_in(job, "m") == 0.0, missing) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, MissingTest,
                         testing::Combine(testing::Values(2UL, 3UL, 4UL), testing::Bool()));

}  // namespace
}  // namespace deft
