#include <cuda_runtime_api.h>

#include <new>

#include "cuda/copy_path.h"
#include "cuda/result.cuh"

using deft_cuda::kInvalid;
using deft_cuda::OnDevice;
using deft_cuda::result_of;

namespace {

struct CopyPath {
  int device = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t copied = nullptr;
};

int destroy(const CopyPath* path) {
  int result = 0;
  if (path->copied != nullptr) result = result_of(cudaEventDestroy(path->copied));
  if (path->stream != nullptr) {
    const int more = result_of(cudaStreamDestroy(path->stream));
    result = result == 0 ? more : result;
  }
  delete path;
  return result;
}

// A kernel of the model must not delay a copy that others wait for.
int make_stream(CopyPath* path) {
  int lowest = 0;
  int highest = 0;
  const int found = result_of(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  if (found < 0) return found;
  return result_of(cudaStreamCreateWithPriority(&path->stream, cudaStreamNonBlocking, highest));
}

}  // namespace

void* deft_cuda_path_create(int device) {
  const OnDevice here(device);
  if (here.result() < 0) return nullptr;
  auto* path = new (std::nothrow) CopyPath;
  if (path == nullptr) return nullptr;
  path->device = device;
  constexpr unsigned kFlags = cudaEventDisableTiming | cudaEventBlockingSync;
  if (make_stream(path) < 0 || result_of(cudaEventCreateWithFlags(&path->copied, kFlags)) < 0) {
    (void)destroy(path);
    return nullptr;
  }
  return path;
}

int deft_cuda_path_copy(const void* path, void* to, const void* from, std::int64_t bytes,
                        void* after_event) {
  if (path == nullptr) return kInvalid;
  const auto* way = static_cast<const CopyPath*>(path);
  const OnDevice here(way->device);
  int result = here.result();
  if (result == 0 && after_event != nullptr) {
    result = result_of(cudaStreamWaitEvent(way->stream, static_cast<cudaEvent_t>(after_event), 0));
  }
  if (result == 0) {
    result = result_of(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, way->stream));
  }
  if (result == 0) result = result_of(cudaEventRecord(way->copied, way->stream));
  if (result == 0) result = result_of(cudaEventSynchronize(way->copied));
  return result;
}

int deft_cuda_path_destroy(const void* path) {
  if (path == nullptr) return kInvalid;
  const auto* way = static_cast<const CopyPath*>(path);
  const OnDevice here(way->device);
  const int result = destroy(way);
  return here.result() < 0 ? here.result() : result;
}

void* deft_cuda_host_alloc(int device, std::int64_t bytes) {
  const OnDevice here(device);
  void* memory = nullptr;
  if (here.result() < 0) return nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  return result_of(cudaHostAlloc(&memory, size, cudaHostAllocPortable)) < 0 ? nullptr : memory;
}

int deft_cuda_host_free(void* memory) { return result_of(cudaFreeHost(memory)); }
