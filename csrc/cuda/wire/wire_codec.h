// The codec of csrc/wire on a GPU: the same bytes and the same rests, bit for bit.
//
// Functions return 0, or a code below 0 that deft_cuda_error explains. Asynchronous, in a
// cudaStream_t of the device; null is its default stream.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DeftWire {
  int format;        // of deft::wire::Format
  int64_t elements;  // of the message
  int device;
} DeftWire;

// Floats lie at multiples of 4 bytes, messages at multiples of 4; at multiples of 16 all of it is
// faster. `rest` may be null. Nothing may overlap.
int deft_wire_encode(const DeftWire* wire, const float* values, float* rest, void* message,
                     void* stream);
// accumulate: 1 adds to what is in `out`.
int deft_wire_decode(const DeftWire* wire, const void* message, float* out, int accumulate,
                     void* stream);

#ifdef __cplusplus
}
#endif
