#include "torch/libtorch.h"

#include "torch/memory/memory.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <string>

namespace deft {

at::ScalarType to_torch(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return at::kHalf;
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kUInt8:
      return at::kByte;
    case DType::kInt8:
      return at::kChar;
    case DType::kInt16:
      return at::kShort;
    case DType::kInt32:
      return at::kInt;
    case DType::kInt64:
      return at::kLong;
  }
  TORCH_CHECK(false, "unknown wire dtype ", static_cast<int>(dtype));
}

DType from_torch(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return DType::kFloat16;
    case at::kFloat:
      return DType::kFloat32;
    case at::kDouble:
      return DType::kFloat64;
    case at::kByte:
      return DType::kUInt8;
    case at::kInt:
      return DType::kInt32;
    case at::kLong:
      return DType::kInt64;
    default:
      TORCH_CHECK(false, "Horovod carries no ", dtype, "; cast to float32 or float16 first");
  }
}

std::int32_t device_index(const at::Device& device) {
  return device.is_cpu() ? -1 : static_cast<std::int32_t>(device.index());
}

at::Device device_at(std::int32_t index) {
  return index < 0 ? at::Device(at::kCPU)
                   : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

Allocator torch_allocator() {
  return [](std::int64_t bytes, std::int32_t device) {
    const at::Device where = device_at(device);
    const auto tensor =
        std::make_shared<at::Tensor>(at::empty({bytes}, at::device(where).dtype(at::kByte)));
    // This stream may still work on what the memory held before, and Horovod's stream does not wait
    // for it.
    if (device >= 0) {
      c10::impl::VirtualGuardImpl(where.type()).getStream(where).synchronize();
    }
    return std::shared_ptr<void>(tensor, tensor->data_ptr());
  };
}

}  // namespace deft
