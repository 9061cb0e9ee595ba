// Messages for tests: values of every sort, and what a codec makes of them.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "wire/codec.h"

namespace deft::wire {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kLeastNormal = std::numeric_limits<float>::min();

inline std::uint32_t raw(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float from_raw(std::uint32_t bits) {
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Equal bits; what a NaN looks like is not promised.
inline bool same(float a, float b) { return raw(a) == raw(b) || (std::isnan(a) && std::isnan(b)); }

inline bool same(const Floats& a, const Floats& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

inline Bytes encoded(const Codec& codec, Format format, const Floats& values,
                     Floats* rest = nullptr) {
  const auto elements = static_cast<std::int64_t>(values.size());
  // Filled, so that a byte that nobody writes is seen.
  Bytes bytes(static_cast<std::size_t>(encoded_bytes(format, elements)), std::byte{0xA5});
  codec.encode(format, values.data(), rest == nullptr ? nullptr : rest->data(), elements,
               bytes.data());
  return bytes;
}

inline Floats decoded(const Codec& codec, Format format, const Bytes& bytes, std::size_t elements) {
  Floats out(elements, -7.0F);
  codec.decode(format, bytes.data(), static_cast<std::int64_t>(elements), out.data());
  return out;
}

inline Floats gaussian(std::size_t elements, unsigned seed, float size = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, size);
  Floats values(elements);
  for (float& value : values) value = normal(generator);
  return values;
}

// Any bits at all that are a finite number, so of any size.
inline Floats any_finite(std::size_t elements, unsigned seed) {
  std::mt19937 generator(seed);
  Floats values(elements);
  for (float& value : values) {
    do value = from_raw(static_cast<std::uint32_t>(generator()));
    while (!std::isfinite(value));
  }
  return values;
}

}  // namespace deft::wire
