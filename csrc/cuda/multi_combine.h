// Corrections of late gradients, element by element for all segments in one launch. The arrays are
// out, x, y and z.
#pragma once

#include "cuda/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

enum DeftFormula {
  // out = c[0] x + c[1] y + c[2] z: with 1/n, 1 and -1/n over a rank's own gradient, the average of
  // the step before and its own part in that one, the estimate `own_and_previous`.
  kDeftLinear = 0,
  // out = x + c[0] x^2 (y - z): DC-ASGD's term (arXiv 1609.08326), with the gradient, the
  // parameters
  // as they are and as the gradient saw them.
  kDeftCompensated = 1,
};

typedef struct DeftCombine {
  int formula;
  int dtypes[4];  // of out, x, y, z; any but kDeftBytes
  double coefficients[3];
  int device;
} DeftCombine;

// Segments of out and as many inputs as the formula takes: 1 to 3 for kDeftLinear, 3 for the other.
// Arithmetic in float, in double where one of them is of that type. `out` may be one of the others
// (same type). 0, or a code below 0. Asynchronous.
int deft_multi_combine(const DeftSegments* segments, const DeftCombine* combine, void* stream);

#ifdef __cplusplus
}
#endif
