// Makes the table of an instruction set: a macro, as a function carries its instruction set in an
// attribute, and what has no such attribute is compiled for all processors.
#pragma once

#include "wire/kernels.h"
#include "wire/kinds.h"

// DEFT_WIRE_KERNELS(attribute): Blocks<Codes>, Plain<Codes> and kTable, for use in an unnamed
// namespace.
// NOLINTBEGIN(bugprone-macro-parentheses): an attribute cannot stand in parentheses
#define DEFT_WIRE_KERNELS(ATTRIBUTE)                                                           \
  template <class Codes>                                                                       \
  struct Blocks {                                                                              \
    ATTRIBUTE static void encode(const float* values, float* rest, std::int64_t elements,      \
                                 std::byte* out) {                                             \
      if (rest != nullptr) {                                                                   \
        encode_blocks<Codes, true>(values, rest, elements, out);                               \
      } else {                                                                                 \
        encode_blocks<Codes, false>(values, rest, elements, out);                              \
      }                                                                                        \
    }                                                                                          \
    ATTRIBUTE static void decode(const std::byte* in, std::int64_t elements, float* out) {     \
      decode_blocks<Codes, false>(in, elements, out);                                          \
    }                                                                                          \
    ATTRIBUTE static void decode_add(const std::byte* in, std::int64_t elements, float* out) { \
      decode_blocks<Codes, true>(in, elements, out);                                           \
    }                                                                                          \
  };                                                                                           \
  template <class Codes>                                                                       \
  struct Plain {                                                                               \
    ATTRIBUTE static void encode(const float* values, float* rest, std::int64_t elements,      \
                                 std::byte* out) {                                             \
      if (rest != nullptr) {                                                                   \
        encode_plain<Codes, true>(values, rest, elements, out);                                \
      } else {                                                                                 \
        encode_plain<Codes, false>(values, rest, elements, out);                               \
      }                                                                                        \
    }                                                                                          \
    ATTRIBUTE static void decode(const std::byte* in, std::int64_t elements, float* out) {     \
      decode_plain<Codes, false>(in, elements, out);                                           \
    }                                                                                          \
    ATTRIBUTE static void decode_add(const std::byte* in, std::int64_t elements, float* out) { \
      decode_plain<Codes, true>(in, elements, out);                                            \
    }                                                                                          \
  };                                                                                           \
  template <class Loops>                                                                       \
  constexpr FormatKernels kOf = {&Loops::encode, &Loops::decode, &Loops::decode_add};          \
  constexpr Kernels kTable = {kOf<Plain<F32Codes>>,   kOf<Plain<F16Codes>>,                    \
                              kOf<Plain<Bf16Codes>>,  kOf<Blocks<E4m3Codes>>,                  \
                              kOf<Blocks<Int8Codes>>, kOf<Blocks<Int4Codes>>};
// NOLINTEND(bugprone-macro-parentheses)
