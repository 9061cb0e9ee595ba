// Exchanges over a mesh; encoded_link_test has those without.
#include "core/link/encoded/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "encoded_job.h"

namespace deft {
namespace {

using testing_support::Floats;
using testing_support::Job;
using testing_support::kElements;
using testing_support::kRaw;
using testing_support::MeetingLink;
using testing_support::MeetsBy;
using testing_support::message_on;
using testing_support::sent;
using testing_support::values_of;
using testing_support::wait_for;

class MeshTest : public testing::TestWithParam<std::tuple<std::size_t, bool>> {
 protected:
  std::size_t ranks_ = std::get<0>(GetParam());
  bool owners_ = std::get<1>(GetParam());
};

TEST_P(MeshTest, OverAMeshTheSameBitsArriveInWhateverOrderRanksSend) {
  const std::vector<std::string> names = {"a", "b", "c"};
  Job plain(ranks_, names, owners_);
  Job meshed(ranks_, names, owners_, MeetsBy::kTag);
  for (unsigned step = 0; step < 5; ++step) {
    std::map<std::string, std::vector<Floats>> values;
    std::vector<std::future<LinkStatus>> answers;
    for (const std::string& name : names) values[name] = values_of(ranks_, step);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string& name = names[(i + rank) % names.size()];
        answers.push_back(sent(*meshed.links[rank], message_on(values[name][rank], name)));
      }
    }
    for (auto& answer : answers) ASSERT_TRUE(wait_for(answer).ok());
    for (const std::string& name : names) {
      std::vector<Floats> expected = values_of(ranks_, step);
      for (const LinkStatus& status : plain.reduce(expected, name)) ASSERT_TRUE(status.ok());
      EXPECT_EQ(values[name], expected) << name << ", step " << step;
    }
  }
  for (const auto& of_rank : meshed.meeting->order) EXPECT_TRUE(of_rank.empty());
}

TEST_P(MeshTest, OverAMeshWhatIsNotEncodedTravelsAsItIs) {
  Job job(ranks_, {"m", "x"}, owners_, MeetsBy::kTag);
  std::vector<Floats> values = values_of(ranks_, 1);
  Floats sums(kElements);
  for (const Floats& of_rank : values) {
    for (std::size_t i = 0; i < kElements; ++i) sums[i] += of_rank[i];
  }
  for (float& sum : sums) sum *= 1.0F / static_cast<float>(ranks_);
  for (const LinkStatus& status : job.reduce(values, "plain")) ASSERT_TRUE(status.ok());
  for (const Floats& of_rank : values) EXPECT_EQ(of_rank, sums);
  for (const auto& of_rank : job.meeting->order) EXPECT_TRUE(of_rank.empty());
}

// Rests are each rank's own, so some have encodings that others have not.
TEST_P(MeshTest, OverAMeshSomeRanksBringRests) {
  Job job(ranks_, {"m"}, owners_, MeetsBy::kTag);
  const auto whole = Encoding::whole(static_cast<std::int64_t>(kElements), kRaw);
  std::fill(whole->rest().begin(), whole->rest().end(), static_cast<float>(ranks_));
  Encodings with_rests = job.encodings[0];
  with_rests["plain"] = whole;
  job.links[0] = std::make_shared<EncodedLink>(std::make_shared<MeetingLink>(job.meeting, 0),
                                               job.options[0], with_rests);
  for (const float extra : {1.0F, 0.0F}) {
    std::vector<Floats> values = values_of(ranks_, 1);
    for (const LinkStatus& status : job.reduce(values, "m")) ASSERT_TRUE(status.ok());
    for (const Floats& of_rank : values) EXPECT_EQ(of_rank, values[0]);
    values.assign(ranks_, Floats(kElements, 5.0F));
    for (const LinkStatus& status : job.reduce(values, "plain")) ASSERT_TRUE(status.ok());
    for (const Floats& of_rank : values) EXPECT_FLOAT_EQ(of_rank[10], 5.0F + extra);
  }
  for (const auto& of_rank : job.meeting->order) EXPECT_TRUE(of_rank.empty());
}

INSTANTIATE_TEST_SUITE_P(Ranks, MeshTest,
                         testing::Combine(testing::Values(2UL, 3UL, 4UL, 8UL), testing::Bool()));

}  // namespace
}  // namespace deft
