// Which slots a bucket carries parts of, and over which buckets a slot is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace deft {

struct Plan;

class BucketTable {
 public:
  // Expects a plan whose references are in range (Plan::validate).
  explicit BucketTable(const Plan& plan);

  // Ascending by position in the arena.
  [[nodiscard]] std::span<const std::int32_t> buckets_of(std::int32_t slot) const {
    return buckets_.row(slot);
  }
  [[nodiscard]] std::span<const std::int32_t> slots_of(std::int32_t bucket) const {
    return slots_.row(bucket);
  }

 private:
  // Rows of different lengths in one flat array: the hot path touches two cache lines, not a
  // vector of vectors.
  struct Rows {
    std::vector<std::size_t> offsets;
    std::vector<std::int32_t> values;

    [[nodiscard]] std::span<const std::int32_t> row(std::int32_t index) const {
      const auto at = static_cast<std::size_t>(index);
      return std::span(values).subspan(offsets[at], offsets[at + 1] - offsets[at]);
    }
  };

  Rows buckets_;
  Rows slots_;
};

}  // namespace deft
