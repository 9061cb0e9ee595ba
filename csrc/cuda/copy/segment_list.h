// DeftSegments from inside: rows as kernels take them, and how they divide into launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/copy/segment_table.h"
#include "cuda/copy/segments.h"

namespace deft_cuda {

struct Launch {
  const void* rows;  // as many readable rows as the table has, whatever the range's
  bool large;
  Range range;
};

// The rows that a table of this size in bytes has.
[[nodiscard]] constexpr std::int64_t rows_within(int arrays, std::size_t bytes) {
  const std::size_t row_bytes =
      sizeof(Row<1>) + sizeof(void*) * static_cast<std::size_t>(arrays - 1);
  return static_cast<std::int64_t>((bytes - kOtherParameterBytes) / row_bytes);
}

}  // namespace deft_cuda

struct DeftSegments {
  DeftSegments(int arrays_each, std::int64_t segments, const std::int64_t* elements);

  [[nodiscard]] int arrays() const { return arrays_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t chunks() const;
  [[nodiscard]] std::int64_t elements(std::int64_t row) const;
  [[nodiscard]] const void* address(std::int64_t row, int array) const;
  void set(std::int64_t row, int array, const void* address);
  // The launch that begins with this row; with_large: there are kernels with the large table.
  [[nodiscard]] deft_cuda::Launch launch(std::int64_t first_row, bool with_large) const;
  // Every row that is not empty has an address in each of these arrays, at a multiple of its item's
  // size: a kernel that touches anything else takes the process's whole context with it.
  [[nodiscard]] bool addressable(const int* item_bytes, int arrays) const;

 private:
  [[nodiscard]] std::size_t word(std::int64_t row, std::size_t field) const;

  int arrays_;
  std::int64_t size_;
  std::vector<std::uint64_t> words_;  // Row<arrays>, one more for the number of chunks, and padding
};
