#include "core/link/encoded/parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace deft {
namespace {

TEST(Parts, EachRangeInItsFormatAndOnlyThoseThatRoundHaveRests) {
  Parts parts;
  parts.add(wire::Format::kF32, 2, 4);
  parts.add(wire::Format::kInt8, 4, 4);
  parts.add(wire::Format::kInt8, 4, 8);
  EXPECT_EQ(parts.bytes(), 2 * 4 + 4 + 4);
  EXPECT_EQ(parts.rests(), 4);

  const wire::Codec codec;
  const std::vector<float> values = {9.0F, 9.0F, 0.1F, 0.2F, 127.0F, 0.4F, 1.6F, -3.0F};
  std::vector<float> rests(4);
  std::vector<std::byte> message(static_cast<std::size_t>(parts.bytes()));
  parts.encode(codec, values.data(), rests.data(), message.data());
  EXPECT_EQ(rests, (std::vector<float>{0.0F, 0.4F, 1.6F - 2.0F, 0.0F}));

  std::vector<float> sums(8, -1.0F);
  const std::vector<const std::byte*> twice = {message.data(), message.data()};
  parts.sum(codec, twice, 0.5F, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{-1.0F, -1.0F, 0.1F, 0.2F, 127.0F, 0.0F, 2.0F, -3.0F}));
}

TEST(Parts, RestsAreAddedToTheValuesTheyBelongTo) {
  Parts parts;
  parts.add(wire::Format::kInt8, 0, 2);
  parts.add(wire::Format::kF32, 2, 4);
  parts.add(wire::Format::kInt8, 4, 6);
  std::vector<float> values = {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};
  const std::vector<float> rests = {0.5F, 0.25F, -1.0F, -2.0F};
  parts.add_rests(rests.data(), values.data());
  EXPECT_EQ(values, (std::vector<float>{1.5F, 2.25F, 3.0F, 4.0F, 4.0F, 4.0F}));
}

}  // namespace
}  // namespace deft
