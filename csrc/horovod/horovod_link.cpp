#include "horovod/horovod_link.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "horovod/common/operations.h"

// Horovod exports it for Python; it is in no header. Not 0: initialised, and not shut down here.
extern "C" int horovod_is_initialized();

namespace deft {

namespace hvd = horovod::common;

namespace {

LinkStatus to_link_status(const hvd::Status& status) {
#if HAVE_GPU
  if (status.ok() && status.event.event != nullptr) {
    return {Outcome::kInvalid,
            "HOROVOD_ENABLE_ASYNC_COMPLETION is set: Horovod then reports gradients that are "
            "still being written, which deft_horovod does not support; unset it"};
  }
#endif
  switch (status.type()) {
    case hvd::StatusType::OK:
      return {};
    case hvd::StatusType::PRECONDITION_ERROR:
    case hvd::StatusType::INVALID_ARGUMENT:
      return {Outcome::kInvalid, status.reason()};
    default:  // shutdown, a dead peer, a failed collective
      return {Outcome::kAborted, status.reason()};
  }
}

struct Entry {
  std::shared_ptr<hvd::Tensor> input;
  std::shared_ptr<hvd::Tensor> output;
  std::shared_ptr<hvd::OpContext> context;
  hvd::ReadyEventList events;
};

Entry make_entry(const Message& message, const Allocator& allocator) {
  const hvd::DataType dtype = to_horovod(message.dtype);
  Entry entry;
  entry.output =
      std::make_shared<FlatTensor>(message.output, message.output_elements, dtype, message.owner);
  const bool in_place =
      message.input == message.output && message.input_elements == message.output_elements;
  // Horovod never writes to an input; its Tensor interface has one pointer for both directions.
  entry.input = in_place
                    ? entry.output
                    : std::make_shared<FlatTensor>(const_cast<void*>(message.input),
                                                   message.input_elements, dtype, message.owner);
  entry.context = std::make_shared<BufferContext>(entry.output, message.device, allocator);
  if (message.ready != nullptr) {
    entry.events.AddReadyEvent(std::make_shared<SignalEvent>(message.ready));
  }
  return entry;
}

// Horovod counts in 32 bits, and adds up the counts in 32 bits.
std::string refusal_of(const Message& message) {
  if (message.op != Op::kAllToAll) return {};
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::int64_t most = std::max(message.input_elements, message.output_elements);
  if (most > kMost) {
    return "message " + message.name + " is an all_to_all of " + std::to_string(most) +
           " elements; Horovod counts up to " + std::to_string(kMost) + ": send it in parts";
  }
  return {};
}

// How many elements go to each rank, as Horovod wants to be told; without any, equal parts.
std::shared_ptr<hvd::Tensor> splits_of(const Message& message) {
  const auto splits =
      std::make_shared<std::vector<std::int32_t>>(message.to_ranks.begin(), message.to_ranks.end());
  return std::make_shared<FlatTensor>(splits->data(), static_cast<std::int64_t>(splits->size()),
                                      hvd::DataType::HOROVOD_INT32, splits);
}

// Horovod fuses what waits side by side, and all of it arrives only with its last byte; but nothing
// with different factors. A power of two that is multiplied in and out again changes no bit of
// float32 and float64 (but for numbers near the smallest one); float16 has no room for it. Codes
// are kept apart by their types (core/link/encoded/exchange.h).
double factor_of(const Message& message) {
  const bool has_room = message.dtype == DType::kFloat32 || message.dtype == DType::kFloat64;
  return has_room ? std::ldexp(1.0, message.fusion_group) : 1.0;
}

}  // namespace

bool horovod_has_ended() {
  if (horovod_is_initialized() == 0) return true;
  // Horovod looks at its own state before it checks the arguments. These never pass the check,
  // since splits have to be int32, so nothing is sent.
  static const auto splits =
      std::make_shared<FlatTensor>(nullptr, 1, hvd::DataType::HOROVOD_FLOAT32, nullptr);
  const hvd::Status status =
      hvd::EnqueueTensorAlltoall(nullptr, nullptr, splits, {}, "", CPU_DEVICE_ID, nullptr, 0);
  return status.type() != hvd::StatusType::INVALID_ARGUMENT;
}

HorovodLink::HorovodLink(HorovodLinkOptions options, Allocator allocator)
    : options_(options), allocator_(std::move(allocator)) {}

bool HorovodLink::takes_any_integers() const { return !hvd::horovod_mpi_enabled(); }

void HorovodLink::send(Message message, Completion done) {
  const std::string refusal = refusal_of(message);
  if (!refusal.empty()) return done({Outcome::kInvalid, refusal});
  const Entry entry = make_entry(message, allocator_);
  const bool scales = !is_code(message.dtype);
  const double prescale = scales ? options_.prescale : 1.0;
  const double postscale = scales ? options_.postscale : 1.0;
  const hvd::ReduceOp reduce_op = scales && options_.reduction == Reduction::kAverage
                                      ? hvd::ReduceOp::AVERAGE
                                      : hvd::ReduceOp::SUM;
  // Runs on Horovod's background thread: no GIL, no blocking.
  const hvd::StatusCallback callback =
      [done, said = std::make_shared<std::atomic<bool>>(false)](const hvd::Status& status) {
        if (!said->exchange(true)) done(to_link_status(status));
      };
  const std::int32_t set = options_.process_set_id;
  const double factor = factor_of(message);
  hvd::Status status;
  switch (message.op) {
    case Op::kAllReduce:
      status = hvd::EnqueueTensorAllreduce(entry.context, entry.input, entry.output, entry.events,
                                           message.name, message.device, callback, reduce_op,
                                           prescale / factor, postscale * factor, set);
      break;
    case Op::kReduceScatter:
      status = hvd::EnqueueTensorReducescatter(entry.context, entry.input, entry.output,
                                               entry.events, message.name, message.device, callback,
                                               reduce_op, set, prescale, postscale);
      break;
    case Op::kAllGather:
      status = hvd::EnqueueTensorAllgather(entry.context, entry.input, entry.events, message.name,
                                           message.device, callback, set);
      break;
    case Op::kBroadcast:
      status =
          hvd::EnqueueTensorBroadcast(entry.context, entry.input, entry.output, message.root,
                                      entry.events, message.name, message.device, callback, set);
      break;
    case Op::kAllToAll:
      status =
          hvd::EnqueueTensorAlltoall(entry.context, entry.input, splits_of(message), entry.events,
                                     message.name, message.device, callback, set);
      break;
  }
  // Horovod looks whether it is over before it takes a message, not while: one that comes in after
  // the last look at its queue would never be heard of again.
  if (status.ok() && horovod_has_ended()) {
    status = hvd::Status::Aborted("Horovod was shut down while this was handed over");
  }
  if (!status.ok()) callback(status);
}

}  // namespace deft
