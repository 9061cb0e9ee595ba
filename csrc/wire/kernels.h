// The loops over a message, written once; each instruction set compiles them for itself, and the
// compiler's vectoriser does the rest. docs/internals/wire-codec.md says why this is enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire/codes.h"

namespace deft::wire {

constexpr std::int64_t kPlainChunk = 64;  // of formats without blocks; a whole number of vectors

// Takes `values`, adds what earlier messages left behind, and says how large the largest is.
template <std::int64_t Block, bool Rest>
DEFT_WIRE_INLINE std::uint32_t gather(const float* __restrict values, const float* __restrict rest,
                                      float* __restrict sums) {
  std::int32_t largest = 0;  // signed: there is no unsigned maximum in older vectors
  for (std::int64_t i = 0; i < Block; ++i) {
    const float sum = Rest ? add(values[i], rest[i]) : values[i];
    const auto magnitude = static_cast<std::int32_t>(magnitude_of(sum));
    sums[i] = sum;
    largest = magnitude > largest ? magnitude : largest;
  }
  return static_cast<std::uint32_t>(largest);
}

template <class Codes, bool Rest>
DEFT_WIRE_INLINE void quantise(const float* __restrict sums, Scale scale, float* __restrict rest,
                               std::uint8_t* __restrict codes) {
  for (std::int64_t i = 0; i < Codes::kBlock; ++i) {
    const Coded coded = Codes::coded(multiply(sums[i], scale.inverse));
    codes[i] = static_cast<std::uint8_t>(coded.code);
    if (Rest) rest[i] = subtract(sums[i], multiply(coded.worth, scale.scale));
  }
}

template <class Codes, bool Rest>
DEFT_WIRE_INLINE void quantise_pairs(const float* __restrict sums, Scale scale,
                                     float* __restrict rest, std::uint8_t* __restrict codes) {
  for (std::int64_t i = 0; i < kHalfBlock; ++i) {
    const std::int64_t other = i + kHalfBlock;
    const Coded low = Codes::coded(multiply(sums[i], scale.inverse));
    const Coded high = Codes::coded(multiply(sums[other], scale.inverse));
    codes[i] = static_cast<std::uint8_t>(Codes::packed(low.code, high.code));
    if (Rest) rest[i] = subtract(sums[i], multiply(low.worth, scale.scale));
    if (Rest) rest[other] = subtract(sums[other], multiply(high.worth, scale.scale));
  }
}

// One whole block; its scale.
template <class Codes, bool Rest>
DEFT_WIRE_INLINE float encode_block(const float* __restrict values, float* __restrict rest,
                                    std::uint8_t* __restrict codes) {
  float sums[Codes::kBlock];
  const Scale scale = scale_of(gather<Codes::kBlock, Rest>(values, rest, sums), Codes::kTop);
  if (scale.scale != scale.scale) {
    std::memset(codes, 0, Codes::kBlockBytes);  // not finite: the rest stays as it is
  } else if constexpr (Codes::kBlockBytes == Codes::kBlock) {
    quantise<Codes, Rest>(sums, scale, rest, codes);
  } else {
    quantise_pairs<Codes, Rest>(sums, scale, rest, codes);
  }
  return scale.scale;
}

constexpr std::size_t bytes_in(std::int64_t elements, std::size_t each = sizeof(float)) {
  return static_cast<std::size_t>(elements) * each;
}

// The last block as if zeros followed.
template <class Codes, bool Rest>
DEFT_WIRE_INLINE float encode_last(const float* values, float* rest, std::int64_t elements,
                                   std::uint8_t* codes, std::int64_t code_bytes) {
  float block[Codes::kBlock] = {};
  float block_rest[Codes::kBlock] = {};
  std::uint8_t block_codes[Codes::kBlockBytes];
  std::memcpy(block, values, bytes_in(elements));
  if (Rest) std::memcpy(block_rest, rest, bytes_in(elements));
  const float scale = encode_block<Codes, Rest>(block, block_rest, block_codes);
  if (Rest) std::memcpy(rest, block_rest, bytes_in(elements));
  std::memcpy(codes, block_codes, static_cast<std::size_t>(code_bytes));
  return scale;
}

// Bytes of codes of so many values, which are the last ones.
template <class Codes>
DEFT_WIRE_INLINE std::int64_t code_bytes_of(std::int64_t elements) {
  return Codes::kBlockBytes == Codes::kBlock ? byte_code_bytes(elements)
                                             : int4_code_bytes(elements);
}

template <class Codes, bool Rest>
DEFT_WIRE_INLINE void encode_blocks(const float* values, float* rest, std::int64_t elements,
                                    std::byte* out) {
  const std::int64_t whole = elements / Codes::kBlock;
  const std::int64_t left = elements % Codes::kBlock;
  const std::int64_t scales = scale_bytes(elements, Codes::kBlock);
  auto* codes = reinterpret_cast<std::uint8_t*>(out + scales);
  for (std::int64_t i = 0; i < whole; ++i) {
    const std::int64_t at = i * Codes::kBlock;
    const float scale = encode_block<Codes, Rest>(values + at, Rest ? rest + at : nullptr,
                                                  codes + i * Codes::kBlockBytes);
    std::memcpy(out + 4 * i, &scale, sizeof scale);
  }
  if (left > 0) {
    const std::int64_t at = whole * Codes::kBlock;
    const float scale =
        encode_last<Codes, Rest>(values + at, Rest ? rest + at : nullptr, left,
                                 codes + whole * Codes::kBlockBytes, code_bytes_of<Codes>(left));
    std::memcpy(out + 4 * whole, &scale, sizeof scale);
  }
  const std::int64_t bytes = scales + code_bytes_of<Codes>(elements);
  std::memset(out + bytes, 0, static_cast<std::size_t>(padded(bytes) - bytes));
}

template <class Codes, bool Add>
DEFT_WIRE_INLINE void decode_block(const std::uint8_t* __restrict codes, float scale,
                                   float* __restrict out) {
  if constexpr (Codes::kBlockBytes == Codes::kBlock) {
    for (std::int64_t i = 0; i < Codes::kBlock; ++i) {
      const float value = multiply(Codes::worth(codes[i]), scale);
      out[i] = Add ? add(out[i], value) : value;
    }
  } else {
    for (std::int64_t i = 0; i < kHalfBlock; ++i) {
      const std::int64_t other = i + kHalfBlock;
      const float low = multiply(Codes::worth_low(codes[i]), scale);
      const float high = multiply(Codes::worth_high(codes[i]), scale);
      out[i] = Add ? add(out[i], low) : low;
      out[other] = Add ? add(out[other], high) : high;
    }
  }
}

template <class Codes, bool Add>
DEFT_WIRE_INLINE void decode_blocks(const std::byte* in, std::int64_t elements, float* out) {
  const std::int64_t whole = elements / Codes::kBlock;
  const std::int64_t left = elements % Codes::kBlock;
  const auto* codes =
      reinterpret_cast<const std::uint8_t*>(in + scale_bytes(elements, Codes::kBlock));
  for (std::int64_t i = 0; i < whole; ++i) {
    float scale = 0.0F;
    std::memcpy(&scale, in + 4 * i, sizeof scale);
    decode_block<Codes, Add>(codes + i * Codes::kBlockBytes, scale, out + i * Codes::kBlock);
  }
  if (left == 0) return;
  float scale = 0.0F;
  float block[Codes::kBlock] = {};
  std::uint8_t block_codes[Codes::kBlockBytes] = {};
  float* last = out + whole * Codes::kBlock;
  std::memcpy(&scale, in + 4 * whole, sizeof scale);
  std::memcpy(block_codes, codes + whole * Codes::kBlockBytes,
              static_cast<std::size_t>(code_bytes_of<Codes>(left)));
  if (Add) std::memcpy(block, last, bytes_in(left));
  decode_block<Codes, Add>(block_codes, scale, block);
  std::memcpy(last, block, bytes_in(left));
}

// A chunk of values that stand for themselves.
template <class Codes, bool Rest>
DEFT_WIRE_INLINE void encode_chunk(const float* __restrict values, float* __restrict rest,
                                   std::byte* __restrict out) {
  // Made shorter at the end, all together: else each mask and choice is.
  std::uint32_t wide[kPlainChunk];
  for (std::int64_t i = 0; i < kPlainChunk; ++i) {
    const float before = Rest ? rest[i] : 0.0F;
    const float sum = Rest ? add(values[i], before) : values[i];
    const Coded coded = Codes::coded(sum, Rest);
    const float left = subtract(sum, coded.worth);
    wide[i] = coded.code;
    if (Rest) {
      const std::uint32_t finite = below(magnitude_of(sum), kInfinityBits);
      rest[i] = float_of(chosen(finite, bits_of(left), bits_of(before)));
    }
  }
  typename Codes::Code codes[kPlainChunk];
  for (std::int64_t i = 0; i < kPlainChunk; ++i) codes[i] = static_cast<Codes::Code>(wide[i]);
  std::memcpy(out, codes, sizeof codes);
}

template <class Codes, bool Rest>
DEFT_WIRE_INLINE void encode_plain(const float* values, float* rest, std::int64_t elements,
                                   std::byte* out) {
  constexpr std::size_t kEach = sizeof(typename Codes::Code);
  const std::int64_t whole = elements / kPlainChunk * kPlainChunk;
  for (std::int64_t at = 0; at < whole; at += kPlainChunk) {
    encode_chunk<Codes, Rest>(values + at, Rest ? rest + at : nullptr, out + bytes_in(at, kEach));
  }
  const std::int64_t left = elements - whole;
  if (left == 0) return;
  float chunk[kPlainChunk] = {};
  float chunk_rest[kPlainChunk] = {};
  std::byte codes[kPlainChunk * kEach] = {};
  std::memcpy(chunk, values + whole, bytes_in(left));
  if (Rest) std::memcpy(chunk_rest, rest + whole, bytes_in(left));
  encode_chunk<Codes, Rest>(chunk, chunk_rest, codes);
  if (Rest) std::memcpy(rest + whole, chunk_rest, bytes_in(left));
  // The codes of the zeros are zeros, as the padding has to be.
  const auto last_bytes = static_cast<std::int64_t>(bytes_in(left, kEach));
  std::memcpy(out + bytes_in(whole, kEach), codes, static_cast<std::size_t>(padded(last_bytes)));
}

template <class Codes, bool Add>
DEFT_WIRE_INLINE void decode_chunk(const std::byte* __restrict in, float* __restrict out) {
  typename Codes::Code codes[kPlainChunk];
  std::memcpy(codes, in, sizeof codes);
  for (std::int64_t i = 0; i < kPlainChunk; ++i) {
    const float value = Codes::worth(codes[i]);
    out[i] = Add ? add(out[i], value) : value;
  }
}

template <class Codes, bool Add>
DEFT_WIRE_INLINE void decode_plain(const std::byte* in, std::int64_t elements, float* out) {
  constexpr std::size_t kEach = sizeof(typename Codes::Code);
  const std::int64_t whole = elements / kPlainChunk * kPlainChunk;
  for (std::int64_t at = 0; at < whole; at += kPlainChunk) {
    decode_chunk<Codes, Add>(in + bytes_in(at, kEach), out + at);
  }
  const std::int64_t left = elements - whole;
  if (left == 0) return;
  float chunk[kPlainChunk] = {};
  std::byte codes[kPlainChunk * kEach] = {};
  std::memcpy(codes, in + bytes_in(whole, kEach), bytes_in(left, kEach));
  if (Add) std::memcpy(chunk, out + whole, bytes_in(left));
  decode_chunk<Codes, Add>(codes, chunk);
  std::memcpy(out + whole, chunk, bytes_in(left));
}

}  // namespace deft::wire
