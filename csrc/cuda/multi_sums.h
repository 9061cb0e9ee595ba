// What gradients are like, in one pass over all segments: squares of a, b and c, of the change a -
// b, and the product a * b. With an average (a), the one before (b) and a rank's own gradient (c)
// that is what the Preserver judges by.
#pragma once

#include "cuda/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

enum DeftSum {
  kDeftASquared = 0,
  kDeftBSquared = 1,
  kDeftChangeSquared = 2,  // of a - b
  kDeftATimesB = 3,
  kDeftCSquared = 4,  // stays as it is without a third array
  kDeftSums = 5,
};

typedef struct DeftSumsOf {
  int dtypes[3];  // of a, b, c; any but kDeftBytes
  double* sums;   // kDeftSums of them, on the device; added to
  int device;
} DeftSumsOf;

// Segments of two arrays, a and b, or three. All in double: only the order of additions, which is
// not the same in each run, adds an error. 0, or a code below 0. Asynchronous.
int deft_multi_sums(const DeftSegments* segments, const DeftSumsOf* of, void* stream);

#ifdef __cplusplus
}
#endif
