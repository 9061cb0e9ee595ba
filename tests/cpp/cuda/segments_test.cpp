#include "cuda/copy/segments.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "cuda/dtype.h"
#include "segment_support.h"

namespace {

using namespace deft_cuda;
using deft_cuda::testing::make;

TEST(Segments, RefusesWhatCannotBe) {
  const std::int64_t elements[] = {5, -1};
  EXPECT_NE(make(2, {5}), nullptr);
  EXPECT_EQ(deft_segments_create(2, 2, elements), nullptr) << "a negative length";
  EXPECT_EQ(deft_segments_create(0, 1, elements), nullptr);
  EXPECT_EQ(deft_segments_create(5, 1, elements), nullptr);
  EXPECT_EQ(deft_segments_create(2, -1, elements), nullptr);
  EXPECT_EQ(deft_segments_create(2, 1, nullptr), nullptr);
  const std::int64_t huge[] = {std::int64_t{1} << 62, 1};
  EXPECT_EQ(deft_segments_create(2, 2, huge), nullptr);
}

TEST(Segments, SetsAddressesAgainAndAgain) {
  const auto segments = make(3, {4, 5});
  char memory[64];
  EXPECT_EQ(deft_segments_set(segments.get(), 1, 2, memory), 0);
  EXPECT_EQ(segments->address(1, 2), memory);
  EXPECT_EQ(deft_segments_set(segments.get(), 1, 2, memory + 8), 0);
  EXPECT_EQ(segments->address(1, 2), memory + 8);
  EXPECT_EQ(segments->address(1, 1), nullptr);
  EXPECT_EQ(segments->elements(1), 5);
  EXPECT_LT(deft_segments_set(segments.get(), 2, 0, memory), 0);
  EXPECT_LT(deft_segments_set(segments.get(), -1, 0, memory), 0);
  EXPECT_LT(deft_segments_set(segments.get(), 0, 3, memory), 0);
  EXPECT_LT(deft_segments_set(nullptr, 0, 0, memory), 0);
}

TEST(Segments, KnowsWhatAKernelMayTouch) {
  const auto segments = make(2, {4, 0});
  alignas(16) char memory[64];
  const int floats[2] = {4, 4};
  const int half_to_float[2] = {2, 4};
  EXPECT_FALSE(segments->addressable(floats, 2)) << "no addresses yet; the empty one needs none";
  segments->set(0, 0, memory + 2);
  segments->set(0, 1, memory + 16);
  EXPECT_FALSE(segments->addressable(floats, 2)) << "not at a multiple of 4";
  EXPECT_TRUE(segments->addressable(half_to_float, 2));
}

TEST(Segments, OneLaunchHoldsAThousand) {
  EXPECT_GE(rows_within(2, kLargeBytes), 1000);
  EXPECT_GE(rows_within(2, kSmallBytes), 100);
  EXPECT_EQ(rows_within(2, kLargeBytes), (Table<2, kLargeBytes>::kRows));
  EXPECT_EQ(rows_within(3, kSmallBytes), (Table<3, kSmallBytes>::kRows));
  EXPECT_EQ(rows_within(4, kLargeBytes), (Table<4, kLargeBytes>::kRows));
  EXPECT_LE(sizeof(Table<4, kLargeBytes>) + kOtherParameterBytes, kLargeBytes);
  EXPECT_LE(sizeof(Table<3, kSmallBytes>) + kOtherParameterBytes, kSmallBytes);
}

// Launches take all rows in order; each has the chunks that its rows have.
void expect_tiling(const std::vector<std::int64_t>& elements, int arrays, bool with_large) {
  const auto segments = make(arrays, elements);
  ASSERT_NE(segments, nullptr);
  std::int64_t row = 0;
  std::int64_t chunk = 0;
  while (row < segments->size()) {
    const Launch launch = segments->launch(row, with_large);
    ASSERT_GT(launch.range.rows, 0);
    ASSERT_EQ(launch.range.first_chunk, chunk);
    ASSERT_LE(launch.range.rows, rows_within(arrays, launch.large ? kLargeBytes : kSmallBytes));
    ASSERT_TRUE(with_large || !launch.large);
    std::int64_t own = 0;
    for (std::int64_t i = 0; i < launch.range.rows; ++i) {
      own += chunks_of(elements[static_cast<std::size_t>(row + i)]);
    }
    ASSERT_EQ(launch.range.chunks, own);
    row += launch.range.rows;
    chunk += own;
  }
  EXPECT_EQ(chunk, segments->chunks());
}

TEST(Segments, LaunchesTileThem) {
  std::mt19937 random(7);
  for (const std::size_t count : {0U, 1U, 119U, 120U, 121U, 300U, 1015U, 1016U, 1017U, 5000U}) {
    std::vector<std::int64_t> elements(count);
    for (auto& each : elements)
      each = static_cast<std::int64_t>(random() % 30000U * (random() % 3));
    for (int arrays = 1; arrays <= kMostArrays; ++arrays) {
      expect_tiling(elements, arrays, true);
      expect_tiling(elements, arrays, false);
    }
  }
}

TEST(Segments, AFewGoIntoTheSmallTable) {
  EXPECT_FALSE(make(2, std::vector<std::int64_t>(100, 1))->launch(0, true).large);
  EXPECT_TRUE(make(2, std::vector<std::int64_t>(300, 1))->launch(0, true).large);
}

TEST(Segments, ItemSizesOfAllTypes) {
  EXPECT_EQ(deft_item_bytes(kDeftFloat32), 4);
  EXPECT_EQ(deft_item_bytes(kDeftFloat16), 2);
  EXPECT_EQ(deft_item_bytes(kDeftBFloat16), 2);
  EXPECT_EQ(deft_item_bytes(kDeftFloat64), 8);
  EXPECT_EQ(deft_item_bytes(kDeftBytes), 1);
  EXPECT_EQ(deft_item_bytes(5), 0);
  EXPECT_EQ(deft_item_bytes(-1), 0);
}

}  // namespace
