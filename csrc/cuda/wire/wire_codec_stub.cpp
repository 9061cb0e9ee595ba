// What stands in for wire_codec.cu in a build without nvcc.
#include "cuda/not_built.h"
#include "cuda/wire/wire_codec.h"

int deft_wire_encode(const DeftWire* /*wire*/, const float* /*values*/, float* /*rest*/,
                     void* /*message*/, void* /*stream*/) {
  return deft_cuda::kNotBuilt;
}

int deft_wire_decode(const DeftWire* /*wire*/, const void* /*message*/, float* /*out*/,
                     int /*accumulate*/, void* /*stream*/) {
  return deft_cuda::kNotBuilt;
}
