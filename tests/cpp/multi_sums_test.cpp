#include "cuda/multi_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "cuda/dtype.h"
#include "cuda/event.h"
#include "cuda/multi_sums_work.h"
#include "segment_support.h"

namespace {

using namespace deft_cuda;
using namespace deft_cuda::testing;

struct Totals {
  double sums[kDeftSums] = {};
};

template <int Arrays>
Totals play_sums(const DeftSegments& segments, const SumsJob& job) {
  Totals totals;
  play<Arrays>(segments,
               [&](const Row<Arrays>* rows, std::int64_t count, std::int64_t chunk, int thread) {
                 sum_chunk(rows, count, chunk, thread, job, totals.sums);
               });
  return totals;
}

template <class A, class B, class C>
void expect_sums(const SumsJob& job, std::int64_t past_a, std::int64_t past_b) {
  const auto lengths = sizes();
  Runs<A> a(lengths, {past_a});
  Runs<B> b(lengths, {past_b});
  Runs<C> c(lengths, {past_a});
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  a.fill([&] { return narrow<A>(normal(random)); });
  b.fill([&] { return narrow<B>(normal(random)); });
  c.fill([&] { return narrow<C>(normal(random)); });
  const auto two = make(2, lengths);
  const auto three = make(3, lengths);
  for (DeftSegments* segments : {two.get(), three.get()}) {
    a.place(*segments, 0);
    b.place(*segments, 1);
  }
  c.place(*three, 2);
  Totals expected;
  double products = 0.0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t k = 0; k < lengths[i]; ++k) {
      const double x = a.value(i, k);
      const double y = b.value(i, k);
      const double z = c.value(i, k);
      const double terms[kDeftSums] = {x * x, y * y, (x - y) * (x - y), x * y, z * z};
      for (int s = 0; s < kDeftSums; ++s) expected.sums[s] += terms[s];
      products += std::abs(x * y);
    }
  }
  const Totals of_two = play_sums<2>(*two, job);
  const Totals of_three = play_sums<3>(*three, job);
  for (int s = 0; s < kDeftSums; ++s) {
    const double error = 1e-12 * (s == kDeftATimesB ? products : expected.sums[s]);
    EXPECT_NEAR(of_three.sums[s], expected.sums[s], error) << s;
    EXPECT_NEAR(of_two.sums[s], s == kDeftCSquared ? 0.0 : expected.sums[s], error) << s;
  }
}

TEST(MultiSums, AreWhatDoubleSumsUp) {
  for (std::int64_t past_a = 0; past_a < 2; ++past_a) {
    for (std::int64_t past_b = 0; past_b < 2; ++past_b) {
      expect_sums<float, float, float>({{kDeftFloat32, kDeftFloat32, kDeftFloat32}}, past_a,
                                       past_b);
      expect_sums<Half, float, BFloat16>({{kDeftFloat16, kDeftFloat32, kDeftBFloat16}}, past_a,
                                         past_b);
      expect_sums<double, double, Half>({{kDeftFloat64, kDeftFloat64, kDeftFloat16}}, past_a,
                                        past_b);
    }
  }
}

TEST(MultiSums, SquaresOfLargeFloatsDoNotOverflow) {
  Runs<float> a({5}, {0});
  a.fill([] { return 3e38F; });
  const auto segments = make(2, {5});
  a.place(*segments, 0);
  a.place(*segments, 1);
  const Totals totals = play_sums<2>(*segments, {{kDeftFloat32, kDeftFloat32, 0}});
  EXPECT_NEAR(totals.sums[kDeftASquared] / 4.5e77, 1.0, 1e-6);
  EXPECT_EQ(totals.sums[kDeftChangeSquared], 0.0);
}

TEST(MultiSums, FailsWithAReasonInsteadOfACrash) {
  Runs<float> values({4}, {0});
  const auto segments = make(2, {4});
  values.place(*segments, 0);
  values.place(*segments, 1);
  double sums[kDeftSums] = {};
  DeftSumsOf of{{kDeftFloat32, kDeftFloat32, kDeftFloat32}, sums, deft_cuda_device_count()};
  const int code = deft_multi_sums(segments.get(), &of, nullptr);
  EXPECT_LT(code, 0) << "one past the last device";
  EXPECT_FALSE(std::string(deft_cuda_error(code)).empty());
  EXPECT_LT(deft_multi_sums(nullptr, &of, nullptr), 0);
  EXPECT_LT(deft_multi_sums(segments.get(), nullptr, nullptr), 0);
  EXPECT_LT(deft_multi_sums(make(4, {0}).get(), &of, nullptr), 0) << "four arrays";
  EXPECT_EQ(deft_multi_sums(make(2, {0}).get(), &of, nullptr), deft_cuda_built() == 1 ? 0 : -1);
  of.dtypes[1] = kDeftBytes;
  EXPECT_LT(deft_multi_sums(make(2, {0}).get(), &of, nullptr), 0) << "bytes are no numbers";
  of.dtypes[1] = kDeftFloat32;
  of.sums = nullptr;
  EXPECT_LT(deft_multi_sums(make(2, {0}).get(), &of, nullptr), 0) << "nowhere to add to";
}

}  // namespace
