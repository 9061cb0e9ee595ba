#include "wire/arithmetic.h"

#include <gtest/gtest.h>

#include "wire/wire_support.h"

namespace deft::wire {
namespace {

// By definition: sign, 4 bits of exponent with a bias of 7, 3 of fraction.
float e4m3_by_definition(std::uint32_t code) {
  const int exponent = static_cast<int>(code >> 3 & 0xFU);
  const auto fraction = static_cast<float>(code & 7U);
  const float size =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8.0F + fraction, exponent - 10);
  return (code & 0x80U) != 0 ? -size : size;
}

TEST(Arithmetic, EveryE4m3HasItsWorthAndComesBack) {
  for (std::uint32_t code = 0; code < 256; ++code) {
    const float worth = worth_of_e4m3(code);
    if ((code & 0x7FU) == 0x7FU) {
      EXPECT_TRUE(std::isnan(worth)) << code;
      continue;
    }
    EXPECT_EQ(worth, e4m3_by_definition(code)) << code;
    const Coded coded = e4m3_of(worth);
    EXPECT_EQ(coded.code, code);
    EXPECT_EQ(raw(coded.worth), raw(worth)) << code;
  }
}

// Between two neighbours: below the middle to the lower, above it to the upper, on it to the even.
template <class Of, class Worth>
void expect_rounding(std::uint32_t past, Of of, Worth worth) {
  for (std::uint32_t low = 0; low + 1 < past; ++low) {
    const std::uint32_t high = low + 1;
    const float middle = worth(low) + (worth(high) - worth(low)) / 2.0F;
    ASSERT_EQ(of(middle), (low & 1U) == 0 ? low : high) << low;
    ASSERT_EQ(of(std::nextafter(middle, 0.0F)), low) << low;
    ASSERT_EQ(of(std::nextafter(middle, kInfinity)), high) << low;
  }
}

TEST(Arithmetic, RoundsToTheNearestAndTiesToEven) {
  // Functions that are always inlined have no address.
  expect_rounding(
      0x7F, [](float value) { return e4m3_of(value).code; },
      [](std::uint32_t code) { return worth_of_e4m3(code); });
  expect_rounding(
      0x7C00, [](float value) { return f16_of(value, false).code; },
      [](std::uint32_t code) { return worth_of_f16(code); });
  expect_rounding(
      0x7F80, [](float value) { return bf16_of(value, false).code; },
      [](std::uint32_t code) { return worth_of_bf16(code); });
}

TEST(Arithmetic, EveryNumberOf16BitsComesBack) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const bool half = (code & 0x7FFFU) <= 0x7C00U;
    const std::uint32_t bfloat = (code & 0x7FFFU) <= 0x7F80U ? code : 0x7FFFU;
    ASSERT_EQ(f16_of(worth_of_f16(code), false).code, half ? code : 0x7FFFU);
    ASSERT_EQ(bf16_of(worth_of_bf16(code), false).code, bfloat);
  }
}

TEST(Arithmetic, FiniteValuesSaturateOnlyWhereWanted) {
  EXPECT_EQ(f16_of(65520.0F, false).code, 0x7C00U);
  EXPECT_EQ(f16_of(65520.0F, true).code, 0x7BFFU);
  EXPECT_EQ(f16_of(-kMax, true).code, 0xFBFFU);
  EXPECT_EQ(f16_of(kInfinity, true).code, 0x7C00U);
  EXPECT_EQ(f16_of(-kInfinity, true).code, 0xFC00U);
  EXPECT_EQ(f16_of(-std::nanf(""), true).code, 0x7FFFU);
  EXPECT_EQ(bf16_of(kMax, false).code, 0x7F80U);
  EXPECT_EQ(bf16_of(kMax, true).code, 0x7F7FU);
  EXPECT_EQ(bf16_of(kInfinity, true).code, 0x7F80U);
  EXPECT_EQ(bf16_of(from_raw(0xFF800001U), false).code, 0x7FFFU);
}

TEST(Arithmetic, IntegersRoundToTheNearestAndTiesToEven) {
  for (const float value :
       {0.5F, 1.5F, -0.5F, -2.5F, 126.5F, 127.4F, -127.49F, 3.0F, 0.49999997F}) {
    const Coded coded = integer_of(value);
    EXPECT_EQ(coded.worth, std::nearbyint(value)) << value;
    EXPECT_EQ(static_cast<std::int32_t>(coded.code), static_cast<int>(std::nearbyint(value)));
  }
  EXPECT_FALSE(std::signbit(integer_of(-0.3F).worth));  // as the decoder has it
}

TEST(Arithmetic, NoScaleMakesTheLargestValueInfinite) {
  for (const float top : {7.0F, 127.0F, 448.0F}) {
    for (std::uint32_t down = 0; down < 4096; ++down) {
      const std::uint32_t largest = raw(kMax) - down;
      const Scale scale = scale_of(largest, top);
      ASSERT_TRUE(std::isfinite(scale.scale * top)) << largest;
      ASSERT_NEAR(scale.scale * top / from_raw(largest), 1.0F, 3e-7F);
    }
  }
}

TEST(Arithmetic, AScaleIsNormalOrZero) {
  for (const float top : {7.0F, 127.0F, 448.0F}) {
    EXPECT_EQ(scale_of(0, top).scale, 0.0F);
    EXPECT_EQ(scale_of(0, top).inverse, 0.0F);
    EXPECT_EQ(scale_of(1, top).scale, 0.0F);
    EXPECT_EQ(scale_of(raw(kLeastNormal * top), top).scale, kLeastNormal);
    EXPECT_EQ(scale_of(raw(kLeastNormal * top) - 4, top).scale, 0.0F);
    EXPECT_TRUE(std::isnan(scale_of(kInfinityBits, top).scale));
    EXPECT_TRUE(std::isnan(scale_of(kNanBits, top).scale));
  }
}

// Whatever the largest value is, it gets the top code, never one beyond it.
TEST(Arithmetic, TheLargestValueGetsTheTopCode) {
  for (const float value : any_finite(20'000, 5)) {
    const std::uint32_t largest = magnitude_of(value);
    const Scale int8 = scale_of(largest, 127.0F);
    if (int8.scale == 0.0F) continue;
    ASSERT_EQ(integer_of(from_raw(largest) * int8.inverse).worth, 127.0F) << largest;
    const Scale int4 = scale_of(largest, 7.0F);
    ASSERT_EQ(integer_of(from_raw(largest) * int4.inverse).worth, 7.0F) << largest;
    const Scale e4m3 = scale_of(largest, 448.0F);
    if (e4m3.scale == 0.0F) continue;
    ASSERT_EQ(e4m3_of(from_raw(largest) * e4m3.inverse).code, 0x7EU) << largest;
  }
}

}  // namespace
}  // namespace deft::wire
