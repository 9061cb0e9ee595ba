// What stands in for multi_sums.cu in a build without nvcc.
#include "cuda/multi_sums.h"

#include "cuda/not_built.h"

int deft_multi_sums(const DeftSegments* /*segments*/, const DeftSumsOf* /*of*/, void* /*stream*/) {
  return deft_cuda::kNotBuilt;
}
