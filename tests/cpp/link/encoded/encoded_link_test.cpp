#include "core/link/encoded/encoded_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/link/manual_link.h"
#include "core/link/ordered_link.h"
#include "encoded_job.h"
#include "link/host_copier.h"

namespace deft {
namespace {

using testing_support::Floats;
using testing_support::HostCopier;
using testing_support::Meeting;
using testing_support::MeetingLink;
using testing_support::MeetsBy;
using testing_support::message_on;
using testing_support::random_values;
using testing_support::sent;
using testing_support::wait_for;

using testing_support::Job;
using testing_support::kElements;
using testing_support::left_in;
using testing_support::values_of;

class ExchangeTest : public testing::TestWithParam<std::tuple<std::size_t, bool>> {
 protected:
  std::size_t ranks_ = std::get<0>(GetParam());
  bool owners_ = std::get<1>(GetParam());
};

TEST_P(ExchangeTest, AllRanksGetTheSameBitsNearTheAverage) {
  for (const std::size_t elements : {1UL, 3UL, 255UL, 600UL, 4099UL}) {
    Job job(ranks_, {"m"}, owners_, MeetsBy::kName, elements, {});
    std::vector<Floats> values = values_of(ranks_, 1, elements);
    std::vector<double> mean(elements);
    for (const Floats& of_rank : values) {
      for (std::size_t i = 0; i < elements; ++i) {
        mean[i] += static_cast<double>(of_rank[i]) / static_cast<double>(ranks_);
      }
    }
    for (const LinkStatus& status : job.reduce(values, "m")) ASSERT_TRUE(status.ok());
    double error = 0.0;
    double whole = 0.0;
    for (std::size_t i = 0; i < elements; ++i) {
      error += std::pow(static_cast<double>(values[0][i]) - mean[i], 2);
      whole += std::pow(mean[i], 2);
    }
    EXPECT_LT(error / whole, 1e-3) << elements;
    for (const Floats& of_rank : values) EXPECT_EQ(values[0], of_rank) << elements;
  }
}

TEST_P(ExchangeTest, MessagesOfADeviceAreEncodedInHostMemory) {
  Job job(ranks_, {"m"}, owners_);
  Job staged(ranks_, {"m"}, owners_);
  std::vector<std::shared_ptr<StagedLink>> links;
  for (const auto& link : staged.links) {
    const StagedLink bare(std::make_shared<ManualLink>(), std::make_shared<HostCopier>(), true);
    links.push_back(bare.around(link, {"m"}));
  }
  for (unsigned step = 0; step < 5; ++step) {
    std::vector<Floats> expected = values_of(ranks_, step);
    std::vector<Floats> values = expected;
    for (const LinkStatus& status : job.reduce(expected, "m")) ASSERT_TRUE(status.ok());
    std::vector<std::future<LinkStatus>> answers;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      Message message = message_on(values[rank], "m");
      message.device = 0;
      answers.push_back(sent(*links[rank], std::move(message)));
    }
    for (auto& answer : answers) ASSERT_TRUE(wait_for(answer).ok());
    EXPECT_EQ(values, expected) << step;
  }
}

TEST_P(ExchangeTest, MessagesOfOtherGroupsAreOfOtherTypesAndArriveAsTheSameBits) {
  const std::vector<std::string> names = {"0", "1", "2", "3"};
  for (const std::size_t elements : {1UL, 257UL, 4099UL}) {
    Job job(ranks_, names, owners_, MeetsBy::kName, elements, {});
    std::vector<Floats> first = values_of(ranks_, 1, elements);
    for (const LinkStatus& status : job.reduce(first, names[0])) ASSERT_TRUE(status.ok());
    for (std::int32_t group = 1; group < 4; ++group) {
      std::vector<Floats> values = values_of(ranks_, 1, elements);
      const std::string& name = names[static_cast<std::size_t>(group)];
      for (const LinkStatus& status : job.reduce(values, name, group)) ASSERT_TRUE(status.ok());
      EXPECT_EQ(values, first) << elements << ", group " << group;
    }
    std::set<DType> types;
    for (const std::string& name : names) {
      types.merge(job.meeting->types.at(owners_ && ranks_ > 1 ? name + ".sums" : name));
    }
    EXPECT_EQ(types.size(), names.size());
  }
}

TEST_P(ExchangeTest, NothingIsLostButWhatWaitsInRests) {
  Job job(ranks_, {"m"}, owners_);
  std::vector<double> produced(kElements);  // and not arrived: on average
  const auto each = 1.0 / static_cast<double>(ranks_);
  for (unsigned step = 0; step < 200; ++step) {
    std::vector<Floats> values = values_of(ranks_, step);
    for (const Floats& of_rank : values) {
      for (std::size_t i = 0; i < kElements; ++i) {
        produced[i] += each * static_cast<double>(of_rank[i]);
      }
    }
    for (const LinkStatus& status : job.reduce(values, "m")) ASSERT_TRUE(status.ok());
    for (std::size_t i = 0; i < kElements; ++i) produced[i] -= static_cast<double>(values[0][i]);
    for (const Floats& of_rank : values) ASSERT_EQ(values[0], of_rank) << step;
  }
  std::vector<double> rests;  // of the values that are encoded, in their order
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const std::span<float> rest = job.encodings[rank]["m"]->rest();
    rests.resize(rest.size());
    for (std::size_t i = 0; i < rest.size(); ++i) rests[i] += each * static_cast<double>(rest[i]);
  }
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (const float left : job.encodings[rank]["m"]->sum_rest()) {
      rests[at++] += static_cast<double>(left);
    }
  }
  EXPECT_EQ(at, owners_ ? rests.size() : 0);
  at = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    const bool header = i < 4 || (i >= 500 && i < 503);
    EXPECT_NEAR(produced[i], header ? 0.0 : rests[at++], 2e-4) << i;
  }
}

