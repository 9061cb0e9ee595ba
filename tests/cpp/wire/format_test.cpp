#include "wire/format.h"

#include <gtest/gtest.h>

#include "core/errors.h"

namespace deft::wire {
namespace {

TEST(Format, NamesComeBack) {
  for (const Format format : kAllFormats) EXPECT_EQ(format_of(name_of(format)), format);
  EXPECT_STREQ(name_of(Format::kE4m3), "e4m3");
}

TEST(Format, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    (void)format_of("int2");
    FAIL();
  } catch (const WireError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown wire format 'int2', expected one of f32, f16, bf16, e4m3, int8, int4");
  }
}

TEST(Format, AMessageIsAsLongAsItsScalesAndCodes) {
  EXPECT_EQ(encoded_bytes(Format::kF32, 3), 12);
  EXPECT_EQ(encoded_bytes(Format::kF16, 2), 4);
  EXPECT_EQ(encoded_bytes(Format::kBf16, 3), 8);
  EXPECT_EQ(encoded_bytes(Format::kInt8, 256), 4 + 256);
  EXPECT_EQ(encoded_bytes(Format::kE4m3, 257), 8 + 257 + 3);
  EXPECT_EQ(encoded_bytes(Format::kInt4, 64), 4 + 32);
  EXPECT_EQ(encoded_bytes(Format::kInt4, 1), 4 + 4);
  EXPECT_EQ(encoded_bytes(Format::kInt4, 40), 4 + 32);
  EXPECT_EQ(encoded_bytes(Format::kInt4, 64 + 30), 8 + 32 + 32);
}

TEST(Format, EveryLengthIsAMultipleOfFourAndGrows) {
  for (const Format format : kAllFormats) {
    EXPECT_EQ(encoded_bytes(format, 0), 0);
    for (std::int64_t elements = 1; elements < 1000; ++elements) {
      const std::int64_t bytes = encoded_bytes(format, elements);
      EXPECT_EQ(bytes % 4, 0);
      EXPECT_GE(bytes, encoded_bytes(format, elements - 1));
    }
  }
}

TEST(Format, LargeMessagesSaveWhatTheFormatPromises) {
  constexpr std::int64_t kElements = 1'000'000'000'000;
  const auto ratio = [](Format format) {
    return 4.0 * kElements / static_cast<double>(encoded_bytes(format, kElements));
  };
  EXPECT_NEAR(ratio(Format::kInt8), 3.94, 0.01);
  EXPECT_NEAR(ratio(Format::kInt4), 7.11, 0.01);
}

TEST(Format, LessThanNothingIsRefused) {
  EXPECT_THROW((void)encoded_bytes(Format::kInt8, -1), WireError);
}

}  // namespace
}  // namespace deft::wire
