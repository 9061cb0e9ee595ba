#include "torch/libtorch.h"

#include "torch/links/device_signal.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "cuda/event.h"
#include "torch/links/cuda_result.h"
#include "torch/native_stream.h"

namespace deft {

DeviceSignal::DeviceSignal(const c10::Device& device)
    : device_(device), event_(deft_cuda_event_create(device.index())) {
  TORCH_CHECK(event_ != nullptr, "no CUDA event on ", device_,
              deft_cuda_built() != 0
                  ? ": the driver refused it"
                  : ": this deft_horovod was built without CUDA; rebuild it where nvcc is found");
}

DeviceSignal::~DeviceSignal() { deft_cuda_event_destroy(event_); }

void DeviceSignal::record() {
  const c10::impl::VirtualGuardImpl guard(device_.type());
  check_cuda(
      deft_cuda_event_record(device_.index(), event_, native_stream(guard.getStream(device_))),
      "record an event");
}

bool DeviceSignal::ready() const {
  const int answer = deft_cuda_event_query(event_);
  check_cuda(answer, "query an event");
  return answer == 1;
}

std::shared_ptr<DeviceSignal> make_signal(const c10::Device& device) {
  return device.is_cpu() ? nullptr : std::make_shared<DeviceSignal>(device);
}

}  // namespace deft
