#include "cuda/multi_combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "cuda/dtype.h"
#include "cuda/event.h"
#include "cuda/multi_combine_work.h"
#include "segment_support.h"

namespace {

using namespace deft_cuda;
using namespace deft_cuda::testing;

template <class Number, int Arrays>
void play_combine(const DeftSegments& segments, const CombineJob& job) {
  play<Arrays>(segments,
               [&](const Row<Arrays>* rows, std::int64_t count, std::int64_t chunk, int thread) {
                 combine_chunk<Number>(rows, count, chunk, thread, job);
               });
}

// out, x, y, z of such types with random values.
template <class Out, class X, class Y, class Z>
struct Arrays {
  std::vector<std::int64_t> lengths = sizes();
  Runs<Out> out;
  Runs<X> x;
  Runs<Y> y;
  Runs<Z> z;

  explicit Arrays(std::int64_t past)
      : out(lengths, {0}), x(lengths, {past}), y(lengths, {0}), z(lengths, {0}) {
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    x.fill([&] { return narrow<X>(normal(random)); });
    y.fill([&] { return narrow<Y>(normal(random)); });
    z.fill([&] { return narrow<Z>(normal(random)); });
  }

  Segments placed(int arrays) {
    Segments segments = make(arrays, lengths);
    out.place(*segments, 0);
    x.place(*segments, 1);
    if (arrays > 2) y.place(*segments, 2);
    if (arrays > 3) z.place(*segments, 3);
    return segments;
  }

  // terms(x, y, z): what is to be added up. `unit`: the rounding error of the output's type and of
  // the arithmetic, which makes at most five of them.
  template <class Terms>
  void expect(Terms terms, double unit, double arithmetic) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      for (std::int64_t k = 0; k < lengths[i]; ++k) {
        double sum = 0.0;
        double size = 0.0;
        for (const double term : terms(x.value(i, k), y.value(i, k), z.value(i, k))) {
          sum += term;
          size += std::abs(term);
        }
        const double error = 5.0 * arithmetic * size + 1.01 * unit * std::abs(sum) + 0x1p-25;
        ASSERT_NEAR(out.value(i, k), sum, error) << i << ' ' << k;
      }
    }
  }
};

using Terms = std::vector<double>;

TEST(MultiCombine, AddsOneTwoAndThree) {
  const CombineJob job{kDeftLinear, {}, {0.25, 1.0, -0.25}};
  for (std::int64_t past = 0; past < 2; ++past) {
    Arrays<float, float, float, float> arrays(past);
    const auto gaps = arrays.out.gaps();
    play_combine<float, 4>(*arrays.placed(4), job);
    arrays.expect([](double x, double y, double z) { return Terms{0.25 * x, y, -0.25 * z}; }, 0.0,
                  0x1p-24);
    EXPECT_EQ(arrays.out.gaps(), gaps);
    play_combine<float, 3>(*arrays.placed(3), {kDeftLinear, {}, {0.25, 1.0, 0.0}});
    arrays.expect([](double x, double y, double) { return Terms{0.25 * x, y}; }, 0.0, 0x1p-24);
    play_combine<float, 2>(*arrays.placed(2), {kDeftLinear, {}, {0.25, 0.0, 0.0}});
    arrays.expect([](double x, double, double) { return Terms{0.25 * x}; }, 0.0, 0x1p-24);
  }
}

TEST(MultiCombine, TakesAnyTypes) {
  const auto linear = [](double x, double y, double z) { return Terms{0.5 * x, y, -0.5 * z}; };
  Arrays<BFloat16, float, Half, BFloat16> mixed(1);
  play_combine<float, 4>(
      *mixed.placed(4),
      {kDeftLinear, {kDeftBFloat16, kDeftFloat32, kDeftFloat16, kDeftBFloat16}, {0.5, 1.0, -0.5}});
  mixed.expect(linear, 0x1p-8, 0x1p-24);
  Arrays<Half, float, Half, float> halves(0);
  play_combine<float, 4>(
      *halves.placed(4),
      {kDeftLinear, {kDeftFloat16, kDeftFloat32, kDeftFloat16, kDeftFloat32}, {0.5, 1.0, -0.5}});
  halves.expect(linear, 0x1p-11, 0x1p-24);
  Arrays<double, float, double, double> doubles(0);
  play_combine<double, 4>(
      *doubles.placed(4),
      {kDeftLinear, {kDeftFloat64, kDeftFloat32, kDeftFloat64, kDeftFloat64}, {0.5, 1.0, -0.5}});
  doubles.expect(linear, 0.0, 0x1p-53);
}

TEST(MultiCombine, CompensatesAsDcAsgdDoes) {
  Arrays<float, float, float, float> arrays(1);
  const auto terms = [](double g, double now, double then) {
    return Terms{g, 0.04 * g * g * now, -0.04 * g * g * then};
  };
  play_combine<float, 4>(*arrays.placed(4), {kDeftCompensated, {}, {0.04, 0.0, 0.0}});
  arrays.expect(terms, 0.0, 0x1p-24);
}

TEST(MultiCombine, WritesOverAnInput) {
  Arrays<float, float, float, float> arrays(0);
  const auto before = arrays.x;
  const auto segments = arrays.placed(3);
  arrays.x.place(*segments, 0);
  play_combine<float, 3>(*segments, {kDeftLinear, {}, {2.0, 1.0, 0.0}});
  Runs<float> kept = before;
  for (std::size_t i = 0; i < arrays.lengths.size(); ++i) {
    for (std::int64_t k = 0; k < arrays.lengths[i]; ++k) {
      ASSERT_EQ(arrays.x.at(i)[k], std::fmaf(1.0F, arrays.y.at(i)[k], 2.0F * kept.at(i)[k]));
    }
  }
}

TEST(MultiCombine, FailsWithAReasonInsteadOfACrash) {
  Arrays<float, float, float, float> arrays(0);
  DeftCombine combine{kDeftLinear, {}, {1.0, 1.0, 1.0}, deft_cuda_device_count()};
  const int code = deft_multi_combine(arrays.placed(4).get(), &combine, nullptr);
  EXPECT_LT(code, 0) << "one past the last device";
  EXPECT_FALSE(std::string(deft_cuda_error(code)).empty());
  EXPECT_LT(deft_multi_combine(nullptr, &combine, nullptr), 0);
  EXPECT_LT(deft_multi_combine(make(4, {0}).get(), nullptr, nullptr), 0);
  EXPECT_LT(deft_multi_combine(make(1, {0}).get(), &combine, nullptr), 0) << "nothing to add";
  EXPECT_EQ(deft_multi_combine(make(4, {0}).get(), &combine, nullptr),
            deft_cuda_built() == 1 ? 0 : -1);
  combine.formula = kDeftCompensated;
  EXPECT_LT(deft_multi_combine(make(3, {0}).get(), &combine, nullptr), 0) << "it needs three";
  combine.formula = 7;
  EXPECT_LT(deft_multi_combine(make(4, {0}).get(), &combine, nullptr), 0) << "no such formula";
}

}  // namespace
