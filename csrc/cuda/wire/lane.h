// The work of one thread on one span of a message; runs on both sides, with the arithmetic of
// csrc/wire. A span is a block of a block format, and as many values as a long block elsewhere.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/wire/quads.h"
#include "wire/codes.h"

namespace deft_cuda {

namespace wire = deft::wire;

struct EncodeJob {
  const float* values;
  float* rest;  // or null
  Byte* message;
  std::int64_t elements;
  bool vectors;  // all buffers lie at multiples of 16 bytes
};

struct DecodeJob {
  const Byte* message;
  float* out;
  std::int64_t elements;
  bool vectors;
  bool add;
};

// What a thread has loaded, and the magnitude of the largest of it.
struct Loaded {
  Quad sums[2];
  Quad rests[2];
  std::uint32_t largest;
};

// `at`: of the first of eight values; the others are half a span further.
DEFT_BOTH_SIDES inline Loaded load_values(const EncodeJob& job, std::int64_t at,
                                          std::int64_t half) {
  Loaded loaded = {};
  DEFT_UNROLL
  for (int q = 0; q < 2; ++q) {
    loaded.sums[q] = load_four<float>(job.values, at + q * half, job.elements, job.vectors);
    if (job.rest == nullptr) continue;
    loaded.rests[q] = load_four<float>(job.rest, at + q * half, job.elements, job.vectors);
  }
  DEFT_UNROLL
  for (int i = 0; i < 8; ++i) {
    float& sum = loaded.sums[i / 4].lane[i % 4];
    if (job.rest != nullptr) sum = wire::add(sum, loaded.rests[i / 4].lane[i % 4]);
    const std::uint32_t magnitude = wire::magnitude_of(sum);
    loaded.largest = magnitude > loaded.largest ? magnitude : loaded.largest;
  }
  return loaded;
}

DEFT_BOTH_SIDES inline void store_floats(const Quad (&quads)[2], float* array, std::int64_t at,
                                         std::int64_t half, std::int64_t elements, bool vectors) {
  DEFT_UNROLL
  for (int q = 0; q < 2; ++q) store_four(quads[q], array, at + q * half, elements, vectors);
}

DEFT_BOTH_SIDES inline void store_decoded(const DecodeJob& job, Quad (&quads)[2], std::int64_t at,
                                          std::int64_t half) {
  DEFT_UNROLL
  for (int q = 0; q < 2 && job.add; ++q) {
    const Quad before = load_four<float>(job.out, at + q * half, job.elements, job.vectors);
    DEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      quads[q].lane[i] = wire::add(before.lane[i], quads[q].lane[i]);
    }
  }
  store_floats(quads, job.out, at, half, job.elements, job.vectors);
}

template <class Codes>
struct BlockLanes {
  static constexpr std::int64_t kSpan = Codes::kBlock;
  static constexpr std::int64_t kHalf = kSpan / 2;
  static constexpr int kLanes = static_cast<int>(kHalf / 4);  // threads of a span
  static constexpr bool kScaled = true;
  static constexpr bool kNibbles = Codes::kBlockBytes != Codes::kBlock;

  // Of all codes, padding included, from the first code on.
  DEFT_BOTH_SIDES static std::int64_t code_bytes(std::int64_t elements) {
    return wire::padded(kNibbles ? wire::int4_code_bytes(elements)
                                 : wire::byte_code_bytes(elements));
  }
  DEFT_BOTH_SIDES static std::int64_t code_begin(std::int64_t elements) {
    return wire::scale_bytes(elements, kSpan);
  }

  // `largest`: over all threads of the span.
  DEFT_BOTH_SIDES static void finish(const EncodeJob& job, std::int64_t span, int lane,
                                     Loaded& loaded, std::uint32_t largest) {
    const wire::Scale scale = wire::scale_of(largest, Codes::kTop);
    const bool finite = largest < wire::kInfinityBits;
    std::uint32_t codes[8];
    DEFT_UNROLL
    for (int i = 0; i < 8; ++i) {
      float& sum = loaded.sums[i / 4].lane[i % 4];
      const wire::Coded coded = Codes::coded(wire::multiply(sum, scale.inverse));
      codes[i] = finite ? coded.code : 0U;
      sum = wire::subtract(sum, wire::multiply(coded.worth, scale.scale));
    }
    if (lane == 0) reinterpret_cast<float*>(job.message)[span] = scale.scale;
    const std::int64_t at = span * kSpan + std::int64_t{4} * lane;
    if (job.rest != nullptr && finite) {
      store_floats(loaded.sums, job.rest, at, kHalf, job.elements, job.vectors);
    }
    Byte* first = job.message + code_begin(job.elements);
    const std::int64_t bytes = code_bytes(job.elements);
    Vector<Byte, 4> four;
    for (int q = 0; q < (kNibbles ? 1 : 2); ++q) {
      DEFT_UNROLL
      for (int i = 0; i < 4; ++i) {
        if constexpr (kNibbles) {
          four.lane[i] = static_cast<Byte>(Codes::packed(codes[i], codes[4 + i]));
        } else {
          four.lane[i] = static_cast<Byte>(codes[4 * q + i]);
        }
      }
      const std::int64_t begin = span * Codes::kBlockBytes + 4 * lane + q * kHalf;
      if (begin < bytes) store(four, first, begin);
    }
  }

