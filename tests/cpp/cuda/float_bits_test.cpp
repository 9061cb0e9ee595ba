#include "cuda/copy/float_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using namespace deft_cuda;

constexpr std::uint16_t kInfiniteHalf = 0x7C00;
constexpr std::uint16_t kInfiniteBFloat16 = 0x7F80;

// The value by definition: sign, 5 bits of exponent, 10 of fraction.
float half_by_definition(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const int fraction = half & 0x3FF;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (half & 0x8000) != 0 ? -size : size;
}

TEST(FloatBits, EveryHalfHasItsValueAndComesBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = float_of_half(half);
    if ((half & 0x7FFF) > kInfiniteHalf) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(float_of_half(half_of(value)))) << bits;
      continue;
    }
    if ((half & 0x7FFF) == kInfiniteHalf) {
      EXPECT_TRUE(std::isinf(value)) << bits;
    } else {
      EXPECT_EQ(value, half_by_definition(half)) << bits;
      EXPECT_EQ(std::signbit(value), (half & 0x8000) != 0) << bits;
    }
    EXPECT_EQ(half_of(value), half) << bits;
  }
}

// Between two neighbours: below the middle to the lower, above it to the upper, on it to the even.
template <class OfFloat, class ToFloat>
void expect_rounding(std::uint16_t infinite, OfFloat of, ToFloat to) {
  for (std::uint16_t low = 0; low + 1 < infinite; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const float middle = to(low) + (to(high) - to(low)) / 2.0F;
    const std::uint16_t even = (low & 1) == 0 ? low : high;
    ASSERT_EQ(of(middle), even) << low;
    ASSERT_EQ(of(-middle), even | 0x8000) << low;
    ASSERT_EQ(of(std::nextafter(middle, 0.0F)), low) << low;
    ASSERT_EQ(of(std::nextafter(middle, HUGE_VALF)), high) << low;
  }
}

TEST(FloatBits, HalvesRoundToTheNearestAndTiesToEven) {
  expect_rounding(kInfiniteHalf, half_of, float_of_half);
  EXPECT_EQ(half_of(65519.0F), 0x7BFF);
  EXPECT_EQ(half_of(65520.0F), kInfiniteHalf);
  EXPECT_EQ(half_of(-1e9F), 0x8000 | kInfiniteHalf);
}

TEST(FloatBits, BFloat16RoundsToTheNearestAndTiesToEven) {
  expect_rounding(kInfiniteBFloat16, bfloat16_of, float_of_bfloat16);
  EXPECT_EQ(bfloat16_of(std::numeric_limits<float>::max()), kInfiniteBFloat16);
  EXPECT_EQ(bfloat16_of(-std::numeric_limits<float>::infinity()), 0x8000 | kInfiniteBFloat16);
  EXPECT_TRUE(std::isnan(float_of_bfloat16(bfloat16_of(std::nanf("")))));
}

}  // namespace
