// What a kernel sees of segments, and which elements are whose work. Plain C++ that runs on both
// sides, so that tests walk it on the host.
//
// Every segment is cut into chunks of equal length, and chunks are numbered through: one huge
// tensor is as many chunks as its size asks for, a tiny one is one, an empty one none. So blocks
// have about equal work, whatever the sizes are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/both_sides.h"

namespace deft_cuda {

constexpr int kMostArrays = 4;
constexpr int kThreads = 256;
// 16 or 32 KB of float: enough to pay for finding the segment, little enough to spread a bucket of
// some MB over a whole device. A multiple of every vector's length, see `spans_of`.
constexpr std::int64_t kChunkElements = 8192;
// A launch copies its parameters. Most buckets have few segments, so there is a small table beside
// the large one. 4,096 bytes is what every CUDA takes, 32,764 what CUDA 12.1 and later do.
constexpr std::size_t kSmallBytes = 4096;
constexpr std::size_t kLargeBytes = 32764;
constexpr std::size_t kOtherParameterBytes = 256;

template <int Arrays>
struct Row {
  std::int64_t elements;
  std::int64_t first_chunk;  // of all segments, also of those in other launches
  void* address[Arrays];
};

template <int Arrays, std::size_t Bytes>
struct Table {
  static constexpr int kRows =
      static_cast<int>((Bytes - kOtherParameterBytes) / sizeof(Row<Arrays>));
  Row<Arrays> rows[kRows];
};

// The part of the segments that one launch has.
struct Range {
  std::int64_t rows;
  std::int64_t first_chunk;
  std::int64_t chunks;
};

struct Piece {
  std::int64_t row;
  std::int64_t begin;  // elements of the row
  std::int64_t end;
};

DEFT_BOTH_SIDES constexpr std::int64_t chunks_of(std::int64_t elements) {
  return elements / kChunkElements + (elements % kChunkElements != 0 ? 1 : 0);
}

// Which elements a chunk is; `chunk` is one of the range's. Empty rows begin at the chunk of the
// next one, and the last row that begins at or before the chunk is the one that has it.
template <int Arrays>
DEFT_BOTH_SIDES Piece piece_of(const Row<Arrays>* rows, std::int64_t count, std::int64_t chunk) {
  std::int64_t low = 0;
  std::int64_t high = count;  // the answer is in [low, high)
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    if (rows[middle].first_chunk <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const std::int64_t begin = (chunk - rows[low].first_chunk) * kChunkElements;
  const std::int64_t left = rows[low].elements - begin;
  return {low, begin, begin + (left < kChunkElements ? left : kChunkElements)};
}

// [begin, body_begin) and [body_end, end) go element by element, between them whole vectors.
struct Spans {
  std::int64_t begin;
  std::int64_t body_begin;
  std::int64_t body_end;
  std::int64_t end;
};

DEFT_BOTH_SIDES inline bool aligned(const void* address, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(bytes) == 0;
}

// Where vectors of `lanes` elements lie aligned in all arrays at once. Pieces begin at multiples of
// the longest vector, so the head is that of the whole row. No such place: no body.
template <int Arrays>
DEFT_BOTH_SIDES Spans spans_of(const Row<Arrays>& row, const int (&item_bytes)[Arrays], int lanes,
                               const Piece& piece) {
  for (int head = 0; head < lanes; ++head) {
    bool fits = true;
    for (int a = 0; a < Arrays; ++a) {
      const int vector_bytes = lanes * item_bytes[a] < 16 ? lanes * item_bytes[a] : 16;
      const auto* first = static_cast<const char*>(row.address[a]) + head * item_bytes[a];
      fits = fits && aligned(first, vector_bytes);
    }
    const std::int64_t body = piece.begin + head;
    if (fits && body < piece.end) {
      return {piece.begin, body, body + (piece.end - body) / lanes * lanes, piece.end};
    }
  }
  return {piece.begin, piece.end, piece.end, piece.end};
}

}  // namespace deft_cuda
