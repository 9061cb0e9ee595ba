// Many runs of elements that one launch works on: a table made once, whose addresses may change
// every step. A segment is one run in two to four arrays of equal length (a gradient and its place
// in a bucket, say). Host code only: the same in builds with and without nvcc.
//
// Not thread-safe: a launch while another thread sets addresses mixes old and new ones. A launch
// copies the table, so addresses may be set again as soon as it returns.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DeftSegments DeftSegments;

// `elements` of each segment, 0 or more. Null: nothing like that can be (a negative length, less
// than 1 or more than 4 arrays, more than 2^62 elements), or no memory. Addresses start as null.
DeftSegments* deft_segments_create(int arrays, int64_t segments, const int64_t* elements);
void deft_segments_destroy(DeftSegments* segments);
// Where a segment begins in one of the arrays. 0, or -1: no such segment or array.
int deft_segments_set(DeftSegments* segments, int64_t segment, int array, const void* address);

#ifdef __cplusplus
}
#endif
