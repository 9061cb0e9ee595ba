// What stands in for copy_path.cu in a build without nvcc.
#include "cuda/copy_path.h"

#include "cuda/not_built.h"

using deft_cuda::kNotBuilt;

void* deft_cuda_path_create(int /*device*/) { return nullptr; }

int deft_cuda_path_copy(const void* /*path*/, void* /*to*/, const void* /*from*/,
                        std::int64_t /*bytes*/, void* /*after_event*/) {
  return kNotBuilt;
}

int deft_cuda_path_destroy(const void* /*path*/) { return kNotBuilt; }

void* deft_cuda_host_alloc(int /*device*/, std::int64_t /*bytes*/) { return nullptr; }

int deft_cuda_host_free(void* /*memory*/) { return kNotBuilt; }