TEST_P(ExchangeTest, AfterAWholeMessageNothingIsLeft) {
  for (const MeetsBy by : {MeetsBy::kName, MeetsBy::kOrder, MeetsBy::kTag}) {
    Job job(ranks_, {"m"}, owners_, by);
    std::vector<double> produced(kElements);  // and not arrived: on average
    for (unsigned step = 0; step < 22; ++step) {
      std::vector<Floats> values = values_of(ranks_, step);
      for (const Floats& of_rank : values) {
        for (std::size_t i = 0; i < kElements; ++i) {
          produced[i] += static_cast<double>(of_rank[i]) / static_cast<double>(ranks_);
        }
      }
      const bool whole = step == 20;
      for (const Encodings& of_rank : job.encodings) of_rank.at("m")->set_whole_next(whole);
      for (const LinkStatus& status : job.reduce(values, "m")) ASSERT_TRUE(status.ok());
      for (std::size_t i = 0; i < kElements; ++i) produced[i] -= static_cast<double>(values[0][i]);
      for (const Floats& of_rank : values) ASSERT_EQ(values[0], of_rank) << step;
      EXPECT_EQ(left_in(job, "m") == 0.0, whole) << step;
      if (!whole) continue;
      for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(produced[i], 0.0, 2e-5) << i;
    }
  }
}

TEST_P(ExchangeTest, AWholeMessageKeepsItsPlaceInTheOrder) {
  const std::vector<std::string> names = {"a", "b", "c"};
  Job job(ranks_, names, owners_, MeetsBy::kOrder);
  for (const Encodings& of_rank : job.encodings) of_rank.at("b")->set_whole_next(true);
  std::vector<std::vector<Floats>> values;
  for (unsigned i = 0; i < 9; ++i) values.push_back(values_of(ranks_, i));
  std::vector<std::future<LinkStatus>> answers;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      answers.push_back(sent(*job.links[rank], message_on(values[i][rank], names[i % 3])));
    }
  }
  for (auto& answer : answers) ASSERT_TRUE(wait_for(answer).ok());
  for (const auto& of_rank : job.meeting->order) EXPECT_EQ(of_rank, job.meeting->order[0]);
  for (const auto& of_message : values) {
    for (const Floats& of_rank : of_message) EXPECT_EQ(of_rank, of_message[0]);
  }
}

TEST_P(ExchangeTest, OnlyRanksWithRestsNeedAnEncodingThatIsAlwaysWhole) {
  for (const Op op : {Op::kAllReduce, Op::kReduceScatter}) {
    const std::size_t elements = 10 * ranks_;
    const auto meeting = std::make_shared<Meeting>(ranks_, MeetsBy::kName);
    const auto encoding = Encoding::whole(static_cast<std::int64_t>(elements), {{0, 4}});
    for (float& rest : encoding->rest()) rest = static_cast<float>(ranks_);
    std::vector<std::shared_ptr<Link>> links;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      links.push_back(std::make_shared<MeetingLink>(meeting, rank));
    }
    const EncodedLinkOptions options{static_cast<std::int32_t>(ranks_), 0, 1.0F, {}, {}, {}};
    links[0] = std::make_shared<EncodedLink>(links[0], options, Encodings{{"m", encoding}});
    for (const float extra : {1.0F, 0.0F, 0.0F}) {
      std::vector<Floats> values(ranks_, Floats(elements, 5.0F));
      std::vector<std::future<LinkStatus>> answers;
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        Message message = message_on(values[rank], "m");
        message.op = op;
        if (op == Op::kReduceScatter) {
          message.output_elements = 10;
          message.output = values[rank].data() + 10 * rank;
        }
        answers.push_back(sent(*links[rank], message));
      }
      for (auto& answer : answers) ASSERT_TRUE(wait_for(answer).ok());
      for (std::size_t i = 0; i < elements; ++i) {
        const std::size_t at = op == Op::kReduceScatter ? i / 10 : 1;
        EXPECT_EQ(values[at][i], i < 4 ? 5.0F : 5.0F + extra) << i;
      }
    }
    meeting->end();
  }
}

