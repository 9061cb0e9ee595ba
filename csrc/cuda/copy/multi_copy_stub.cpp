// What stands in for multi_copy.cu in a build without nvcc.
#include "cuda/copy/multi_copy.h"

#include "cuda/not_built.h"

int deft_multi_copy(const DeftSegments* /*segments*/, const DeftCopy* /*copy*/, void* /*stream*/) {
  return deft_cuda::kNotBuilt;
}
