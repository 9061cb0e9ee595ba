#include "torch/libtorch.h"

#include "torch/links/c10d_link.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "torch/links/group_failure.h"
#include "torch/memory/memory.h"
#include "torch/session.h"

namespace deft {

namespace {

constexpr std::chrono::microseconds kPoll{50};

// Who only reads gets the same view: torch has no tensor of constant memory.
at::Tensor view_of(const void* data, std::int64_t elements, const Message& message) {
  const auto options =
      at::TensorOptions().dtype(to_torch(message.dtype)).device(device_at(message.device));
  return at::from_blob(const_cast<void*>(data), {elements}, options);
}

// On the host torch would bring up a pool of threads for this one to share the work with.
void copy_into(const at::Tensor& to, const at::Tensor& from) {
  if (to.data_ptr() == from.data_ptr()) return;
  if (to.is_cpu()) {
    std::memcpy(to.data_ptr(), from.data_ptr(), to.nbytes());
  } else {
    to.copy_(from, /*non_blocking=*/true);
  }
}

template <typename Value, typename Factor>
void multiply(const at::Tensor& tensor, Factor factor) {
  auto* const values = static_cast<Value*>(tensor.data_ptr());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<Value>(factor * static_cast<Factor>(values[i]));
  }
}

// Horovod's ScaleBuffer: 16 and 32 bits are multiplied as float, by the factor rounded to float.
void scale_by(const at::Tensor& tensor, double factor) {
  if (factor == 1.0) return;
  if (!tensor.is_cpu()) {
    tensor.mul_(factor);
  } else if (tensor.scalar_type() == at::kHalf) {
    multiply<at::Half>(tensor, static_cast<float>(factor));
  } else if (tensor.scalar_type() == at::kFloat) {
    multiply<float>(tensor, static_cast<float>(factor));
  } else {
    multiply<double>(tensor, factor);
  }
}

bool is_floating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

void finish(const c10::intrusive_ptr<c10d::Work>& work) {
  TORCH_CHECK(work->wait(), "the message was given up");
}

}  // namespace

class C10dLink::Carrier {
 public:
  Carrier(c10::intrusive_ptr<c10d::Backend> group, C10dLinkOptions options)
      : group_(std::move(group)), options_(std::move(options)), rank_(group_->getRank()) {
    TORCH_CHECK(static_cast<std::size_t>(group_->getSize()) == options_.ranks.size(),
                "a link over ", group_->getSize(), " processes was given ", options_.ranks.size(),
                " ranks: name every rank of the group once");
  }

  // Why a message cannot travel here; empty when it can. Called from any thread.
  [[nodiscard]] std::string refusal(const Message& message) const;
  // Blocks until the message has travelled. Called from the worker alone.
  [[nodiscard]] LinkStatus carry(const Message& message);

 private:
  void run(const Message& message);
  void dispatch(const Message& message);
  void all_reduce(const Message& message);
  void all_gather(const Message& message);
  void broadcast(const Message& message);
  [[nodiscard]] std::int32_t size() const {
    return static_cast<std::int32_t>(options_.ranks.size());
  }

  c10::intrusive_ptr<c10d::Backend> group_;  // null once it failed
  const C10dLinkOptions options_;
  const std::int32_t rank_;
  LinkStatus failure_;
};

std::string C10dLink::Carrier::refusal(const Message& message) const {
  if (message.op == Op::kReduceScatter) {
    return "has no reduce_scatter that sends less than an all_reduce; plan an all_reduce";
  }
  if (message.op == Op::kAllToAll || !message.from_ranks.empty()) {
    return "exchanges no parts; a mesh does";
  }
  if (message.op == Op::kAllGather) {
    const Shard shard = shard_of(message.output_elements, rank_, size());
    if (shard.elements == message.input_elements) return {};
    return "gathers " + std::to_string(message.output_elements) + " elements with " +
           std::to_string(shard.elements) + " of them from this rank, which brings " +
           std::to_string(message.input_elements);
  }
  if (message.input_elements != message.output_elements) {
    return "was given " + std::to_string(message.input_elements) +
           " elements to send and room for " + std::to_string(message.output_elements) +
           "; both have to be the same";
  }
  if (message.op == Op::kAllReduce && !is_code(message.dtype) && !is_floating(message.dtype)) {
    return "reduces float16, float32, float64 and codes (uint8, int32) only";
  }
  const auto& ranks = options_.ranks;
  if (message.op == Op::kBroadcast &&
      std::find(ranks.begin(), ranks.end(), message.root) == ranks.end()) {
    return "does not reach rank " + std::to_string(message.root) + ", the root of the broadcast";
  }
  return {};
}

