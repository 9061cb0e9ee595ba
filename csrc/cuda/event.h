// CUDA events behind a C interface without CUDA's or torch's types: event.cu where nvcc is there,
// event_stub.cpp elsewhere. Functions return 0 or more on success, an error code below 0 otherwise
// (deft_cuda_error explains it).
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// 1: made with nvcc. 0: the stub, every other call fails.
int deft_cuda_built(void);
// 0 where there is no device or no driver.
int deft_cuda_device_count(void);
// An event without timing (recording and querying cost less) on a device; null on failure. The
// device that is current for the calling thread stays current.
void* deft_cuda_event_create(int device);
// Marks what is queued on a stream, and what the event marked before on any other.
// stream: a cudaStream_t of the event's device; null is its default stream. The device that is
// current for the calling thread stays current.
int deft_cuda_event_record(int device, void* event, void* stream);
// 1: everything recorded before it is done. 0: not yet.
int deft_cuda_event_query(void* event);
// 1: work on this stream is recorded into a CUDA graph instead of done. 0: it is done.
int deft_cuda_stream_capturing(void* stream);
int deft_cuda_event_destroy(void* event);
// Lives as long as the process.
const char* deft_cuda_error(int code);

#ifdef __cplusplus
}
#endif
