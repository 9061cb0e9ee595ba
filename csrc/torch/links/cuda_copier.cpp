#include "torch/libtorch.h"

#include "torch/links/cuda_copier.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "cuda/copy_path.h"
#include "cuda/event.h"
#include "torch/links/cuda_result.h"
#include "torch/memory/memory.h"

namespace deft {

namespace {

// Threads that copy are the link's own. To go back to device 0 after each copy would open a context
// there for every rank.
void enter(std::int32_t device) {
  c10::impl::VirtualGuardImpl(at::kCUDA).setDevice(device_at(device));
}

}  // namespace

CudaCopier::CudaCopier(std::int32_t device)
    : device_(device), out_(deft_cuda_path_create(device)), back_(deft_cuda_path_create(device)) {
  if (out_ != nullptr && back_ != nullptr) return;
  if (out_ != nullptr) deft_cuda_path_destroy(out_);
  if (back_ != nullptr) deft_cuda_path_destroy(back_);
  TORCH_CHECK(false, "no copy stream on CUDA device ", device,
              deft_cuda_built() != 0
                  ? ": the driver refused it"
                  : ": this deft_horovod was built without CUDA; rebuild it where nvcc is found");
}

CudaCopier::~CudaCopier() {
  deft_cuda_path_destroy(out_);
  deft_cuda_path_destroy(back_);
}

std::shared_ptr<void> CudaCopier::host_memory(std::int64_t bytes) {
  void* memory = deft_cuda_host_alloc(device_, bytes);
  TORCH_CHECK(memory != nullptr, "CUDA could not pin ", bytes, " bytes of host memory");
  return {memory, [](void* pinned) { deft_cuda_host_free(pinned); }};
}

void CudaCopier::to_host(void* host, const void* device, std::int64_t bytes,
                         const ReadySignal* after) {
  enter(device_);
  void* event = after == nullptr ? nullptr : after->native_event();
  check_cuda(deft_cuda_path_copy(out_, host, device, bytes, event), "copy to the host");
}

void CudaCopier::to_device(void* device, const void* host, std::int64_t bytes) {
  enter(device_);
  check_cuda(deft_cuda_path_copy(back_, device, host, bytes, nullptr), "copy to the device");
}

std::shared_ptr<DeviceCopier> CudaCopier::another() const {
  return std::make_shared<CudaCopier>(device_);
}

}  // namespace deft
