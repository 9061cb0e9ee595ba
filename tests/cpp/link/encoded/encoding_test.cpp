#include "core/link/encoded/encoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
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

// Of so many messages one behind another.
void sum(const Encoding& encoding, const Bytes& messages, float factor, Floats& out) {
  std::vector<const std::byte*> each;
  for (std::size_t at = 0; at < messages.size(); at += static_cast<std::size_t>(encoding.bytes())) {
    each.push_back(messages.data() + at);
  }
  encoding.sum(each, factor, out.data());
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
  sum(any, messages, 0.25F, sums);

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
    sum(encoding, message, 1.0F, decoded);
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

TEST_P(EncodingTest, ChunksHaveWholeBlocksAndAllValuesOfTheMessage) {
  constexpr std::int64_t kElements = 5003;
  const std::vector<std::vector<ValueRange>> raws = {
      {}, {{0, 4}}, {{1250, 1}, {2501, 7}}, {{1200, 2600}}, {{0, kElements}}};
  for (const std::vector<ValueRange>& raw : raws) {
    Encoding whole(GetParam(), kElements, raw);
    for (const std::int32_t owners : {2, 3, 4, 8}) {
      std::int64_t rests = 0;
      for (std::int32_t rank = 0; rank < owners; ++rank) {
        Encoding own(GetParam(), kElements, raw, owners, rank);
        ASSERT_EQ(own.owners(), owners);
        const std::vector<std::int64_t> bytes = own.chunk_bytes();
        EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}), own.bytes());
        EXPECT_LE(own.bytes() - whole.bytes(), 4 * owners);  // padding, at most
        rests += static_cast<std::int64_t>(own.sum_rest().size());
        EXPECT_EQ(own.rest().size(), whole.rest().size());
        for (const std::int64_t each : bytes) {
          EXPECT_LE(each, whole.bytes() / owners + 4 * 2 * 256 + 4 * kElements / owners);
        }
      }
      EXPECT_EQ(rests, static_cast<std::int64_t>(whole.rest().size()));
    }
  }
}

TEST_P(EncodingTest, OwnersSumTheirChunksAsOneRankWouldSumTheMessage) {
  constexpr std::size_t kElements = 3001;
  constexpr std::int32_t kOwners = 3;
  const std::vector<ValueRange> raw = {{900, 200}};
  std::deque<Encoding> ranks;  // they stay where they are made
  Bytes messages;
  Floats expected(kElements);
  for (std::int32_t rank = 0; rank < kOwners; ++rank) {
    ranks.emplace_back(GetParam(), kElements, raw, kOwners, rank);
    const Bytes message =
        encoded(ranks.back(), random_values(kElements, static_cast<unsigned>(rank)));
    messages.insert(messages.end(), message.begin(), message.end());
  }
  sum(ranks[0], messages, 0.5F, expected);
  Bytes sums;
  std::vector<float> rests;
  for (std::int32_t rank = 0; rank < kOwners; ++rank) {
    Encoding& owner = ranks[static_cast<std::size_t>(rank)];
    const std::vector<std::int64_t> bytes = owner.chunk_bytes();
    const auto own = bytes[static_cast<std::size_t>(rank)];
    const auto begin = std::accumulate(bytes.begin(), bytes.begin() + rank, std::int64_t{0});
    Bytes chunks;
    for (std::int64_t from = 0; from < kOwners; ++from) {
      const auto at = messages.begin() + from * owner.bytes() + begin;
      chunks.insert(chunks.end(), at, at + own);
    }
    Floats values(kElements, -1.0F);
    owner.sum_own(chunks.data(), 0.5F, values.data());
    for (std::size_t i = 0; i < kElements; ++i) {
      EXPECT_TRUE(values[i] == expected[i] || values[i] == -1.0F) << i;
    }
    sums.insert(sums.end(), chunks.begin(), chunks.begin() + own);
    rests.insert(rests.end(), owner.sum_rest().begin(), owner.sum_rest().end());
  }
  Floats arrived(kElements);
  sum(ranks[1], sums, 1.0F, arrived);
  std::size_t at = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    const bool exact = GetParam() == wire::Format::kF32 || (i >= 900 && i < 1100);
    const float rest = exact ? 0.0F : rests[at++];
    EXPECT_NEAR(arrived[i] + rest, expected[i], 1e-6) << i;
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
  sum(encoding, message, 0.5F, sums);
  EXPECT_FALSE(std::isfinite(sums[300]));
  EXPECT_TRUE(std::isfinite(sums[0]));
  for (std::size_t i = 256; i < 512; ++i) EXPECT_EQ(encoding.rest()[i], before[i]);
}

