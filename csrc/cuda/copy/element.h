// Elements as kernels read and write them: numbers of 16 bits are kept as their bits, and
// arithmetic is in float, or in double where a double takes part.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cuda/both_sides.h"
#include "cuda/copy/float_bits.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace deft_cuda {

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
using Byte = std::uint8_t;

DEFT_BOTH_SIDES inline float wide(float value) { return value; }
DEFT_BOTH_SIDES inline double wide(double value) { return value; }

DEFT_BOTH_SIDES inline float wide(Half value) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(value.bits));
#else
  return float_of_half(value.bits);
#endif
}

DEFT_BOTH_SIDES inline float wide(BFloat16 value) {
#ifdef __CUDA_ARCH__
  return __bfloat162float(__ushort_as_bfloat16(value.bits));
#else
  return float_of_bfloat16(value.bits);
#endif
}

// To the nearest, ties to even.
template <class To>
DEFT_BOTH_SIDES inline To narrow(float value) {
  if constexpr (std::is_same_v<To, Half>) {
#ifdef __CUDA_ARCH__
    return {__half_as_ushort(__float2half_rn(value))};
#else
    return {half_of(value)};
#endif
  } else if constexpr (std::is_same_v<To, BFloat16>) {
#ifdef __CUDA_ARCH__
    return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
    return {bfloat16_of(value)};
#endif
  } else {
    return static_cast<To>(value);
  }
}

// A number of 16 bits is made by way of float, as in torch.
template <class To>
DEFT_BOTH_SIDES inline To narrow(double value) {
  if constexpr (std::is_same_v<To, double>) {
    return value;
  } else {
    return narrow<To>(static_cast<float>(value));
  }
}

// What a pair of types is computed in.
template <class A, class B>
using Math =
    std::conditional_t<std::is_same_v<A, double> || std::is_same_v<B, double>, double, float>;

DEFT_BOTH_SIDES inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
DEFT_BOTH_SIDES inline double fused(double a, double b, double c) { return fma(a, b, c); }

// So many elements at once, in loads and stores of up to 16 bytes.
template <class T, int Lanes>
struct alignas(sizeof(T) * Lanes < 16 ? sizeof(T) * Lanes : 16) Vector {
  T lane[Lanes];
};

// On the host a misaligned vector is not an error of its own, on a device it is the end.
template <class T, int Lanes>
DEFT_BOTH_SIDES inline Vector<T, Lanes>* vector_at(void* array, std::int64_t element) {
  auto* where = reinterpret_cast<Vector<T, Lanes>*>(static_cast<T*>(array) + element);
#ifndef __CUDA_ARCH__
  if (reinterpret_cast<std::uintptr_t>(where) % alignof(Vector<T, Lanes>) != 0) __builtin_trap();
#endif
  return where;
}

#ifdef __CUDA_ARCH__
__device__ inline unsigned word_bits(float value) { return __float_as_uint(value); }
__device__ inline unsigned word_bits(Half value) { return value.bits; }
__device__ inline unsigned word_bits(BFloat16 value) { return value.bits; }
__device__ inline unsigned word_bits(Byte value) { return value; }

// Four bytes of a vector.
template <class T, int Lanes>
__device__ inline unsigned word_of(const Vector<T, Lanes>& vector, int word) {
  constexpr int kLanes = 4 / static_cast<int>(sizeof(T));
  unsigned bits = 0;
  DEFT_UNROLL
  for (int i = 0; i < kLanes; ++i) {
    bits |= word_bits(vector.lane[word * kLanes + i]) << (8 * static_cast<int>(sizeof(T)) * i);
  }
  return bits;
}
#endif

// Left to itself, nvcc stores lane by lane; `__stwb` is the plain store, of one vector.
template <class T, int Lanes>
DEFT_BOTH_SIDES inline void store(const Vector<T, Lanes>& vector, void* array,
                                  std::int64_t element) {
  auto* where = vector_at<T, Lanes>(array, element);
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, double> && Lanes % 2 == 0) {
    DEFT_UNROLL
    for (int i = 0; i < Lanes / 2; ++i) {
      __stwb(reinterpret_cast<double2*>(where) + i,
             make_double2(vector.lane[2 * i], vector.lane[2 * i + 1]));
    }
  } else if constexpr (sizeof(vector) == 16) {
    __stwb(reinterpret_cast<uint4*>(where), make_uint4(word_of(vector, 0), word_of(vector, 1),
                                                       word_of(vector, 2), word_of(vector, 3)));
  } else if constexpr (sizeof(vector) == 8 && sizeof(T) < 8) {
    __stwb(reinterpret_cast<uint2*>(where), make_uint2(word_of(vector, 0), word_of(vector, 1)));
  } else if constexpr (sizeof(vector) == 4 && Lanes > 1) {
    *reinterpret_cast<unsigned*>(where) = word_of(vector, 0);
  } else {
    *where = vector;
  }
#else
  *where = vector;
#endif
}

}  // namespace deft_cuda
