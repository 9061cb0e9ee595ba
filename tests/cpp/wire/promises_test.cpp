// What every wire format promises to those who use it; see docs/internals/wire-codec.md.
#include <gtest/gtest.h>

#include <algorithm>

#include "wire/wire_support.h"

namespace deft::wire {
namespace {

const Codec kCodec;

constexpr Format kBlockFormats[] = {Format::kE4m3, Format::kInt8, Format::kInt4};
constexpr Format kHalves[] = {Format::kF16, Format::kBf16};

Floats through(Format format, const Floats& values, Floats* rest = nullptr) {
  return decoded(kCodec, format, encoded(kCodec, format, values, rest), values.size());
}

TEST(Promises, WhatAFormatHasComesBackExactly) {
  Floats whole(256);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    whole[i] = std::ldexp(static_cast<float>(static_cast<int>(i % 255) - 127), -30);
  }
  EXPECT_TRUE(same(through(Format::kInt8, whole), whole));
  Floats nibbles(64);
  for (std::size_t i = 0; i < nibbles.size(); ++i) {
    nibbles[i] = std::ldexp(static_cast<float>(static_cast<int>(i % 15) - 7), 90);
  }
  EXPECT_TRUE(same(through(Format::kInt4, nibbles), nibbles));
  EXPECT_TRUE(same(through(Format::kE4m3, {448.0F, -0.0F, 0x1p-9F, -416.0F, 0x1.2p-6F}),
                   {448.0F, -0.0F, 0x1p-9F, -416.0F, 0x1.2p-6F}));
  const Floats any = any_finite(1000, 1);
  EXPECT_TRUE(same(through(Format::kF32, any), any));
}

// Of a block's largest value: half a step of an integer format; of a value itself in e4m3.
TEST(Promises, ErrorsAreWithinHalfAStep) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Floats values = gaussian(256, seed);
    float largest = 0.0F;
    for (const float value : values) largest = std::max(largest, std::fabs(value));
    const Floats int8 = through(Format::kInt8, values);
    const Floats e4m3 = through(Format::kE4m3, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(std::fabs(int8[i] - values[i]), largest / 127 * 0.50001F);
      const float step = std::max(std::fabs(values[i]) / 16, largest / 448 * 0x1p-10F);
      EXPECT_LE(std::fabs(e4m3[i] - values[i]), step * 1.0001F);
    }
  }
}

TEST(Promises, NothingIsLost) {
  for (const Format format : kAllFormats) {
    const Floats values = gaussian(5000, 1);
    Floats rest = gaussian(5000, 2, 0.01F);
    const Floats before = rest;
    const Floats out = through(format, values, &rest);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double sum = static_cast<double>(values[i] + before[i]);
      const double kept = static_cast<double>(out[i]) + static_cast<double>(rest[i]);
      // All of these subtractions are exact: the decoded value is within a factor of two, or zero.
      EXPECT_EQ(kept, sum) << name_of(format);
    }
  }
}

TEST(Promises, RestsOfOneSizeDoNotPileUp) {
  for (const Format format : kAllFormats) {
    const Floats values = gaussian(256, 9);
    Floats rest(256);
    std::vector<double> applied(256);
    constexpr int kSteps = 200;
    for (int step = 0; step < kSteps; ++step) {
      const Floats out = through(format, values, &rest);
      for (std::size_t i = 0; i < out.size(); ++i) applied[i] += static_cast<double>(out[i]);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(applied[i] / kSteps, static_cast<double>(values[i]), 0.005) << name_of(format);
    }
  }
}

TEST(Promises, ZerosStayZeros) {
  for (const Format format : kAllFormats) {
    Floats rest(300);
    EXPECT_TRUE(same(through(format, Floats(300), &rest), Floats(300))) << name_of(format);
    EXPECT_TRUE(same(rest, Floats(300))) << name_of(format);
  }
}

TEST(Promises, ABlockThatIsTooSmallForAScaleStaysInTheRest) {
  for (const Format format : kBlockFormats) {
    const Floats values = gaussian(300, 5, 1e-40F);
    Floats rest(300);
    for (const float out : through(format, values, &rest)) EXPECT_EQ(out, 0.0F);
    EXPECT_TRUE(same(rest, values)) << name_of(format);
  }
}

TEST(Promises, ABlockThatIsNotFiniteDecodesToNaNAndKeepsItsRests) {
  for (const Format format : kBlockFormats) {
    const auto block = static_cast<std::size_t>(block_elements(format));
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      Floats values = gaussian(3 * block + 7, 5);
      values[block + 3] = bad;
      Floats rest = gaussian(values.size(), 6, 0.01F);
      const Floats before = rest;
      const Floats out = through(format, values, &rest);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool inside = i / block == 1;
        EXPECT_EQ(std::isnan(out[i]), inside);
        EXPECT_EQ(raw(rest[i]) == raw(before[i]), inside);
      }
    }
  }
}

TEST(Promises, ASumThatOverflowsIsNotFinite) {
  Floats values(256, 1.0F);
  Floats rest(256, 0.25F);
  values[9] = rest[9] = kMax;
  for (const Format format : kBlockFormats) {
    Floats own = rest;
    EXPECT_TRUE(std::isnan(through(format, values, &own)[9]));
    EXPECT_EQ(own[9], kMax);
  }
  for (const Format format : kHalves) {
    Floats own = rest;
    EXPECT_EQ(through(format, values, &own)[9], kInfinity);
    EXPECT_EQ(own[9], kMax);
  }
}

TEST(Promises, HalvesSaturateWithARestAndOverflowWithout) {
  const Floats values = {70'000.0F, -1e9F, kInfinity, -kInfinity, std::nanf(""), 1.0F};
  EXPECT_TRUE(same(through(Format::kF16, values),
                   {kInfinity, -kInfinity, kInfinity, -kInfinity, std::nanf(""), 1.0F}));
  Floats rest = {0, 0, 5, 6, 7, 0};
  EXPECT_TRUE(same(through(Format::kF16, values, &rest),
                   {65504.0F, -65504.0F, kInfinity, -kInfinity, std::nanf(""), 1.0F}));
  EXPECT_TRUE(same(rest, {4496.0F, -1e9F + 65504.0F, 5, 6, 7, 0}));
  EXPECT_TRUE(same(through(Format::kBf16, {kMax}), {kInfinity}));
  Floats bf16_rest = {0};
  EXPECT_TRUE(same(through(Format::kBf16, {-kMax}, &bf16_rest), {-0x1.FEp127F}));
  EXPECT_EQ(bf16_rest[0], -kMax + 0x1.FEp127F);
}

TEST(Promises, TheLargestFloatsStayFinite) {
  for (const Format format : kBlockFormats) {
    for (int down = 0; down < 300; ++down) {
      const float largest = from_raw(raw(kMax) - static_cast<std::uint32_t>(down));
      Floats rest(1);
      const Floats out = through(format, {largest}, &rest);
      ASSERT_TRUE(std::isfinite(out[0]) && std::isfinite(rest[0])) << name_of(format);
      ASSERT_EQ(static_cast<double>(out[0]) + static_cast<double>(rest[0]),
                static_cast<double>(largest));
    }
  }
}

}  // namespace
}  // namespace deft::wire
