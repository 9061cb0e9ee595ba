// Our own Tensor, OpContext and ReadyEvent: what lets any range of memory enter Horovod's queue.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/link/allocator.h"
#include "core/link/link.h"
#include "horovod/common/common.h"

namespace deft {

[[nodiscard]] horovod::common::DataType to_horovod(DType dtype);
[[nodiscard]] std::int64_t bytes_of(horovod::common::DataType dtype);

// A flat range of memory. `owner` keeps the memory alive; null where something else does.
class FlatTensor final : public horovod::common::Tensor {
 public:
  FlatTensor(void* data, std::int64_t elements, horovod::common::DataType dtype,
             std::shared_ptr<void> owner = nullptr)
      : data_(data), elements_(elements), dtype_(dtype), owner_(std::move(owner)) {}

  // Horovod's interface returns a const value, and an override has to repeat that.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-qualifiers"
  const horovod::common::DataType dtype() const override { return dtype_; }
#pragma GCC diagnostic pop
  const horovod::common::TensorShape shape() const override;
  const void* data() const override { return data_; }
  int64_t size() const override { return elements_ * bytes_of(dtype_); }

 private:
  void* data_;
  std::int64_t elements_;
  horovod::common::DataType dtype_;
  std::shared_ptr<void> owner_;
};

// Horovod takes its fusion buffer from the context of the first tensor of a response, and the
// output of an all-gather or an all-to-all from the context of its tensor: both must work, or every
// tensor of the response fails.
class BufferContext final : public horovod::common::OpContext {
 public:
  BufferContext(std::shared_ptr<horovod::common::Tensor> output, std::int32_t device,
                Allocator allocator)
      : output_(std::move(output)), device_(device), allocator_(std::move(allocator)) {}

  horovod::common::Status AllocatePersistent(
      int64_t size, std::shared_ptr<horovod::common::PersistentBuffer>* tensor) override;
  horovod::common::Status AllocateOutput(
      horovod::common::TensorShape shape, std::shared_ptr<horovod::common::Tensor>* tensor,
      std::shared_ptr<horovod::common::ReadyEvent>* event) override;
  horovod::common::Status AllocateOutput(
      int output_index, horovod::common::TensorShape shape,
      std::shared_ptr<horovod::common::Tensor>* tensor,
      std::shared_ptr<horovod::common::ReadyEvent>* event) override;
  horovod::common::Status AllocateZeros(int64_t num_elements, horovod::common::DataType dtype,
                                        std::shared_ptr<horovod::common::Tensor>* tensor) override;
  horovod::common::Framework framework() const override {
    return horovod::common::Framework::PYTORCH;
  }

 private:
  std::shared_ptr<horovod::common::Tensor> output_;
  std::int32_t device_;
  Allocator allocator_;
};

// Horovod asks whether the bytes of a message are there; a GPU build also wants the event itself.
class SignalEvent final : public horovod::common::ReadyEvent {
 public:
  explicit SignalEvent(std::shared_ptr<ReadySignal> signal) : signal_(std::move(signal)) {}

  bool Ready() const override { return signal_->ready(); }
#if HAVE_GPU
  gpuEvent_t event() const override { return static_cast<gpuEvent_t>(signal_->native_event()); }
#endif

 private:
  std::shared_ptr<ReadySignal> signal_;
};

}  // namespace deft
