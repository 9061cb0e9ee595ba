#include "core/link/encoded_link.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace deft {
namespace {

using Floats = std::vector<float>;

// Where the ranks' messages of one name meet. The last one to come delivers to all.
class Meeting {
 public:
  explicit Meeting(std::size_t ranks) : ranks_(ranks) {}

  void come(std::size_t rank, Message message, Completion done) {
    std::vector<Came> all;
    {
      const std::lock_guard lock(mutex_);
      order[rank].push_back(message.name);
      const std::string name = message.name;
      auto& came = here_[name];
      came.resize(ranks_);
      came[rank] = {std::move(message), std::move(done)};
      if (++count_[name] % ranks_ != 0) return;
      all = std::move(here_[name]);
      here_.erase(name);
    }
    for (Came& to : all) {
      auto* out = static_cast<char*>(to.message.output);
      for (const Came& from : all) {
        const auto bytes =
            static_cast<std::size_t>(from.message.input_elements * bytes_of(from.message.dtype));
        if (to.message.op == Op::kAllGather) std::memcpy(out, from.message.input, bytes);
        out += bytes;
      }
    }
    for (Came& to : all) to.done(failure);
  }

  // A message that never meets the others holds its link, and that holds the meeting.
  void end() {
    const std::lock_guard lock(mutex_);
    here_.clear();
  }

  LinkStatus failure;
  std::map<std::size_t, std::vector<std::string>> order;  // of each rank, as they came

 private:
  struct Came {
    Message message;
    Completion done;
  };

  const std::size_t ranks_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Came>> here_;
  std::map<std::string, std::size_t> count_;
};

class Inner : public Link {
 public:
  Inner(std::shared_ptr<Meeting> meeting, std::size_t rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  void send(Message message, Completion done) override {
    meeting_->come(rank_, std::move(message), std::move(done));
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  std::size_t rank_;
};

constexpr std::int64_t kElements = 1000;

Floats random_values(unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(kElements);
  for (float& value : values) value = normal(generator);
  return values;
}

Message message_on(Floats& values, const std::string& name) {
  Message message;
  message.name = name;
  message.input = message.output = values.data();
  message.input_elements = message.output_elements = static_cast<std::int64_t>(values.size());
  return message;
}

LinkStatus wait_for(std::future<LinkStatus>& future) {
  if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
    return {Outcome::kAborted, "no answer"};
  }
  return future.get();
}

std::future<LinkStatus> sent(Link& link, Message message) {
  auto promise = std::make_shared<std::promise<LinkStatus>>();
  link.send(std::move(message), [promise](const LinkStatus& s) { promise->set_value(s); });
  return promise->get_future();
}

class EncodedLinkTest : public testing::Test {
 protected:
  static constexpr std::size_t kRanks = 3;

  void TearDown() override { meeting_->end(); }

  std::shared_ptr<EncodedLink> link(std::size_t rank) {
    encodings_.push_back(std::make_shared<Encoding>(wire::Format::kInt8, kElements,
                                                    std::vector<ValueRange>{{0, 4}}));
    return std::make_shared<EncodedLink>(std::make_shared<Inner>(meeting_, rank),
                                         EncodedLinkOptions{kRanks, 1.0F / kRanks},
                                         Encodings{{"int8", encodings_.back()}});
  }

  std::shared_ptr<Meeting> meeting_ = std::make_shared<Meeting>(kRanks);
  std::vector<std::shared_ptr<Encoding>> encodings_;
};

TEST_F(EncodedLinkTest, AllRanksGetTheSameBitsNearTheAverage) {
  std::vector<std::shared_ptr<EncodedLink>> links;
  std::vector<Floats> values;
  Floats mean(kElements);
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    links.push_back(link(rank));
    values.push_back(random_values(rank));
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += values[rank][i] / kRanks;
  }
  std::vector<std::future<LinkStatus>> answers;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    answers.push_back(sent(*links[rank], message_on(values[rank], "int8")));
  for (auto& answer : answers) ASSERT_TRUE(wait_for(answer).ok());
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
  double error = 0.0;
  double whole = 0.0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    error += std::pow(static_cast<double>(values[0][i] - mean[i]), 2);
    whole += std::pow(static_cast<double>(mean[i]), 2);
  }
  EXPECT_GT(error, 0.0);
  EXPECT_LT(error / whole, 1e-3);
}

TEST_F(EncodedLinkTest, MessagesReachTheInnerLinkInTheirOrder) {
  const auto only = link(0);
  Floats encoded_values = random_values(1);
  std::vector<Floats> plain(5, Floats(10));
  (void)sent(*only, message_on(encoded_values, "int8"));
  for (std::size_t i = 0; i < plain.size(); ++i)
    (void)sent(*only, message_on(plain[i], "plain" + std::to_string(i)));
  Floats few(1);
  auto refused = sent(*only, message_on(few, "int8"));  // answered once those before have left
  EXPECT_FALSE(wait_for(refused).ok());
  EXPECT_EQ(meeting_->order[0],
            (std::vector<std::string>{"int8", "plain0", "plain1", "plain2", "plain3", "plain4"}));
}

TEST_F(EncodedLinkTest, AFailureIsPassedOnAndLeavesTheValues) {
  meeting_->failure = {Outcome::kAborted, "a peer died"};
  std::vector<std::shared_ptr<EncodedLink>> links;
  std::vector<Floats> values(kRanks, random_values(1));
  std::vector<std::future<LinkStatus>> answers;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    links.push_back(link(rank));
    answers.push_back(sent(*links[rank], message_on(values[rank], "int8")));
  }
  for (auto& answer : answers) EXPECT_EQ(wait_for(answer).reason, "a peer died");
  EXPECT_EQ(values[0], random_values(1));
}

TEST_F(EncodedLinkTest, WhatDoesNotFitItsEncodingIsRefused) {
  const auto only = link(0);
  Floats few(10);
  auto answer = sent(*only, message_on(few, "int8"));
  const LinkStatus status = wait_for(answer);
  EXPECT_EQ(status.outcome, Outcome::kInvalid);
  EXPECT_NE(status.reason.find("expects an all_reduce of 1000"), std::string::npos);
  Floats values(kElements);
  Message gather = message_on(values, "int8");
  gather.op = Op::kAllGather;
  auto other = sent(*only, gather);
  EXPECT_EQ(wait_for(other).outcome, Outcome::kInvalid);
}

}  // namespace
}  // namespace deft