TEST_P(ExchangeTest, WhatIsNotFiniteTravelsWholeWithoutTheRestsOfItsRank) {
  Job job(ranks_, {"m"}, owners_);
  std::vector<Floats> values = values_of(ranks_, 1);
  for (const LinkStatus& status : job.reduce(values, "m")) ASSERT_TRUE(status.ok());
  const std::span<float> rests = job.encodings[0].at("m")->rest();
  const Floats before(rests.begin(), rests.end());
  values = values_of(ranks_, 2);
  values[0][700] = std::numeric_limits<float>::quiet_NaN();
  for (const Encodings& of_rank : job.encodings) of_rank.at("m")->set_whole_next(true);
  for (const LinkStatus& status : job.reduce(values, "m")) ASSERT_TRUE(status.ok());
  for (const Floats& of_rank : values) EXPECT_FALSE(std::isfinite(of_rank[700]));
  EXPECT_EQ(Floats(rests.begin(), rests.end()), before);
  const std::span<float> of_other = job.encodings[1].at("m")->rest();
  EXPECT_TRUE(std::all_of(of_other.begin(), of_other.end(), [](float one) { return one == 0.0F; }));
}

TEST_P(ExchangeTest, WhatIsNotFiniteArrivesEverywhere) {
  Job job(ranks_, {"m"}, owners_);
  std::vector<Floats> values = values_of(ranks_, 1);
  values[ranks_ - 1][700] = std::numeric_limits<float>::infinity();
  for (const LinkStatus& status : job.reduce(values, "m")) ASSERT_TRUE(status.ok());
  for (const Floats& of_rank : values) {
    EXPECT_FALSE(std::isfinite(of_rank[700]));
    EXPECT_TRUE(std::isfinite(of_rank[499]));
  }
}

TEST_P(ExchangeTest, WhereMessagesMeetByTheirOrderAllRanksHandThemOverInOne) {
  const std::vector<std::string> encoded = {"a", "b", "c", "d"};
  Job job(ranks_, encoded, owners_, MeetsBy::kOrder);
  const std::vector<std::string> names = {"a", "plain", "b", "c", "other", "d"};
  std::map<std::string, std::vector<Floats>> values;
  std::vector<std::future<LinkStatus>> answers;
  for (const std::string& name : names) values[name] = values_of(ranks_, 1);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (const std::string& name : names) {
      answers.push_back(sent(*job.links[rank], message_on(values[name][rank], name)));
    }
  }
  for (auto& answer : answers) EXPECT_TRUE(wait_for(answer).ok());
  for (const auto& of_rank : job.meeting->order) EXPECT_EQ(of_rank, job.meeting->order[0]);
  for (const std::string& name : encoded) {
    for (const Floats& of_rank : values[name]) EXPECT_EQ(of_rank, values[name][0]);
  }
}

// Ranks meet the names in one order, or each would wait for what another one holds back.
TEST_P(ExchangeTest, MessagesInOrderDoNotWaitForEachOther) {
  const std::vector<std::string> names = {"a", "b", "c"};
  Job job(ranks_, names, owners_);
  std::vector<std::shared_ptr<EncodedLink>> links;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    auto inner = std::make_shared<OrderedLink>(std::make_shared<MeetingLink>(job.meeting, rank));
    const EncodedLinkOptions options{
        static_cast<std::int32_t>(ranks_), static_cast<std::int32_t>(rank), 1.0F, {}, {}, {}};
    links.push_back(std::make_shared<EncodedLink>(inner, options, job.encodings[rank]));
  }
  std::vector<std::vector<Floats>> values;
  std::vector<std::future<LinkStatus>> answers;
  for (unsigned i = 0; i < 12; ++i) values.push_back(values_of(ranks_, i));
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Message message = message_on(values[i][rank], names[i % names.size()]);
      message.in_order = true;
      answers.push_back(sent(*links[rank], message));
    }
  }
  for (auto& answer : answers) ASSERT_TRUE(wait_for(answer).ok());
  for (const auto& of_message : values) {
    for (const Floats& of_rank : of_message) EXPECT_EQ(of_rank, of_message[0]);
  }
}

