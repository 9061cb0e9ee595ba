#include "cuda/copy/segment_table.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace {

using namespace deft_cuda;

std::vector<Row<2>> rows_of(const std::vector<std::int64_t>& elements, std::int64_t first_chunk) {
  std::vector<Row<2>> rows;
  for (const std::int64_t each : elements) {
    rows.push_back({each, first_chunk, {nullptr, nullptr}});
    first_chunk += chunks_of(each);
  }
  return rows;
}

// Every element belongs to exactly one chunk, in order.
void expect_tiling(const std::vector<std::int64_t>& elements, std::int64_t first_chunk) {
  const auto rows = rows_of(elements, first_chunk);
  const auto count = static_cast<std::int64_t>(rows.size());
  std::int64_t chunk = first_chunk;
  for (std::int64_t row = 0; row < count; ++row) {
    std::int64_t reached = 0;
    while (reached < rows[static_cast<std::size_t>(row)].elements) {
      const Piece piece = piece_of(rows.data(), count, chunk++);
      ASSERT_EQ(piece.row, row);
      ASSERT_EQ(piece.begin, reached);
      ASSERT_GT(piece.end, piece.begin);
      ASSERT_LE(piece.end - piece.begin, kChunkElements);
      reached = piece.end;
    }
    ASSERT_EQ(reached, rows[static_cast<std::size_t>(row)].elements);
  }
}

TEST(SegmentTable, ChunksTileSegments) {
  expect_tiling({1}, 0);
  expect_tiling({0, 0, 1, 0, 0, 8192, 0, 8193, 0}, 5);
  expect_tiling({kChunkElements * 1000, 1, 2, 3}, 0);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::int64_t> elements(random() % 400 + 1);
    for (auto& each : elements) each = static_cast<std::int64_t>(random() % 40000 * (random() % 2));
    expect_tiling(elements, static_cast<std::int64_t>(random()));
  }
}

TEST(SegmentTable, OneHugeAndManyTinyOnesAreChunksOfBoundedSize) {
  std::vector<std::int64_t> elements(300, 10);
  elements.insert(elements.begin() + 150, 50'000'000);
  const auto rows = rows_of(elements, 0);
  const std::int64_t chunks = rows.back().first_chunk + 1;
  EXPECT_EQ(chunks, 300 + (50'000'000 + kChunkElements - 1) / kChunkElements);
  const Piece last_tiny = piece_of(rows.data(), 301, chunks - 1);
  EXPECT_EQ(last_tiny.row, 300);
  EXPECT_EQ(last_tiny.end, 10);
}

TEST(SegmentTable, MoreElementsThanFit32Bits) {
  constexpr std::int64_t kMany = (std::int64_t{1} << 40) + 5;
  const auto rows = rows_of({3, kMany, 4}, 0);
  const Piece last = piece_of(rows.data(), 3, chunks_of(kMany));
  EXPECT_EQ(last.row, 1);
  EXPECT_EQ(last.begin, std::int64_t{1} << 40);
  EXPECT_EQ(last.end, kMany);
  EXPECT_EQ(piece_of(rows.data(), 3, chunks_of(kMany) + 1).row, 2);
}

// The head is as short as can be, the body whole vectors, aligned in both arrays, or not there.
void expect_spans(std::int64_t past_first, std::int64_t past_second, const int (&items)[2],
                  int lanes, const Piece& piece) {
  alignas(16) static char memory[64];
  const Row<2> row = {
      1 << 20, 0, {memory + past_first * items[0], memory + past_second * items[1]}};
  const Spans spans = spans_of(row, items, lanes, piece);
  ASSERT_EQ(spans.begin, piece.begin);
  ASSERT_EQ(spans.end, piece.end);
  ASSERT_LE(spans.begin, spans.body_begin);
  ASSERT_LE(spans.body_begin, spans.body_end);
  ASSERT_LE(spans.body_end, spans.end);
  ASSERT_EQ((spans.body_end - spans.body_begin) % lanes, 0);
  const auto fits = [&](std::int64_t element) {
    for (int a = 0; a < 2; ++a) {
      const std::int64_t past = (a == 0 ? past_first : past_second) * items[a];
      const int vector_bytes = lanes * items[a] < 16 ? lanes * items[a] : 16;
      if ((past + element * items[a]) % vector_bytes != 0) return false;
    }
    return true;
  };
  for (std::int64_t element = spans.begin; element < spans.body_begin; ++element) {
    ASSERT_FALSE(fits(element)) << "a longer head than needed";
  }
  if (spans.body_begin == spans.end) return;
  ASSERT_TRUE(fits(spans.body_begin));
  ASSERT_LT(spans.end - spans.body_end, lanes) << "a longer tail than needed";
}

TEST(SegmentTable, VectorsAreAlignedInAllArraysAndAsManyAsCanBe) {
  const int kinds[][2] = {{4, 4}, {2, 4}, {4, 2}, {2, 2}, {8, 2}, {8, 8}, {4, 8}, {1, 1}};
  for (const auto& items : kinds) {
    for (const int lanes : {1, 4, 16 / (items[0] > items[1] ? items[0] : items[1])}) {
      for (std::int64_t first = 0; first < 16 / items[0]; ++first) {
        for (std::int64_t second = 0; second < 16 / items[1]; ++second) {
          for (const std::int64_t length : {1, 3, 15, 16, 17, 8192}) {
            expect_spans(first, second, items, lanes, {0, 8192, 8192 + length});
          }
        }
      }
    }
  }
}

}  // namespace
