// What every call of CUDA needs around it.
#pragma once

#include <cuda_runtime_api.h>

namespace deft_cuda {

// Reads and clears the thread's last error: a code that we return must not surface again in
// another library's cudaGetLastError.
inline int result_of(cudaError_t error) {
  if (error == cudaSuccess) return 0;
  (void)cudaGetLastError();
  return -static_cast<int>(error);
}

constexpr int kInvalid = -static_cast<int>(cudaErrorInvalidValue);

// Another device for a while; the one that was current for the thread is so again afterwards.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    result_ = result_of(cudaGetDevice(&previous_));
    if (result_ == 0 && previous_ != device) {
      result_ = result_of(cudaSetDevice(device));
      changed_ = result_ == 0;
    }
  }
  ~OnDevice() {
    if (changed_) (void)result_of(cudaSetDevice(previous_));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  int result() const { return result_; }

 private:
  int previous_ = 0;
  int result_ = 0;
  bool changed_ = false;
};

}  // namespace deft_cuda
