// The work of one thread in one chunk of a copy; runs on both sides.
#pragma once

#include <type_traits>

#include "cuda/copy/element.h"
#include "cuda/copy/segment_table.h"

namespace deft_cuda {

struct CopyJob {
  double scale;
  bool accumulate;
};

template <class From, class To>
constexpr int kCopyLanes =
    16 / static_cast<int>(sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
// Loads of a thread before its first store: enough to keep the memory busy. More vectors of 8 than
// that do not fit in registers.
DEFT_BOTH_SIDES constexpr int copy_batch(int lanes) { return lanes < 8 ? 4 : 2; }

template <class From, class To>
DEFT_BOTH_SIDES inline To copied(From from, To to, const CopyJob& job) {
  if constexpr (std::is_same_v<From, Byte>) {
    return from;
  } else {
    using Number = Math<From, To>;
    const auto scale = static_cast<Number>(job.scale);
    const auto source = static_cast<Number>(wide(from));
    return job.accumulate ? narrow<To>(fused(scale, source, static_cast<Number>(wide(to))))
                          : narrow<To>(scale * source);
  }
}

// Elements [begin, end), a multiple of Lanes, from a place where vectors of as many are aligned.
template <class From, class To, int Lanes>
DEFT_BOTH_SIDES void copy_vectors(const Row<2>& row, std::int64_t begin, std::int64_t end,
                                  int thread, const CopyJob& job) {
  constexpr int kBatch = copy_batch(Lanes);
  constexpr std::int64_t kStride = std::int64_t{kThreads} * Lanes;
  for (std::int64_t at = begin + std::int64_t{thread} * Lanes; at < end; at += kStride * kBatch) {
    Vector<From, Lanes> from[kBatch] = {};
    Vector<To, Lanes> to[kBatch] = {};
    DEFT_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const std::int64_t here = at + i * kStride;
      if (here < end) from[i] = *vector_at<From, Lanes>(row.address[0], here);
      if (here < end && job.accumulate) to[i] = *vector_at<To, Lanes>(row.address[1], here);
    }
    DEFT_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const std::int64_t here = at + i * kStride;
      if (here >= end) continue;
      DEFT_UNROLL
      for (int lane = 0; lane < Lanes; ++lane) {
        to[i].lane[lane] = copied(from[i].lane[lane], to[i].lane[lane], job);
      }
      store(to[i], row.address[1], here);
    }
  }
}

template <class From, class To>
DEFT_BOTH_SIDES void copy_chunk(const Row<2>* rows, std::int64_t count, std::int64_t chunk,
                                int thread, const CopyJob& job) {
  constexpr int kLanes = kCopyLanes<From, To>;
  const int item_bytes[2] = {static_cast<int>(sizeof(From)), static_cast<int>(sizeof(To))};
  const Piece piece = piece_of(rows, count, chunk);
  const Row<2>& row = rows[piece.row];
  const Spans spans = spans_of(row, item_bytes, kLanes, piece);
  copy_vectors<From, To, 1>(row, spans.begin, spans.body_begin, thread, job);
  copy_vectors<From, To, kLanes>(row, spans.body_begin, spans.body_end, thread, job);
  copy_vectors<From, To, 1>(row, spans.body_end, spans.end, thread, job);
}

}  // namespace deft_cuda
