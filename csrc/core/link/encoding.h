// How one message travels in a wire format: which of its values are encoded, and what rounding has
// left of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/codec.h"

namespace deft {

struct ValueRange {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
};

class Encoding {
 public:
  // `raw`: the values that travel as they are (headers), in ascending order. Throws WireError.
  Encoding(wire::Format format, std::int64_t elements, const std::vector<ValueRange>& raw);

  [[nodiscard]] std::int64_t elements() const { return elements_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }  // of a message
  // What rounding has left: one value for each that is encoded. It is sent with the next ones.
  [[nodiscard]] std::span<float> rest() { return rest_; }

  void encode(const float* values, std::byte* message);
  // The sum of the messages of all ranks, in the order of ranks, times the factor: two roundings
  // for each rank and one for the factor, so the same bits wherever it is computed.
  void sum(const std::byte* messages, std::int32_t ranks, float factor, float* out) const;

 private:
  struct Part {
    wire::Format format = wire::Format::kF32;
    ValueRange values;
    std::int64_t offset_bytes = 0;  // in the message
    std::int64_t rest = -1;         // where its rest begins; -1: it has none
  };

  void add_part(wire::Format format, std::int64_t begin, std::int64_t end);

  wire::Codec codec_;
  std::int64_t elements_;
  std::int64_t bytes_ = 0;
  std::vector<Part> parts_;
  std::vector<float> rest_;
};

}  // namespace deft
