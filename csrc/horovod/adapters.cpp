#include "horovod/adapters.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace deft {

namespace hvd = horovod::common;

namespace {

class HeldBuffer final : public hvd::PersistentBuffer {
 public:
  explicit HeldBuffer(std::shared_ptr<void> memory) : memory_(std::move(memory)) {}
  const void* AccessData(std::shared_ptr<hvd::OpContext> /*context*/) const override {
    return memory_.get();
  }

 private:
  std::shared_ptr<void> memory_;
};

}  // namespace

hvd::DataType to_horovod(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return hvd::HOROVOD_FLOAT16;
    case DType::kFloat32:
      return hvd::HOROVOD_FLOAT32;
    case DType::kFloat64:
      return hvd::HOROVOD_FLOAT64;
    case DType::kUInt8:
      return hvd::HOROVOD_UINT8;
    case DType::kInt8:
      return hvd::HOROVOD_INT8;
    case DType::kInt16:
      return hvd::HOROVOD_INT16;
    case DType::kInt32:
      return hvd::HOROVOD_INT32;
    case DType::kInt64:
      return hvd::HOROVOD_INT64;
  }
  throw std::invalid_argument("unknown wire dtype");
}

std::int64_t bytes_of(hvd::DataType dtype) {
  switch (dtype) {
    case hvd::HOROVOD_UINT8:
    case hvd::HOROVOD_INT8:
    case hvd::HOROVOD_BOOL:
      return 1;
    case hvd::HOROVOD_UINT16:
    case hvd::HOROVOD_INT16:
    case hvd::HOROVOD_FLOAT16:
      return 2;
    case hvd::HOROVOD_INT32:
    case hvd::HOROVOD_FLOAT32:
      return 4;
    case hvd::HOROVOD_INT64:
    case hvd::HOROVOD_FLOAT64:
      return 8;
  }
  throw std::invalid_argument("unknown Horovod dtype " + std::to_string(dtype));
}

const hvd::TensorShape FlatTensor::shape() const {
  return hvd::TensorShape(std::vector<int64_t>{elements_});
}

hvd::Status BufferContext::AllocatePersistent(int64_t size,
                                              std::shared_ptr<hvd::PersistentBuffer>* tensor) {
  *tensor = std::make_shared<HeldBuffer>(allocator_(size, device_));
  return hvd::Status::OK();
}

hvd::Status BufferContext::AllocateOutput(hvd::TensorShape shape,
                                          std::shared_ptr<hvd::Tensor>* tensor,
                                          std::shared_ptr<hvd::ReadyEvent>* /*event*/) {
  const hvd::TensorShape planned = output_->shape();
  if (shape.num_elements() != planned.num_elements()) {
    return hvd::Status::InvalidArgument(
        "the ranks contribute " + std::to_string(shape.num_elements()) +
        " elements to this message, the plan says " + std::to_string(planned.num_elements()));
  }
  *tensor = output_;
  return hvd::Status::OK();
}

// The second output of an all-to-all: how much came from each rank, in host memory.
hvd::Status BufferContext::AllocateOutput(int output_index, hvd::TensorShape shape,
                                          std::shared_ptr<hvd::Tensor>* tensor,
                                          std::shared_ptr<hvd::ReadyEvent>* event) {
  if (output_index == 0) return AllocateOutput(std::move(shape), tensor, event);
  const auto splits =
      std::make_shared<std::vector<std::int32_t>>(static_cast<std::size_t>(shape.num_elements()));
  *tensor = std::make_shared<FlatTensor>(splits->data(), shape.num_elements(), hvd::HOROVOD_INT32,
                                         splits);
  return hvd::Status::OK();
}

hvd::Status BufferContext::AllocateZeros(int64_t /*num_elements*/, hvd::DataType /*dtype*/,
                                         std::shared_ptr<hvd::Tensor>* /*tensor*/) {
  // Horovod asks the context of hvd.join() for the zeros of a joined rank, and that is its own.
  return hvd::Status::PreconditionError(
      "zeros were asked of a deft_horovod message; only hvd.join() provides them");
}

}  // namespace deft
