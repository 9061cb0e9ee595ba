// Values into the bytes of a wire format and back.
//
// All kinds make the same bytes and the same rests, bit for bit, whatever the thread's rounding and
// denormal flags are. Buffers may lie at any address of their type, messages at any; none may
// overlap another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/format.h"
#include "wire/kinds.h"

namespace deft::wire {

class Codec {
 public:
  // Throws WireError for a kind that this processor cannot run.
  explicit Codec(Kind kind = kinds_here().back());

  [[nodiscard]] Kind kind() const { return kind_; }

  // Sends Q(values + rest) and keeps in `rest` what rounding left: values + rest - decoded. What is
  // not finite is sent as such and leaves its rest (of its whole block in a block format) alone.
  // `rest` may be null: then Q(values), and what rounding left is lost.
  void encode(Format format, const float* values, float* rest, std::int64_t elements,
              std::byte* out) const;
  void decode(Format format, const std::byte* in, std::int64_t elements, float* out) const;
  // Adds instead: one rounding for the product with the scale, one for the sum.
  void decode_add(Format format, const std::byte* in, std::int64_t elements, float* out) const;

 private:
  [[nodiscard]] const FormatKernels& kernels(Format format) const {
    return (*kernels_)[static_cast<std::size_t>(format)];
  }

  Kind kind_;
  const Kernels* kernels_;
};

}  // namespace deft::wire
