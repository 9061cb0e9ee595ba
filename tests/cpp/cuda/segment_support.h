// Segments over host memory, and kernels played on the host: every thread of every block in turn.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "cuda/copy/element.h"
#include "cuda/copy/segment_list.h"

namespace deft_cuda::testing {

struct End {
  void operator()(DeftSegments* segments) const { deft_segments_destroy(segments); }
};
using Segments = std::unique_ptr<DeftSegments, End>;

inline Segments make(int arrays, const std::vector<std::int64_t>& elements) {
  return Segments(
      deft_segments_create(arrays, static_cast<std::int64_t>(elements.size()), elements.data()));
}

// Runs of elements in one piece of memory, each beginning so many elements past a multiple of 16
// bytes, with elements between them that nobody may touch.
template <class T>
class Runs {
 public:
  static constexpr std::int64_t kPerLine = 16 / static_cast<std::int64_t>(sizeof(T));

  Runs(const std::vector<std::int64_t>& elements, const std::vector<std::int64_t>& past) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      begins_.push_back(at + past[i % past.size()]);
      lengths_.push_back(elements[i]);
      at = (begins_.back() + elements[i] + 2 * kPerLine) / kPerLine * kPerLine;
    }
    lines_.resize(static_cast<std::size_t>(at / kPerLine + 1));
  }

  T* at(std::size_t run) { return reinterpret_cast<T*>(lines_.data()) + begins_[run]; }
  void place(DeftSegments& segments, int array) {
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      ASSERT_EQ(deft_segments_set(&segments, static_cast<std::int64_t>(i), array, at(i)), 0);
    }
  }
  template <class Fill>
  void fill(Fill value) {
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      for (std::int64_t k = 0; k < lengths_[i]; ++k) at(i)[k] = value();
    }
  }
  [[nodiscard]] double value(std::size_t run, std::int64_t element) {
    return static_cast<double>(wide(at(run)[element]));
  }
  // All bytes, with zeros for those of the runs.
  [[nodiscard]] std::vector<char> gaps() const {
    std::vector<char> bytes(lines_.size() * sizeof(Line));
    std::memcpy(bytes.data(), lines_.data(), bytes.size());
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      std::memset(bytes.data() + static_cast<std::size_t>(begins_[i]) * sizeof(T), 0,
                  static_cast<std::size_t>(lengths_[i]) * sizeof(T));
    }
    return bytes;
  }

 private:
  struct alignas(16) Line {
    unsigned char bytes[16] = {0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5,
                               0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5};
  };
  std::vector<Line> lines_;
  std::vector<std::int64_t> begins_;
  std::vector<std::int64_t> lengths_;
};

// work(rows, count, chunk, thread), on a copy of the table as a launch makes it.
template <int Arrays, class Work>
int play(const DeftSegments& segments, Work work) {
  int launches = 0;
  for (std::int64_t row = 0; row < segments.size();) {
    const Launch launch = segments.launch(row, true);
    row += launch.range.rows;
    if (launch.range.chunks == 0) continue;
    ++launches;
    const auto table_rows =
        launch.large ? Table<Arrays, kLargeBytes>::kRows : Table<Arrays, kSmallBytes>::kRows;
    std::vector<Row<Arrays>> rows(static_cast<std::size_t>(table_rows));
    std::memcpy(static_cast<void*>(rows.data()), launch.rows, rows.size() * sizeof(Row<Arrays>));
    for (std::int64_t i = 0; i < launch.range.chunks; ++i) {
      for (int thread = 0; thread < kThreads; ++thread) {
        work(rows.data(), launch.range.rows, launch.range.first_chunk + i, thread);
      }
    }
  }
  return launches;
}

// Sizes around everything that matters: vectors, batches, chunks.
inline std::vector<std::int64_t> sizes() {
  return {0, 1, 2, 3, 5, 7, 8, 9, 15, 17, 0, 255, 1023, 1025, 4097, 8191, 8192, 8193, 20011, 0};
}

}  // namespace deft_cuda::testing
