// The work of one thread in one chunk of the sums; runs on both sides.
#pragma once

#include "cuda/any_element.h"
#include "cuda/multi_sums.h"
#include "cuda/segment_table.h"

namespace deft_cuda {

struct SumsJob {
  int dtypes[3];
};

template <int Arrays, int Lanes>
DEFT_BOTH_SIDES void sum_vectors(const Row<Arrays>& row, std::int64_t begin, std::int64_t end,
                                 int thread, const SumsJob& job, double (&sums)[kDeftSums]) {
  for (std::int64_t at = begin + std::int64_t{thread} * Lanes; at < end;
       at += std::int64_t{kThreads} * Lanes) {
    double a[Lanes];
    double b[Lanes];
    double c[Lanes] = {};
    load_any(job.dtypes[0], row.address[0], at, a);
    load_any(job.dtypes[1], row.address[1], at, b);
    if constexpr (Arrays > 2) load_any(job.dtypes[2], row.address[2], at, c);
    DEFT_UNROLL
    for (int i = 0; i < Lanes; ++i) {
      const double change = a[i] - b[i];
      sums[kDeftASquared] = fused(a[i], a[i], sums[kDeftASquared]);
      sums[kDeftBSquared] = fused(b[i], b[i], sums[kDeftBSquared]);
      sums[kDeftChangeSquared] = fused(change, change, sums[kDeftChangeSquared]);
      sums[kDeftATimesB] = fused(a[i], b[i], sums[kDeftATimesB]);
      sums[kDeftCSquared] = fused(c[i], c[i], sums[kDeftCSquared]);
    }
  }
}

template <int Arrays>
DEFT_BOTH_SIDES void sum_chunk(const Row<Arrays>* rows, std::int64_t count, std::int64_t chunk,
                               int thread, const SumsJob& job, double (&sums)[kDeftSums]) {
  int item_bytes[Arrays];
  for (int i = 0; i < Arrays; ++i) item_bytes[i] = deft_item_bytes(job.dtypes[i]);
  const Piece piece = piece_of(rows, count, chunk);
  const Row<Arrays>& row = rows[piece.row];
  const Spans spans = spans_of(row, item_bytes, Arrays, kGroup, piece);
  sum_vectors<Arrays, 1>(row, spans.begin, spans.body_begin, thread, job, sums);
  sum_vectors<Arrays, kGroup>(row, spans.body_begin, spans.body_end, thread, job, sums);
  sum_vectors<Arrays, 1>(row, spans.body_end, spans.end, thread, job, sums);
}

}  // namespace deft_cuda