  DEFT_BOTH_SIDES static void decode(const DecodeJob& job, std::int64_t span, int lane) {
    const float scale = reinterpret_cast<const float*>(job.message)[span];
    const Byte* first = job.message + code_begin(job.elements);
    const std::int64_t bytes = code_bytes(job.elements);
    const std::int64_t begin = span * Codes::kBlockBytes + 4 * lane;
    Quad quads[2];
    DEFT_UNROLL
    for (int q = 0; q < 2; ++q) {
      const std::int64_t here = begin + (kNibbles ? 0 : q * kHalf);
      const Vector<Byte, 4> four = load_four<Byte>(first, here, bytes, true);
      DEFT_UNROLL
      for (int i = 0; i < 4; ++i) {
        float worth = 0.0F;
        if constexpr (kNibbles) {
          worth = q == 0 ? Codes::worth_low(four.lane[i]) : Codes::worth_high(four.lane[i]);
        } else {
          worth = Codes::worth(four.lane[i]);
        }
        quads[q].lane[i] = wire::multiply(worth, scale);
      }
    }
    store_decoded(job, quads, span * kSpan + std::int64_t{4} * lane, kHalf);
  }
};

// Codes as element.h knows how to move them.
template <class Code>
using Moved = std::conditional_t<sizeof(Code) == 2, Half, float>;

template <class Codes>
struct PlainLanes {
  static constexpr std::int64_t kSpan = wire::kLongBlock;
  static constexpr std::int64_t kHalf = kSpan / 2;
  static constexpr int kLanes = static_cast<int>(kHalf / 4);
  static constexpr bool kScaled = false;
  using Code = Moved<typename Codes::Code>;

  DEFT_BOTH_SIDES static Code code_of(std::uint32_t bits) {
    if constexpr (sizeof(Code) == 2) {
      return {static_cast<std::uint16_t>(bits)};
    } else {
      return wire::float_of(bits);
    }
  }
  DEFT_BOTH_SIDES static std::uint32_t bits_of(Code code) {
    if constexpr (sizeof(Code) == 2) {
      return code.bits;
    } else {
      return wire::bits_of(code);
    }
  }
  // Padding included.
  DEFT_BOTH_SIDES static std::int64_t codes_of(std::int64_t elements) {
    constexpr auto kEach = static_cast<std::int64_t>(sizeof(Code));
    return wire::padded(kEach * elements) / kEach;
  }

  DEFT_BOTH_SIDES static void finish(const EncodeJob& job, std::int64_t span, int lane,
                                     Loaded& loaded, std::uint32_t /*largest*/) {
    const std::int64_t at = span * kSpan + std::int64_t{4} * lane;
    DEFT_UNROLL
    for (int q = 0; q < 2; ++q) {
      Vector<Code, 4> codes;
      DEFT_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& sum = loaded.sums[q].lane[i];
        const wire::Coded coded = Codes::coded(sum, job.rest != nullptr);
        codes.lane[i] = code_of(coded.code);
        const bool finite = wire::magnitude_of(sum) < wire::kInfinityBits;
        sum = finite ? wire::subtract(sum, coded.worth) : loaded.rests[q].lane[i];
      }
      store_four(codes, job.message, at + q * kHalf, codes_of(job.elements), job.vectors);
    }
    if (job.rest != nullptr) {
      store_floats(loaded.sums, job.rest, at, kHalf, job.elements, job.vectors);
    }
  }

  DEFT_BOTH_SIDES static void decode(const DecodeJob& job, std::int64_t span, int lane) {
    const std::int64_t at = span * kSpan + std::int64_t{4} * lane;
    Quad quads[2];
    DEFT_UNROLL
    for (int q = 0; q < 2; ++q) {
      const auto codes =
          load_four<Code>(job.message, at + q * kHalf, codes_of(job.elements), job.vectors);
      DEFT_UNROLL
      for (int i = 0; i < 4; ++i) quads[q].lane[i] = Codes::worth(bits_of(codes.lane[i]));
    }
    store_decoded(job, quads, at, kHalf);
  }
};

}  // namespace deft_cuda
