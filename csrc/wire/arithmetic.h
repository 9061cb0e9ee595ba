// What happens to one value; the same bits on every processor, so replicas stay equal. Shared by
// the host's kernels and the device's.
//
// Every operation is one correctly rounded float operation, never fused with another (the host's
// sources are compiled with -ffp-contract=off). Nothing branches, so that loops vectorise.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/both_sides.h"

namespace deft::wire {

#if defined(__CUDACC__) || !defined(__GNUC__)
#define DEFT_WIRE_INLINE DEFT_BOTH_SIDES inline
#else
// Kernels for several instruction sets take these in; a call would be to the plain one.
#define DEFT_WIRE_INLINE inline __attribute__((always_inline))
#endif

constexpr std::uint32_t kSignBit = 0x80000000U;
constexpr std::uint32_t kInfinityBits = 0x7F800000U;
constexpr std::uint32_t kNanBits = 0x7FC00000U;  // in messages

DEFT_WIRE_INLINE std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

DEFT_WIRE_INLINE float float_of(std::uint32_t bits) {
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// All ones if a < b, else zero, for numbers below 2^31: vectors of older processors compare signed
// numbers only. Compilers do not vectorise a choice between results of float operations.
DEFT_WIRE_INLINE std::uint32_t below(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? ~0U : 0U;
}

// The same by arithmetic: faster where codes are read, slower where they are made.
DEFT_WIRE_INLINE std::uint32_t code_below(std::uint32_t code, std::uint32_t limit) {
  return 0U - ((code - limit) >> 31U);
}

// The first where the mask is all ones, the second where it is zero.
DEFT_WIRE_INLINE std::uint32_t chosen(std::uint32_t mask, std::uint32_t a, std::uint32_t b) {
  return (a & mask) | (b & ~mask);
}

// By their bits, sizes of finite values compare as integers, and what is not finite is larger.
DEFT_WIRE_INLINE std::uint32_t magnitude_of(float value) { return bits_of(value) & ~kSignBit; }

#ifdef __CUDA_ARCH__
__device__ inline float add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float subtract(float a, float b) { return __fsub_rn(a, b); }
__device__ inline float multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float divide(float a, float b) { return __fdiv_rn(a, b); }
#else
DEFT_WIRE_INLINE float add(float a, float b) { return a + b; }
DEFT_WIRE_INLINE float subtract(float a, float b) { return a - b; }
DEFT_WIRE_INLINE float multiply(float a, float b) { return a * b; }
DEFT_WIRE_INLINE float divide(float a, float b) { return a / b; }
#endif

// How a block is scaled: its codes stand for round(value * inverse), a code is worth code * scale.
struct Scale {
  float scale;
  float inverse;
};

// `largest`: the magnitude of the block's largest value; `top`: the largest code.
DEFT_WIRE_INLINE Scale scale_of(std::uint32_t largest, float top) {
  if (largest >= kInfinityBits) return {float_of(kNanBits), 0.0F};
  const float scale = divide(float_of(largest), top);
  if (scale < 0x1p-126F) return {0.0F, 0.0F};  // a denormal: too coarse to count in
  const float inverse = divide(top, float_of(largest));
  // Near the largest float the scale may have been rounded up too far.
  const bool over = bits_of(multiply(scale, top)) >= kInfinityBits;
  return {over ? float_of(bits_of(scale) - 1U) : scale, inverse};
}

// A code, and what it is worth before it is scaled.
struct Coded {
  std::uint32_t code;
  float worth;
};

// To the nearest integer, ties to even, for |value| below 2^22. The code is two's complement.
DEFT_WIRE_INLINE Coded integer_of(float value) {
  constexpr float kOnes = 0x1.8p23F;  // floats around it are whole numbers
  const float sum = add(value, kOnes);
  return {bits_of(sum) - bits_of(kOnes), subtract(sum, kOnes)};
}

// The top bits of a number, to the nearest, ties to even.
template <unsigned Dropped>
DEFT_WIRE_INLINE std::uint32_t rounded(std::uint32_t bits) {
  constexpr std::uint32_t kBelowHalf = (1U << (Dropped - 1U)) - 1U;
  return (bits + kBelowHalf + (bits >> Dropped & 1U)) >> Dropped;
}

// Floats of fewer bits: so many of fraction, and this exponent of the least normal number.
template <unsigned Fraction, int Least>
struct SmallFloat {
  static constexpr unsigned kDropped = 23U - Fraction;
  static constexpr std::uint32_t kLeastBits = static_cast<std::uint32_t>(127 + Least) << 23U;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(126 + Least) << Fraction;
  // Around this float, floats count in steps of the least denormal number.
  static constexpr std::uint32_t kStepsBits = kLeastBits + (kDropped << 23U);

  // Of a finite magnitude; code and worth without sign. Too large ones get codes beyond those of
  // the format.
  static DEFT_WIRE_INLINE Coded coded(std::uint32_t magnitude) {
    const std::uint32_t top_bits = rounded<kDropped>(magnitude);
    const float steps = add(float_of(magnitude), float_of(kStepsBits));
    const float denormal = subtract(steps, float_of(kStepsBits));
    const std::uint32_t small = below(magnitude, kLeastBits);
    return {chosen(small, bits_of(steps) - kStepsBits, top_bits - kRebias),
            float_of(chosen(small, bits_of(denormal), top_bits << kDropped))};
  }

  // The magnitude, as bits, of a code without sign that stands for a number.
  static DEFT_WIRE_INLINE std::uint32_t magnitude_of_code(std::uint32_t code) {
    const std::uint32_t fraction = code << kDropped;
    const std::uint32_t normal = fraction + (kRebias << kDropped);
    const std::uint32_t denormal =
        bits_of(subtract(float_of(fraction + kLeastBits), float_of(kLeastBits)));
    return chosen(code_below(code, 1U << Fraction), denormal, normal);
  }
};

using E4m3Float = SmallFloat<3, -6>;
using HalfFloat = SmallFloat<10, -14>;

DEFT_WIRE_INLINE float worth_of_e4m3(std::uint32_t code) {
  const std::uint32_t unsigned_code = code & 0x7FU;
  const std::uint32_t magnitude = chosen(code_below(unsigned_code, 0x7FU),
                                         E4m3Float::magnitude_of_code(unsigned_code), kNanBits);
  return float_of(magnitude | (code & 0x80U) << 24U);
}

// For |value| below 464.
DEFT_WIRE_INLINE Coded e4m3_of(float value) {
  const std::uint32_t sign = bits_of(value) & kSignBit;
  const Coded coded = E4m3Float::coded(magnitude_of(value));
  return {coded.code | sign >> 24U, float_of(bits_of(coded.worth) | sign)};
}

DEFT_WIRE_INLINE float worth_of_f16(std::uint32_t code) {
  const std::uint32_t unsigned_code = code & 0x7FFFU;
  const std::uint32_t infinite = unsigned_code << HalfFloat::kDropped | kInfinityBits;
  const std::uint32_t magnitude = chosen(code_below(unsigned_code, 0x7C00U),
                                         HalfFloat::magnitude_of_code(unsigned_code), infinite);
  return float_of(magnitude | (code & 0x8000U) << 16U);
}

// With the sign of `value`. The worth is that of finite codes only.
DEFT_WIRE_INLINE Coded with_sign(float value, Coded coded) {
  const std::uint32_t sign = bits_of(value) & kSignBit;
  const std::uint32_t code = coded.code | sign >> 16U;
  return {chosen(below(kInfinityBits, magnitude_of(value)), 0x7FFFU, code),
          float_of(bits_of(coded.worth) | sign)};
}

// `saturate`: a finite value becomes at most the largest finite one, whose code is one less than
// that of infinity.
DEFT_WIRE_INLINE Coded f16_of(float value, bool saturate) {
  const std::uint32_t magnitude = magnitude_of(value);
  const std::uint32_t spared = saturate ? below(magnitude, kInfinityBits) & 1U : 0U;
  const std::uint32_t most = 0x7C00U - spared;
  const Coded coded = HalfFloat::coded(magnitude);
  const std::uint32_t fits = below(coded.code, most);
  return with_sign(value, {chosen(fits, coded.code, most),
                           float_of(chosen(fits, bits_of(coded.worth), bits_of(65504.0F)))});
}

DEFT_WIRE_INLINE float worth_of_bf16(std::uint32_t code) { return float_of(code << 16U); }

DEFT_WIRE_INLINE Coded bf16_of(float value, bool saturate) {
  const std::uint32_t magnitude = magnitude_of(value);
  const std::uint32_t spared = saturate ? below(magnitude, kInfinityBits) & 1U : 0U;
  const std::uint32_t most = 0x7F80U - spared;
  const std::uint32_t code = rounded<16U>(magnitude);
  const std::uint32_t limited = chosen(below(code, most), code, most);
  return with_sign(value, {limited, worth_of_bf16(limited)});
}

}  // namespace deft::wire
