// Element types of the kernels, by number: the C interface knows no templates.
#pragma once

#include "cuda/both_sides.h"

#ifdef __cplusplus
extern "C" {
#endif

enum DeftDType {
  DEFT_FLOAT32 = 0,
  DEFT_FLOAT16 = 1,
  DEFT_BFLOAT16 = 2,
  DEFT_FLOAT64 = 3,
  DEFT_BYTES = 4,  // anything else, one byte an element: it can only be copied
};

// 0: no such type.
DEFT_BOTH_SIDES static inline int deft_item_bytes(int dtype) {
  switch (dtype) {
    case DEFT_FLOAT32:
      return 4;
    case DEFT_FLOAT16:
    case DEFT_BFLOAT16:
      return 2;
    case DEFT_FLOAT64:
      return 8;
    case DEFT_BYTES:
      return 1;
    default:
      return 0;
  }
}

#ifdef __cplusplus
}
#endif
