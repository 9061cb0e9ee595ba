#include "cuda/copy/segments.h"

#include <algorithm>
#include <cstddef>
#include <exception>

#include "cuda/copy/segment_list.h"

namespace {

using deft_cuda::kLargeBytes;
using deft_cuda::kMostArrays;
using deft_cuda::kSmallBytes;
using deft_cuda::Row;
using deft_cuda::rows_within;

static_assert(sizeof(void*) == sizeof(std::uint64_t));
static_assert(sizeof(Row<1>) == 24 && sizeof(Row<4>) == 48);
static_assert(offsetof(Row<4>, elements) == 0 && offsetof(Row<4>, first_chunk) == 8 &&
              offsetof(Row<4>, address) == 16);

constexpr std::size_t kElements = 0;  // fields of a row, in words
constexpr std::size_t kFirstChunk = 1;
constexpr std::size_t kAddress = 2;
constexpr std::int64_t kMostElements = std::int64_t{1} << 62;

bool possible(int arrays, std::int64_t segments, const std::int64_t* elements) {
  if (arrays < 1 || arrays > kMostArrays || segments < 0) return false;
  if (segments > 0 && elements == nullptr) return false;
  std::int64_t left = kMostElements;
  for (std::int64_t i = 0; i < segments; ++i) {
    if (elements[i] < 0 || elements[i] > left) return false;
    left -= elements[i];
  }
  return true;
}

}  // namespace

DeftSegments::DeftSegments(int arrays_each, std::int64_t segments, const std::int64_t* elements)
    : arrays_(arrays_each), size_(segments) {
  const std::int64_t small = rows_within(arrays_, kSmallBytes);
  const std::int64_t rows = segments > small ? segments + rows_within(arrays_, kLargeBytes) : small;
  words_.resize(word(rows + 1, 0));
  std::int64_t chunk = 0;
  for (std::int64_t i = 0; i < segments; ++i) {
    words_[word(i, kElements)] = static_cast<std::uint64_t>(elements[i]);
    words_[word(i, kFirstChunk)] = static_cast<std::uint64_t>(chunk);
    chunk += deft_cuda::chunks_of(elements[i]);
  }
  words_[word(segments, kFirstChunk)] = static_cast<std::uint64_t>(chunk);
}

std::size_t DeftSegments::word(std::int64_t row, std::size_t field) const {
  return static_cast<std::size_t>(row) * (kAddress + static_cast<std::size_t>(arrays_)) + field;
}

std::int64_t DeftSegments::chunks() const {
  return static_cast<std::int64_t>(words_[word(size_, kFirstChunk)]);
}

std::int64_t DeftSegments::elements(std::int64_t row) const {
  return static_cast<std::int64_t>(words_[word(row, kElements)]);
}

const void* DeftSegments::address(std::int64_t row, int array) const {
  const std::size_t field = kAddress + static_cast<std::size_t>(array);
  return reinterpret_cast<const void*>(words_[word(row, field)]);
}

void DeftSegments::set(std::int64_t row, int array, const void* address) {
  const std::size_t field = kAddress + static_cast<std::size_t>(array);
  words_[word(row, field)] = reinterpret_cast<std::uint64_t>(address);
}

deft_cuda::Launch DeftSegments::launch(std::int64_t first_row, bool with_large) const {
  const std::int64_t left = size_ - first_row;
  const bool large = with_large && left > rows_within(arrays_, kSmallBytes);
  const std::int64_t rows = std::min(left, rows_within(arrays_, large ? kLargeBytes : kSmallBytes));
  const auto first = static_cast<std::int64_t>(words_[word(first_row, kFirstChunk)]);
  const auto past = static_cast<std::int64_t>(words_[word(first_row + rows, kFirstChunk)]);
  return {words_.data() + word(first_row, 0), large, {rows, first, past - first}};
}

bool DeftSegments::addressable(const int* item_bytes, int arrays) const {
  for (std::int64_t row = 0; row < size_; ++row) {
    for (int a = 0; elements(row) > 0 && a < arrays; ++a) {
      const void* where = address(row, a);
      if (where == nullptr || !deft_cuda::aligned(where, item_bytes[a])) return false;
    }
  }
  return true;
}

extern "C" {

DeftSegments* deft_segments_create(int arrays, int64_t segments, const int64_t* elements) {
  if (!possible(arrays, segments, elements)) return nullptr;
  try {
    return new DeftSegments(arrays, segments, elements);
  } catch (const std::exception&) {  // of the allocation: a C interface throws nothing
    return nullptr;
  }
}

void deft_segments_destroy(DeftSegments* segments) { delete segments; }

int deft_segments_set(DeftSegments* segments, int64_t segment, int array, const void* address) {
  if (segments == nullptr || segment < 0 || segment >= segments->size()) return -1;
  if (array < 0 || array >= segments->arrays()) return -1;
  segments->set(segment, array, address);
  return 0;
}

}  // extern "C"
