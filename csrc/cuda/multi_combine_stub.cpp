// What stands in for multi_combine.cu in a build without nvcc.
#include "cuda/multi_combine.h"

#include "cuda/not_built.h"

int deft_multi_combine(const DeftSegments* /*segments*/, const DeftCombine* /*combine*/,
                       void* /*stream*/) {
  return deft_cuda::kNotBuilt;
}
