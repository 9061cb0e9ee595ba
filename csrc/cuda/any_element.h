// Elements of a type that is only known at run time: for kernels that read many arrays, where one
// for each combination of types would be too many.
#pragma once

#include "cuda/dtype.h"
#include "cuda/element.h"

namespace deft_cuda {

constexpr int kGroup = 4;  // elements that a thread takes at once

template <class T, class Number, int Lanes>
DEFT_BOTH_SIDES inline void load_as(void* array, std::int64_t at, Number (&into)[Lanes]) {
  const Vector<T, Lanes> vector = *vector_at<T, Lanes>(array, at);
  DEFT_UNROLL
  for (int i = 0; i < Lanes; ++i) into[i] = static_cast<Number>(wide(vector.lane[i]));
}

template <class Number, int Lanes>
DEFT_BOTH_SIDES inline void load_any(int dtype, void* array, std::int64_t at,
                                     Number (&into)[Lanes]) {
  switch (dtype) {
    case kDeftFloat16:
      return load_as<Half>(array, at, into);
    case kDeftBFloat16:
      return load_as<BFloat16>(array, at, into);
    case kDeftFloat64:
      return load_as<double>(array, at, into);
    default:
      return load_as<float>(array, at, into);
  }
}

template <class T, class Number, int Lanes>
DEFT_BOTH_SIDES inline void store_as(void* array, std::int64_t at, const Number (&from)[Lanes]) {
  Vector<T, Lanes> vector;
  DEFT_UNROLL
  for (int i = 0; i < Lanes; ++i) vector.lane[i] = narrow<T>(from[i]);
  store(vector, array, at);
}

template <class Number, int Lanes>
DEFT_BOTH_SIDES inline void store_any(int dtype, void* array, std::int64_t at,
                                      const Number (&from)[Lanes]) {
  switch (dtype) {
    case kDeftFloat16:
      return store_as<Half>(array, at, from);
    case kDeftBFloat16:
      return store_as<BFloat16>(array, at, from);
    case kDeftFloat64:
      return store_as<double>(array, at, from);
    default:
      return store_as<float>(array, at, from);
  }
}

}  // namespace deft_cuda