LinkStatus C10dLink::Carrier::carry(const Message& message) {
  if (!failure_.ok()) return failure_;
  try {
    if (message.device >= 0) {  // this thread's: to ask on another would open a context there
      c10::impl::VirtualGuardImpl(at::kCUDA).setDevice(device_at(message.device));
    }
    while (message.ready != nullptr && !message.ready->ready()) {
      std::this_thread::sleep_for(kPoll);
    }
    run(message);
  } catch (const std::exception& error) {
    failure_ = {Outcome::kAborted, options_.path + " failed: " + reason_of(error)};
    group_.reset();
  }
  return failure_;
}

// A GPU's messages travel on a stream of their own: on the default one their copies would wait for
// all of the backward that is queued there, and it for them.
void C10dLink::Carrier::run(const Message& message) {
  if (message.device < 0) return dispatch(message);
  const at::Device device = device_at(message.device);
  const c10::impl::VirtualGuardImpl streams(device.type());
  const c10::StreamGuard guard(streams.getStreamFromGlobalPool(device, /*isHighPriority=*/true));
  dispatch(message);
  guard.current_stream().synchronize();
}

void C10dLink::Carrier::dispatch(const Message& message) {
  if (message.output_elements == 0) return;
  switch (message.op) {
    case Op::kAllReduce:
      return all_reduce(message);
    case Op::kAllGather:
      return all_gather(message);
    case Op::kBroadcast:
      return broadcast(message);
    case Op::kAllToAll:
    case Op::kReduceScatter:
      TORCH_CHECK(false, "an operation was not refused");
  }
}

void C10dLink::Carrier::all_reduce(const Message& message) {
  std::vector<at::Tensor> output = {view_of(message.output, message.output_elements, message)};
  copy_into(output[0], view_of(message.input, message.input_elements, message));
  if (is_code(message.dtype)) return finish(group_->allreduce(output));
  scale_by(output[0], options_.prescale);
  finish(group_->allreduce(output));
  const bool average = options_.reduction == Reduction::kAverage;
  scale_by(output[0], average ? options_.postscale / size() : options_.postscale);
}

// Shards differ by one element where they do not divide, and the group gathers equal parts only.
void C10dLink::Carrier::all_gather(const Message& message) {
  const at::Tensor output = view_of(message.output, message.output_elements, message);
  const at::Tensor input = view_of(message.input, message.input_elements, message);
  const std::int64_t part = shard_of(message.output_elements, 0, size()).elements;
  at::Tensor mine = at::zeros({part}, output.options());
  at::Tensor all = at::empty({part * size()}, output.options());
  copy_into(mine.narrow(0, 0, message.input_elements), input);
  finish(group_->_allgather_base(all, mine));
  for (std::int32_t rank = 0; rank < size(); ++rank) {
    const Shard shard = shard_of(message.output_elements, rank, size());
    copy_into(output.narrow(0, shard.begin, shard.elements),
              all.narrow(0, part * rank, shard.elements));
  }
}

void C10dLink::Carrier::broadcast(const Message& message) {
  std::vector<at::Tensor> output = {view_of(message.output, message.output_elements, message)};
  copy_into(output[0], view_of(message.input, message.input_elements, message));
  c10d::BroadcastOptions options;
  const auto& ranks = options_.ranks;
  options.rootRank = std::find(ranks.begin(), ranks.end(), message.root) - ranks.begin();
  finish(group_->broadcast(output, options));
}

C10dLink::C10dLink(c10::intrusive_ptr<c10d::Backend> group, C10dLinkOptions options)
    : carrier_(std::make_shared<Carrier>(std::move(group), std::move(options))) {}

void C10dLink::send(Message message, Completion done) {
  const std::string refusal = carrier_->refusal(message);
  if (!refusal.empty()) {
    done({Outcome::kInvalid, "the second link " + refusal});
    return;
  }
  worker_.post([carrier = carrier_, message = std::move(message), done = std::move(done)] {
    done(carrier->carry(message));
  });
}

bool C10dLink::wait_idle(std::chrono::microseconds timeout) const {
  return worker_.wait_idle(timeout);
}

}  // namespace deft
