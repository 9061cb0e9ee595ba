// A way for bytes between a device and the host, beside everything else that the device does: a
// stream of its own, behind a C interface like event.h's (which explains error codes).
#pragma once

#include <cstdint>

#ifdef __cplusplus
extern "C" {
#endif

// Null on failure. The device that is current for the calling thread stays current in all calls.
void* deft_cuda_path_create(int device);
// Copies once `after_event` (null: nothing) is done, and returns when the bytes are there; the
// calling thread sleeps meanwhile. One call at a time.
int deft_cuda_path_copy(const void* path, void* to, const void* from, std::int64_t bytes,
                        void* after_event);
int deft_cuda_path_destroy(const void* path);
// Host memory that a device copies to and from by itself; null on failure.
void* deft_cuda_host_alloc(int device, std::int64_t bytes);
int deft_cuda_host_free(void* memory);

#ifdef __cplusplus
}
#endif
