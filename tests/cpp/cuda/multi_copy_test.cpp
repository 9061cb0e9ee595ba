#include "cuda/copy/multi_copy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "cuda/copy/multi_copy_work.h"
#include "cuda/dtype.h"
#include "cuda/event.h"
#include "segment_support.h"

namespace {

using namespace deft_cuda;
using namespace deft_cuda::testing;

template <class T>
constexpr double kUnit = std::is_same_v<T, double>  ? 0x1p-53
                         : std::is_same_v<T, float> ? 0x1p-24
                         : std::is_same_v<T, Half>  ? 0x1p-11
                                                    : 0x1p-8;

template <class From, class To>
void play_copy(const DeftSegments& segments, const CopyJob& job) {
  play<2>(segments, [&](const Row<2>* rows, std::int64_t count, std::int64_t chunk, int thread) {
    copy_chunk<From, To>(rows, count, chunk, thread, job);
  });
}

template <class From, class To>
struct Pair {
  using F = From;
  using T = To;
};

template <class P>
class CopyOf : public ::testing::Test {};
using Pairs =
    ::testing::Types<Pair<float, float>, Pair<float, Half>, Pair<float, BFloat16>,
                     Pair<float, double>, Pair<Half, float>, Pair<Half, Half>, Pair<Half, BFloat16>,
                     Pair<Half, double>, Pair<BFloat16, float>, Pair<BFloat16, Half>,
                     Pair<BFloat16, BFloat16>, Pair<BFloat16, double>, Pair<double, float>,
                     Pair<double, Half>, Pair<double, BFloat16>, Pair<double, double>>;
TYPED_TEST_SUITE(CopyOf, Pairs);

template <class From, class To>
void expect_copy(std::int64_t past_from, std::int64_t past_to, const CopyJob& job) {
  const auto lengths = sizes();
  Runs<From> from(lengths, {past_from});
  Runs<To> to(lengths, {past_to});
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  from.fill([&] { return narrow<From>(normal(random)); });
  to.fill([&] { return narrow<To>(normal(random)); });
  Runs<To> before = to;
  const auto segments = make(2, lengths);
  from.place(*segments, 0);
  to.place(*segments, 1);
  const auto gaps = to.gaps();
  play_copy<From, To>(*segments, job);
  EXPECT_EQ(to.gaps(), gaps) << "wrote between the runs";
  constexpr double kArithmetic = std::is_same_v<Math<From, To>, double> ? 0x1p-53 : 0x1p-24;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t k = 0; k < lengths[i]; ++k) {
      const double scaled = job.scale * from.value(i, k);
      const double kept = job.accumulate ? before.value(i, k) : 0.0;
      // One rounding of the sum, one of the cast (two, of a double by way of float).
      const double error = std::abs(scaled + kept) *
                           (kArithmetic + 1.001 * kUnit<To>)+(
                               sizeof(To) == 2 ? 0x1p-24 * std::abs(scaled + kept) + 0x1p-25 : 0.0);
      ASSERT_NEAR(to.value(i, k), scaled + kept, error) << "segment " << i << " element " << k;
    }
  }
}

TYPED_TEST(CopyOf, IsWhatDoubleComputesWhereverItLies) {
  using From = typename TypeParam::F;
  using To = typename TypeParam::T;
  for (std::int64_t from = 0; from < Runs<From>::kPerLine; ++from) {
    for (std::int64_t to = 0; to < Runs<To>::kPerLine; ++to) {
      expect_copy<From, To>(from, to, {0.75, (from + to) % 2 == 1});
    }
  }
  expect_copy<From, To>(0, 0, {1.0, true});
  expect_copy<From, To>(0, 0, {1.0, false});
}

TYPED_TEST(CopyOf, TakesEveryElementOnce) {
  using From = typename TypeParam::F;
  using To = typename TypeParam::T;
  std::vector<std::int64_t> lengths(1500, 3);
  lengths[700] = 30001;
  Runs<From> from(lengths, {0, 1});
  Runs<To> to(lengths, {0, 1});
  from.fill([] { return narrow<From>(1.0F); });
  to.fill([] { return narrow<To>(0.0F); });
  const auto segments = make(2, lengths);
  from.place(*segments, 0);
  to.place(*segments, 1);
  play_copy<From, To>(*segments, {1.0, true});
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t k = 0; k < lengths[i]; ++k) ASSERT_EQ(to.value(i, k), 1.0) << i << ' ' << k;
  }
}

TEST(MultiCopy, BytesGoAsTheyAre) {
  const auto lengths = sizes();
  for (std::int64_t past = 0; past < 16; ++past) {
    Runs<Byte> from(lengths, {past});
    Runs<Byte> to(lengths, {past, 0});
    std::mt19937 random(1);
    from.fill([&] { return static_cast<Byte>(random()); });
    const auto segments = make(2, lengths);
    from.place(*segments, 0);
    to.place(*segments, 1);
    const auto gaps = to.gaps();
    play_copy<Byte, Byte>(*segments, {1.0, false});
    EXPECT_EQ(to.gaps(), gaps);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      EXPECT_EQ(std::memcmp(from.at(i), to.at(i), static_cast<std::size_t>(lengths[i])), 0);
    }
  }
}

TEST(MultiCopy, InPlaceScales) {
  Runs<float> values({10000}, {1});
  values.fill([] { return 3.0F; });
  const auto segments = make(2, {10000});
  values.place(*segments, 0);
  values.place(*segments, 1);
  play_copy<float, float>(*segments, {0.5, false});
  for (std::int64_t k = 0; k < 10000; ++k) ASSERT_EQ(values.value(0, k), 1.5);
}

TEST(MultiCopy, FailsWithAReasonInsteadOfACrash) {
  Runs<float> values({4}, {0});
  const auto segments = make(2, {4});
  values.place(*segments, 0);
  values.place(*segments, 1);
  DeftCopy copy{kDeftFloat32, kDeftFloat32, 1.0, 0, 0};
  EXPECT_LT(deft_multi_copy(nullptr, &copy, nullptr), 0);
  EXPECT_LT(deft_multi_copy(segments.get(), nullptr, nullptr), 0);
  for (const int wrong : {-1, 5, static_cast<int>(kDeftBytes)}) {
    DeftCopy other = copy;
    other.to_dtype = wrong;
    EXPECT_LT(deft_multi_copy(segments.get(), &other, nullptr), 0) << wrong;
  }
  DeftCopy bytes{kDeftBytes, kDeftBytes, 2.0, 0, 0};
  EXPECT_LT(deft_multi_copy(segments.get(), &bytes, nullptr), 0) << "bytes have no scale";
  const auto unplaced = make(2, {4});
  EXPECT_LT(deft_multi_copy(unplaced.get(), &copy, nullptr), 0) << "no addresses";
  const auto three = make(3, {0});
  EXPECT_LT(deft_multi_copy(three.get(), &copy, nullptr), 0) << "three arrays";
  const auto empty = make(2, {0, 0});
  if (deft_cuda_built() == 1) {
    EXPECT_EQ(deft_multi_copy(empty.get(), &copy, nullptr), 0);
  } else {
    EXPECT_LT(deft_multi_copy(empty.get(), &copy, nullptr), 0);
  }
  copy.device = deft_cuda_device_count();
  const int code = deft_multi_copy(segments.get(), &copy, nullptr);
  EXPECT_LT(code, 0) << "one past the last device";
  EXPECT_FALSE(std::string(deft_cuda_error(code)).empty());
}

}  // namespace
