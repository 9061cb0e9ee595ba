// Element types of the kernels, by number: the C interface knows no templates.
#pragma once

#include "cuda/both_sides.h"

#ifdef __cplusplus
extern "C" {
#endif

enum DeftDType {
  kDeftFloat32 = 0,
  kDeftFloat16 = 1,
  kDeftBFloat16 = 2,
  kDeftFloat64 = 3,
  kDeftBytes = 4,  // anything else, one byte an element: it can only be copied
};

// 0: no such type.
DEFT_BOTH_SIDES static inline int deft_item_bytes(int dtype) {
  switch (dtype) {
    case kDeftFloat32:
      return 4;
    case kDeftFloat16:
    case kDeftBFloat16:
      return 2;
    case kDeftFloat64:
      return 8;
    case kDeftBytes:
      return 1;
    default:
      return 0;
  }
}

#ifdef __cplusplus
}
#endif
