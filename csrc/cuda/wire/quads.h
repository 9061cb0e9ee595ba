// The eight values of one thread: two runs of four, half a span apart, so that the threads of a
// span load and store side by side. Runs on both sides.
#pragma once

#include <cstdint>

#include "cuda/copy/element.h"

namespace deft_cuda {

using Quad = Vector<float, 4>;

// Four elements of an array of so many, those that it does not have as zeros. `vectors`: the array
// lies so that four at a time can be loaded.
template <class T>
DEFT_BOTH_SIDES inline Vector<T, 4> load_four(const void* array, std::int64_t at,
                                              std::int64_t elements, bool vectors) {
  void* from = const_cast<void*>(array);
  if (vectors && at + 4 <= elements) return *vector_at<T, 4>(from, at);
  Vector<T, 4> four = {};
  DEFT_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (at + i < elements) four.lane[i] = static_cast<const T*>(array)[at + i];
  }
  return four;
}

template <class T>
DEFT_BOTH_SIDES inline void store_four(const Vector<T, 4>& four, void* array, std::int64_t at,
                                       std::int64_t elements, bool vectors) {
  if (vectors && at + 4 <= elements) {
    store(four, array, at);
    return;
  }
  DEFT_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (at + i < elements) static_cast<T*>(array)[at + i] = four.lane[i];
  }
}

}  // namespace deft_cuda
