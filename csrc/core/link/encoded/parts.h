// Ranges of values one behind another in a message, each in a wire format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/codec.h"

namespace deft {

// Of a sample of values, and of what rounding has left of them.
struct Squares {
  double values = 0.0;
  double rests = 0.0;
};

class Parts {
 public:
  // Values begin .. end come next. None of kF32 has a rest.
  void add(wire::Format format, std::int64_t begin, std::int64_t end);

  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t rests() const { return rests_; }

  void encode(const wire::Codec& codec, const float* values, float* rests,
              std::byte* message) const;
  void add_rests(const float* rests, float* values) const;
  [[nodiscard]] Squares squares(const float* values, const float* rests) const;
  // The sum of the messages in their order, times the factor: two roundings for each message and
  // one for the factor, so the same bits wherever it is computed.
  void sum(const wire::Codec& codec, std::span<const std::byte* const> messages, float factor,
           float* out) const;

 private:
  struct Part {
    wire::Format format = wire::Format::kF32;
    std::int64_t begin = 0;
    std::int64_t elements = 0;
    std::int64_t offset_bytes = 0;  // in the message
    std::int64_t rest = -1;         // where its rest begins; -1: it has none
  };

  std::vector<Part> parts_;
  std::int64_t bytes_ = 0;
  std::int64_t rests_ = 0;
};

}  // namespace deft
