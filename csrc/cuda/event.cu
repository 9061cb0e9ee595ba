#include <cuda_runtime_api.h>

#include "cuda/event.h"
#include "cuda/result.cuh"

using deft_cuda::OnDevice;
using deft_cuda::result_of;

int deft_cuda_built(void) { return 1; }

int deft_cuda_device_count(void) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  const int result = result_of(error);
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) return 0;
  return result < 0 ? result : count;
}

void* deft_cuda_event_create(int device) {
  int previous = 0;
  if (result_of(cudaGetDevice(&previous)) < 0 || result_of(cudaSetDevice(device)) < 0) {
    return nullptr;
  }
  cudaEvent_t event = nullptr;
  const int created = result_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const int restored = result_of(cudaSetDevice(previous));
  if (created == 0 && restored == 0) return event;
  if (created == 0) (void)cudaEventDestroy(event);
  return nullptr;
}

int deft_cuda_event_record(int device, void* event, void* stream) {
  const OnDevice here(device);  // null would be the default stream of the device that is current
  if (here.result() < 0) return here.result();
  const auto mark = static_cast<cudaEvent_t>(event);
  const auto queue = static_cast<cudaStream_t>(stream);
  // An event remembers its last recording only, which then comes after those before it.
  const int joined = result_of(cudaStreamWaitEvent(queue, mark, cudaEventWaitDefault));
  return joined < 0 ? joined : result_of(cudaEventRecord(mark, queue));
}

int deft_cuda_event_query(void* event) {
  const cudaError_t error = cudaEventQuery(static_cast<cudaEvent_t>(event));
  const int result = result_of(error);
  if (error == cudaErrorNotReady) return 0;
  return result < 0 ? result : 1;
}

int deft_cuda_stream_capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const int result = result_of(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status));
  return result < 0 ? result : static_cast<int>(status == cudaStreamCaptureStatusActive);
}

int deft_cuda_event_destroy(void* event) {
  return result_of(cudaEventDestroy(static_cast<cudaEvent_t>(event)));
}

const char* deft_cuda_error(int code) {
  return cudaGetErrorString(static_cast<cudaError_t>(code < 0 ? -code : code));
}
