// What stands in for event.cu in a build without nvcc.
#include "cuda/event.h"

#include "cuda/not_built.h"

using deft_cuda::kNotBuilt;

int deft_cuda_built(void) { return 0; }

int deft_cuda_device_count(void) { return 0; }

void* deft_cuda_event_create(int /*device*/) { return nullptr; }

int deft_cuda_event_record(int /*device*/, void* /*event*/, void* /*stream*/) { return kNotBuilt; }

int deft_cuda_event_query(void* /*event*/) { return kNotBuilt; }

int deft_cuda_stream_capturing(void* /*stream*/) { return kNotBuilt; }

int deft_cuda_event_destroy(void* /*event*/) { return kNotBuilt; }

const char* deft_cuda_error(int code) {
  return code == 0 ? "no error" : "CUDA support was not built: install nvcc and build again";
}
