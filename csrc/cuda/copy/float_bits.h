// Numbers of 16 bits on the host, by their bits: what the device has instructions for.
#pragma once

#include <cstdint>
#include <cstring>

namespace deft_cuda {

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of_bits(std::uint32_t bits) {
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The top bits of a number, to the nearest, ties to even.
inline std::uint32_t rounded(std::uint32_t bits, std::uint32_t dropped) {
  const std::uint32_t odd = (bits >> dropped) & 1U;
  return (bits + (1U << (dropped - 1U)) - 1U + odd) >> dropped;
}

inline float float_of_bfloat16(std::uint16_t bits) {
  return float_of_bits(static_cast<std::uint32_t>(bits) << 16U);
}

inline std::uint16_t bfloat16_of(float value) {
  if (value != value) return 0x7FFF;  // as the device has it
  return static_cast<std::uint16_t>(rounded(bits_of(value), 16U));
}

// A half's exponent is 5 bits with a bias of 15, a float's 8 with one of 127.
inline float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t magnitude = half & 0x7FFFU;
  if (magnitude >= 0x7C00U) return float_of_bits(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13U);
  if (magnitude < 0x400U) {
    const float small = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -small : small;
  }
  return float_of_bits(sign | ((magnitude << 13U) + (112U << 23U)));
}

inline std::uint16_t half_of(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = bits >> 16U & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    return 0x7FFF;  // as the device has it
  }
  if (magnitude >= 0x477FF000U) {
    half = 0x7C00U;  // 65,520 and more round to infinity
  } else if (magnitude >= 0x38800000U) {
    half = rounded(magnitude - (112U << 23U), 13U);
  } else {
    // Below the least normal number a half counts in steps of 2^-24, which is what 0.5 counts in
    // when added in float: the sum is rounded to them.
    half = bits_of(float_of_bits(magnitude) + 0.5F) - bits_of(0.5F);
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace deft_cuda
