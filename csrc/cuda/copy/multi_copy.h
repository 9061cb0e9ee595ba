// Many gradients into a bucket, or out of it: to = scale * from, or to += scale * from, for all
// segments in one launch, with a cast between any two of the floating types.
//
// Functions return 0, or a code below 0 that deft_cuda_error explains.
#pragma once

#include "cuda/copy/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DeftCopy {
  int from_dtype;  // enum DeftDType; kDeftBytes only to kDeftBytes, and only plain copies
  int to_dtype;
  double scale;
  int accumulate;  // 1: to += scale * from
  int device;
} DeftCopy;

// Segments of two arrays: 0 is from, 1 is to. `from` may be `to` (same type), not overlap it in any
// other way. Asynchronous, in a cudaStream_t of the device; null is its default stream.
int deft_multi_copy(const DeftSegments* segments, const DeftCopy* copy, void* stream);

#ifdef __cplusplus
}
#endif
