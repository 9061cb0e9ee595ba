// What gradients are like, in one pass over all segments: squares of a, b and c, of the change a -
// b, and the product a * b. With an average (a), the one before (b) and a rank's own gradient (c)
// that is what the Preserver judges by.
#pragma once

#include "cuda/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

enum DeftSum {
  DEFT_SUM_A_SQUARED = 0,
  DEFT_SUM_B_SQUARED = 1,
  DEFT_SUM_CHANGE_SQUARED = 2,  // of a - b
  DEFT_SUM_A_TIMES_B = 3,
  DEFT_SUM_C_SQUARED = 4,  // stays as it is without a third array
  DEFT_SUMS = 5,
};

typedef struct DeftSumsOf {
  int dtypes[3];  // of a, b, c; any but DEFT_BYTES
  double* sums;   // DEFT_SUMS of them, on the device; added to
  int device;
} DeftSumsOf;

// Segments of two arrays, a and b, or three. All in double: only the order of additions, which is
// not the same in each run, adds an error. 0, or a code below 0. Asynchronous.
int deft_multi_sums(const DeftSegments* segments, const DeftSumsOf* of, void* stream);

#ifdef __cplusplus
}
#endif
