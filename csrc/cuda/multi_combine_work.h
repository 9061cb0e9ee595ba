// The work of one thread in one chunk of a combination; runs on both sides.
#pragma once

#include "cuda/any_element.h"
#include "cuda/multi_combine.h"
#include "cuda/segment_table.h"

namespace deft_cuda {

struct CombineJob {
  int formula;
  int dtypes[4];
  double coefficients[3];
};

template <class Number>
DEFT_BOTH_SIDES inline Number combined(Number x, Number y, Number z, const CombineJob& job) {
  const auto c = static_cast<Number>(job.coefficients[0]);
  if (job.formula == kDeftCompensated) return fused(c * x * x, y - z, x);
  const Number two = fused(static_cast<Number>(job.coefficients[1]), y, c * x);
  return fused(static_cast<Number>(job.coefficients[2]), z, two);
}

// Arrays that are not there are zeros, and so are their coefficients.
template <class Number, int Arrays, int Lanes>
DEFT_BOTH_SIDES void combine_vectors(const Row<Arrays>& row, std::int64_t begin, std::int64_t end,
                                     int thread, const CombineJob& job) {
  for (std::int64_t at = begin + std::int64_t{thread} * Lanes; at < end;
       at += std::int64_t{kThreads} * Lanes) {
    Number x[Lanes];
    Number y[Lanes] = {};
    Number z[Lanes] = {};
    load_any(job.dtypes[1], row.address[1], at, x);
    if constexpr (Arrays > 2) load_any(job.dtypes[2], row.address[2], at, y);
    if constexpr (Arrays > 3) load_any(job.dtypes[3], row.address[3], at, z);
    DEFT_UNROLL
    for (int i = 0; i < Lanes; ++i) x[i] = combined(x[i], y[i], z[i], job);
    store_any(job.dtypes[0], row.address[0], at, x);
  }
}

template <class Number, int Arrays>
DEFT_BOTH_SIDES void combine_chunk(const Row<Arrays>* rows, std::int64_t count, std::int64_t chunk,
                                   int thread, const CombineJob& job) {
  int item_bytes[Arrays];
  for (int i = 0; i < Arrays; ++i) item_bytes[i] = deft_item_bytes(job.dtypes[i]);
  const Piece piece = piece_of(rows, count, chunk);
  const Row<Arrays>& row = rows[piece.row];
  const Spans spans = spans_of(row, item_bytes, Arrays, kGroup, piece);
  combine_vectors<Number, Arrays, 1>(row, spans.begin, spans.body_begin, thread, job);
  combine_vectors<Number, Arrays, kGroup>(row, spans.body_begin, spans.body_end, thread, job);
  combine_vectors<Number, Arrays, 1>(row, spans.body_end, spans.end, thread, job);
}

}  // namespace deft_cuda