TEST_P(EncodingTest, AWholeMessageTakesAllRestsWithIt) {
  constexpr std::size_t kElements = 3001;
  constexpr std::int32_t kOwners = 3;
  constexpr float kFactor = 0.25F;
  for (std::int32_t rank = 0; rank < kOwners; ++rank) {
    Encoding encoding(GetParam(), kElements, {{900, 200}}, kOwners, rank);
    const Floats values = random_values(kElements, 1);
    Floats expected = values;
    for (std::size_t i = 0; i < encoding.rest().size(); ++i) {
      encoding.rest()[i] = static_cast<float>(i % 7);
      expected[i < 900 ? i : i + 200] += static_cast<float>(i % 7);
    }
    for (std::size_t i = 0; i < encoding.sum_rest().size(); ++i) {
      encoding.sum_rest()[i] = 1.0F;
      const std::size_t at = static_cast<std::size_t>(encoding.sum_rest_begin()) + i;
      expected[at < 900 ? at : at + 200] += 1.0F / kFactor;
    }
    const Floats sent = encoding.with_rests(values.data(), kFactor);
    for (std::size_t i = 0; i < kElements; ++i) EXPECT_NEAR(sent[i], expected[i], 1e-5) << i;
    for (const std::span<float> rests : {encoding.rest(), encoding.sum_rest()}) {
      EXPECT_TRUE(std::all_of(rests.begin(), rests.end(), [](float one) { return one == 0.0F; }));
    }
    EXPECT_EQ(encoding.with_rests(values.data(), kFactor), values);
    EXPECT_FALSE(encoding.spent());
  }
}

TEST(Encoding, OnlyTheNextMessageIsWhole) {
  Encoding encoding(wire::Format::kInt8, 8, {});
  EXPECT_FALSE(encoding.take_whole());
  encoding.set_whole_next(true);
  EXPECT_TRUE(encoding.whole_next());
  EXPECT_TRUE(encoding.take_whole());
  EXPECT_FALSE(encoding.whole_next());
  EXPECT_FALSE(encoding.take_whole());
}

TEST(Encoding, WhatIsNotFiniteTravelsWholeWithoutRests) {
  const auto encoding = Encoding::whole(6, {{0, 2}});
  ASSERT_EQ(encoding->rest().size(), 4U);
  for (float& rest : encoding->rest()) rest = 3e38F;
  const float inf = std::numeric_limits<float>::infinity();
  // A header; a value; a value that is too large only with its rest.
  for (const Floats& values :
       {Floats{0, inf, 0, 0, 0, 0}, {0, 0, -inf, 0, 0, 0}, {0, 0, 0, 0, 0, 3e38F}}) {
    EXPECT_EQ(encoding->with_rests(values.data(), 1.0F), values);
    EXPECT_EQ(encoding->rest()[0], 3e38F);
    EXPECT_FALSE(encoding->spent());
  }
}

TEST(Encoding, OneThatIsAlwaysWholeDeliversOnceWhatIsLeft) {
  const auto encoding = Encoding::whole(6, {{0, 2}});
  for (float& rest : encoding->rest()) rest = 0.5F;
  const Floats values = {1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(encoding->take_whole());
  EXPECT_EQ(encoding->with_rests(values.data(), 1.0F), (Floats{1, 2, 3.5F, 4.5F, 5.5F, 6.5F}));
  EXPECT_TRUE(encoding->spent());
  EXPECT_TRUE(encoding->take_whole());
  EXPECT_EQ(encoding->with_rests(values.data(), 1.0F), values);
}

TEST(Encoding, TheErrorIsWhatRoundingLeavesOfTheValues) {
  Encoding encoding(wire::Format::kInt8, 512, {{0, 4}});
  EXPECT_LT(encoding.error(), 0.0);
  Floats values(512, 0.0F);
  (void)encoded(encoding, values);
  EXPECT_LT(encoding.error(), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 97) - 48.3F;
  }
  (void)encoded(encoding, values);
  double left = 0.0;
  double whole = 0.0;
  for (std::size_t i = 4; i < values.size(); ++i) {
    whole += static_cast<double>(values[i]) * values[i];
    left += static_cast<double>(encoding.rest()[i - 4]) * encoding.rest()[i - 4];
  }
  EXPECT_GT(encoding.error(), 0.0);
  EXPECT_DOUBLE_EQ(encoding.error(), std::sqrt(left / whole));
  values[300] = std::numeric_limits<float>::infinity();
  (void)encoded(encoding, values);
  EXPECT_LT(encoding.error(), 0.0);
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

TEST(Encoding, ARankIsOneOfTheOwners) {
  EXPECT_THROW(Encoding(wire::Format::kInt8, 9, {}, 0, 0), WireError);
  EXPECT_THROW(Encoding(wire::Format::kInt8, 9, {}, 2, 2), WireError);
  EXPECT_THROW(Encoding(wire::Format::kInt8, 9, {}, 2, -1), WireError);
}

}  // namespace
}  // namespace deft
