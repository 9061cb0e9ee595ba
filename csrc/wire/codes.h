// One value into its code and back, a struct for each format; what the kernels are made of.
#pragma once

#include "wire/arithmetic.h"
#include "wire/layout.h"

namespace deft::wire {

// Values that stand for themselves: a code for each, no scale.
struct F32Codes {
  using Code = std::uint32_t;
  static DEFT_WIRE_INLINE Coded coded(float value, bool /*saturate*/) {
    // Processors differ in the bits of the NaN that a sum makes.
    return {magnitude_of(value) > kInfinityBits ? kNanBits : bits_of(value), value};
  }
  static DEFT_WIRE_INLINE float worth(std::uint32_t code) { return float_of(code); }
};

struct F16Codes {
  using Code = std::uint16_t;
  static DEFT_WIRE_INLINE Coded coded(float value, bool saturate) {
    return f16_of(value, saturate);
  }
  static DEFT_WIRE_INLINE float worth(std::uint32_t code) { return worth_of_f16(code); }
};

struct Bf16Codes {
  using Code = std::uint16_t;
  static DEFT_WIRE_INLINE Coded coded(float value, bool saturate) {
    return bf16_of(value, saturate);
  }
  static DEFT_WIRE_INLINE float worth(std::uint32_t code) { return worth_of_bf16(code); }
};

// Blocks with a scale. kTop: the code of the largest value of a block.
struct E4m3Codes {
  static constexpr float kTop = 448.0F;
  static constexpr std::int64_t kBlock = kLongBlock;
  static constexpr std::int64_t kBlockBytes = kLongBlock;
  static DEFT_WIRE_INLINE Coded coded(float value) { return e4m3_of(value); }
  static DEFT_WIRE_INLINE float worth(std::uint8_t code) { return worth_of_e4m3(code); }
};

struct Int8Codes {
  static constexpr float kTop = 127.0F;
  static constexpr std::int64_t kBlock = kLongBlock;
  static constexpr std::int64_t kBlockBytes = kLongBlock;
  static DEFT_WIRE_INLINE Coded coded(float value) { return integer_of(value); }
  static DEFT_WIRE_INLINE float worth(std::uint8_t code) {
    return static_cast<float>(static_cast<std::int8_t>(code));
  }
};

struct Int4Codes {
  static constexpr float kTop = 7.0F;
  static constexpr std::int64_t kBlock = kShortBlock;
  static constexpr std::int64_t kBlockBytes = kHalfBlock;
  static DEFT_WIRE_INLINE Coded coded(float value) { return integer_of(value); }
  static DEFT_WIRE_INLINE std::uint32_t packed(std::uint32_t low, std::uint32_t high) {
    return (low & 0xFU) | (high & 0xFU) << 4U;
  }
  static DEFT_WIRE_INLINE float worth_low(std::uint8_t code) {
    return static_cast<float>(static_cast<int>((std::uint32_t{code} & 0xFU) ^ 8U) - 8);
  }
  static DEFT_WIRE_INLINE float worth_high(std::uint8_t code) {
    return static_cast<float>(static_cast<int>((std::uint32_t{code} >> 4U) ^ 8U) - 8);
  }
};

}  // namespace deft::wire
