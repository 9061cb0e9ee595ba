#include "core/link/encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/errors.h"

namespace deft {
namespace {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

Floats random_values(std::size_t elements, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(elements);
  for (float& value : values) value = normal(generator);
  return values;
}

Bytes encoded(Encoding& encoding, const Floats& values) {
  Bytes message(static_cast<std::size_t>(encoding.bytes()));
  encoding.encode(values.data(), message.data());
  return message;
}

class EncodingTest : public testing::TestWithParam<wire::Format> {};

TEST_P(EncodingTest, TheSumIsThatOfTheCodecInTheOrderOfRanks) {
  constexpr std::size_t kElements = 1003;
  const std::vector<ValueRange> raw = {{0, 4}, {500, 4}};
  Bytes messages;
  std::vector<Floats> sent;
  std::int64_t bytes = 0;
  for (unsigned rank = 0; rank < 3; ++rank) {
    Encoding mine(GetParam(), kElements, raw);
    sent.push_back(random_values(kElements, rank));
    const Bytes message = encoded(mine, sent.back());
    messages.insert(messages.end(), message.begin(), message.end());
    bytes = mine.bytes();
  }
  const Encoding any(GetParam(), kElements, raw);
  Floats sums(kElements);
  any.sum(messages.data(), 3, 0.25F, sums.data());

  const wire::Codec codec;
  const auto header = [&](std::size_t i) { return i < 4 || (i >= 500 && i < 504); };
  for (std::size_t i = 0; i < kElements; ++i) {
    if (header(i)) {
      EXPECT_EQ(sums[i], (sent[0][i] + sent[1][i] + sent[2][i]) * 0.25F) << i;
    }
  }
  // The second part by hand: values 504 .. 1002, after a header, 496 values and a header.
  const std::int64_t begin = 16 + wire::encoded_bytes(GetParam(), 496) + 16;
  Floats expected(499);
  codec.decode(GetParam(), messages.data() + begin, 499, expected.data());
  codec.decode_add(GetParam(), messages.data() + bytes + begin, 499, expected.data());
  codec.decode_add(GetParam(), messages.data() + 2 * bytes + begin, 499, expected.data());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(sums[504 + i], expected[i] * 0.25F);
}

TEST_P(EncodingTest, WhatRoundingLeavesIsSentLater) {
  constexpr std::size_t kElements = 700;
  Encoding encoding(GetParam(), kElements, {{10, 4}});
  std::vector<double> produced(kElements);
  std::vector<double> arrived(kElements);
  Floats decoded(kElements);
  for (unsigned step = 0; step < 50; ++step) {
    const Floats values = random_values(kElements, step);
    const Bytes message = encoded(encoding, values);
    encoding.sum(message.data(), 1, 1.0F, decoded.data());
    for (std::size_t i = 0; i < kElements; ++i) {
      produced[i] += static_cast<double>(values[i]);
      arrived[i] += static_cast<double>(decoded[i]);
    }
  }
  const std::span<float> rest = encoding.rest();
  ASSERT_EQ(rest.size(), GetParam() == wire::Format::kF32 ? 0U : kElements - 4);
  for (std::size_t i = 0; i < kElements && !rest.empty(); ++i) {
    const bool header = i >= 10 && i < 14;
    const double left = header ? 0.0 : static_cast<double>(rest[i < 10 ? i : i - 4]);
    EXPECT_NEAR(produced[i], arrived[i] + left, 1e-4) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EncodingTest, testing::ValuesIn(wire::kAllFormats),
                         [](const auto& format) { return wire::name_of(format.param); });

TEST(Encoding, BytesAreThoseOfItsParts) {
  const Encoding whole(wire::Format::kInt8, 512, {});
  EXPECT_EQ(whole.bytes(), 512 + 2 * 4);
  const Encoding cut(wire::Format::kInt8, 516, {{256, 4}});
  EXPECT_EQ(cut.bytes(), 512 + 2 * 4 + 16);
  EXPECT_EQ(Encoding(wire::Format::kInt8, 4, {{0, 4}}).bytes(), 16);
}

TEST(Encoding, WhatIsNotFiniteArrivesAndLeavesItsRest) {
  Encoding encoding(wire::Format::kInt8, 512, {});
  Floats values = random_values(512, 1);
  (void)encoded(encoding, values);
  const Floats before(encoding.rest().begin(), encoding.rest().end());
  values[300] = std::numeric_limits<float>::infinity();
  Floats sums(512);
  const Bytes message = encoded(encoding, values);
  encoding.sum(message.data(), 1, 0.5F, sums.data());
  EXPECT_FALSE(std::isfinite(sums[300]));
  EXPECT_TRUE(std::isfinite(sums[0]));
  for (std::size_t i = 256; i < 512; ++i) EXPECT_EQ(encoding.rest()[i], before[i]);
}

TEST(Encoding, RawValuesLieWithinTheMessageInOrder) {
  const auto make = [](std::vector<ValueRange> raw) {
    return Encoding(wire::Format::kInt8, 100, raw);
  };
  EXPECT_THROW(make({{98, 4}}), WireError);
  EXPECT_THROW(make({{50, 4}, {52, 4}}), WireError);
  EXPECT_THROW(make({{50, 4}, {0, 4}}), WireError);
  EXPECT_THROW(make({{-1, 4}}), WireError);
  EXPECT_THROW(make({{0, -1}}), WireError);
}

}  // namespace
}  // namespace deft