TEST_P(ExchangeTest, AFailureOfEitherStageIsPassedOn) {
  for (const std::string failing : {"m", "m.sums"}) {
    if (failing == "m.sums" && !owners_) continue;
    for (const MeetsBy by : {MeetsBy::kName, MeetsBy::kOrder, MeetsBy::kTag}) {
      Job job(ranks_, {"m"}, owners_, by);
      Meeting& meeting = by == MeetsBy::kTag ? *job.mesh : *job.meeting;
      meeting.failures[failing] = {Outcome::kAborted, "a peer died"};
      std::vector<Floats> values = values_of(ranks_, 1);
      for (const LinkStatus& status : job.reduce(values, "m")) {
        EXPECT_EQ(status.reason, "a peer died");
      }
      if (failing == "m") {
        EXPECT_EQ(values, values_of(ranks_, 1));
      }
      // Those behind it are not held for ever.
      for (const LinkStatus& status : job.reduce(values, "plain")) EXPECT_TRUE(status.ok());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangeTest,
                         testing::Combine(testing::Values(2UL, 3UL, 4UL, 8UL), testing::Bool()));

TEST(EncodedLink, MessagesReachTheInnerLinkInTheirOrder) {
  Job job(3, {"int8"}, false);
  Floats encoded_values = random_values(kElements, 1);
  std::vector<Floats> plain(5, Floats(10));
  (void)sent(*job.links[0], message_on(encoded_values, "int8"));
  for (std::size_t i = 0; i < plain.size(); ++i)
    (void)sent(*job.links[0], message_on(plain[i], "plain" + std::to_string(i)));
  std::vector<std::vector<Floats>> others(2, plain);
  std::vector<std::future<LinkStatus>> last;
  for (const std::size_t rank : {1UL, 2UL})
    last.push_back(sent(*job.links[rank], message_on(others[rank - 1][4], "plain4")));
  for (auto& answer : last) EXPECT_TRUE(wait_for(answer).ok());
  EXPECT_EQ(job.meeting->order[0],
            (std::vector<std::string>{"int8", "plain0", "plain1", "plain2", "plain3", "plain4"}));
}

// On the thread that sends, and all at once.
class DirectLink : public Link {
 public:
  void send(Message /*message*/, Completion done) override {
    thread = std::this_thread::get_id();
    done({});
  }

  std::thread::id thread;
};

TEST(EncodedLink, OnceAllIsDeliveredNoThreadStandsBetween) {
  const auto inner = std::make_shared<DirectLink>();
  const auto encoding = Encoding::whole(10, {});
  EncodedLink link(inner, {1, 0, 1.0F, {}, {}, {}}, {{"m", encoding}});
  Floats values(10);
  bool direct = false;
  for (int i = 0; i < 1000 && !direct; ++i) {
    auto answer = sent(link, message_on(values, "m"));
    ASSERT_TRUE(wait_for(answer).ok());
    direct = inner->thread == std::this_thread::get_id();
    EXPECT_FALSE(i == 0 && direct);
  }
  EXPECT_TRUE(direct);
}

TEST(EncodedLink, WhatDoesNotFitItsEncodingIsRefused) {
  Job job(3, {"int8"}, false);
  Floats few(10);
  auto answer = sent(*job.links[0], message_on(few, "int8"));
  const LinkStatus status = wait_for(answer);
  EXPECT_EQ(status.outcome, Outcome::kInvalid);
  EXPECT_NE(status.reason.find("expects an all_reduce of 1000"), std::string::npos);
  Floats values(kElements);
  Message gather = message_on(values, "int8");
  gather.op = Op::kAllGather;
  auto other = sent(*job.links[0], gather);
  EXPECT_EQ(wait_for(other).outcome, Outcome::kInvalid);
}

TEST(EncodedLink, AnEncodingOfOtherRanksIsRefused) {
  Job job(3, {"int8"}, true);
  const EncodedLinkOptions options{4, 0, 1.0F, {}, {}, {}};
  EncodedLink four(std::make_shared<MeetingLink>(job.meeting, 0), options, job.encodings[0]);
  Floats values(kElements);
  auto answer = sent(four, message_on(values, "int8"));
  EXPECT_NE(wait_for(answer).reason.find("rank 0 of 3 owners; expected rank 0 of 4"),
            std::string::npos);
}

}  // namespace
}  // namespace deft
