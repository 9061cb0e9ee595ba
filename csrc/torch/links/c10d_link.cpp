#include "torch/libtorch.h"

#include "torch/links/c10d_link.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <thread>
#include <utility>

#include "torch/memory/memory.h"
#include "torch/session.h"

namespace deft {

namespace {

constexpr std::chrono::microseconds kPoll{50};
constexpr int kTag = 0;  // of what goes from rank to rank: there it is matched by its order

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

using Counts = std::vector<std::int64_t>;

std::int64_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

bool is_floating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

void finish(const c10::intrusive_ptr<c10d::Work>& work) {
  TORCH_CHECK(work->wait(), "the message was given up");
}

std::string text_of(const std::exception& error) {
  const auto* const from_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = from_torch == nullptr ? error.what() : from_torch->what_without_backtrace();
  // Gloo begins with the place in its source: "[/.../pair.cc:537] Connection closed by peer".
  const std::size_t place = text.find("] ");
  if (text.starts_with('[') && place != std::string::npos) text.erase(0, place + 2);
  return text;
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
  void exchange(const Message& message);
  // Of an exchange: how many elements go to each rank, and come from each.
  [[nodiscard]] Counts to_ranks(const Message& message) const;
  [[nodiscard]] Counts from_ranks(const Message& message) const;
  [[nodiscard]] std::string refusal_of_parts(const Message& message) const;
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
  if (message.op == Op::kAllToAll || !message.from_ranks.empty()) return refusal_of_parts(message);
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

Counts C10dLink::Carrier::to_ranks(const Message& message) const {
  const auto ranks = options_.ranks.size();
  if (message.op == Op::kAllGather) return Counts(ranks, message.input_elements);
  return message.to_ranks.empty() ? Counts(ranks, message.input_elements / size())
                                  : message.to_ranks;
}

Counts C10dLink::Carrier::from_ranks(const Message& message) const {
  const auto ranks = options_.ranks.size();
  return message.from_ranks.empty() ? Counts(ranks, message.output_elements / size())
                                    : message.from_ranks;
}

std::string C10dLink::Carrier::refusal_of_parts(const Message& message) const {
  if (message.device >= 0) return "exchanges parts in host memory only; stage them";
  const Counts to = to_ranks(message);
  const Counts from = from_ranks(message);
  const auto ranks = options_.ranks.size();
  const auto mine = static_cast<std::size_t>(rank_);
  const bool whole = message.op == Op::kAllGather || sum_of(to) == message.input_elements;
  if (to.size() == ranks && from.size() == ranks && whole &&
      sum_of(from) == message.output_elements && to[mine] == from[mine]) {
    return {};
  }
  return "was given parts for " + std::to_string(to.size()) + " ranks and from " +
         std::to_string(from.size()) + ", " + std::to_string(sum_of(from)) +
         " elements for room of " + std::to_string(message.output_elements) +
         "; expected one part for each of " + std::to_string(ranks) +
         " ranks, which add up, and the own one of the same size in both";
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
    failure_ = {Outcome::kAborted, options_.path + " failed: " + text_of(error)};
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
  if (message.op == Op::kAllToAll || !message.from_ranks.empty()) return exchange(message);
  if (message.output_elements == 0) return;
  switch (message.op) {
    case Op::kAllReduce:
      return all_reduce(message);
    case Op::kAllGather:
      return all_gather(message);
    case Op::kBroadcast:
      return broadcast(message);
    case Op::kAllToAll:
      return exchange(message);
    case Op::kReduceScatter:
      TORCH_CHECK(false, "a reduce_scatter was not refused");
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

// From rank to rank, as Gloo's own exchanges do not always send and receive at once: there a rank
// says that it is ready to receive only after it has begun to send, over the same connection, and
// what it says waits until all has been sent. So here all ranks say so first.
void C10dLink::Carrier::exchange(const Message& message) {
  const at::Tensor input = view_of(message.input, message.input_elements, message);
  const at::Tensor output = view_of(message.output, message.output_elements, message);
  const Counts to = to_ranks(message);
  const Counts from = from_ranks(message);
  const auto part = [](const at::Tensor& whole, const Counts& counts, std::int32_t rank) {
    return whole.narrow(0, sum_of({counts.begin(), counts.begin() + rank}),
                        counts[static_cast<std::size_t>(rank)]);
  };
  const auto part_to = [&](std::int32_t rank) {
    return message.op == Op::kAllGather ? input : part(input, to, rank);
  };
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (std::int32_t step = 1; step < size(); ++step) {
    const std::int32_t rank = (rank_ + size() - step) % size();
    std::vector<at::Tensor> one = {part(output, from, rank)};
    if (one[0].numel() > 0) works.push_back(group_->recv(one, rank, kTag));
  }
  for (std::int32_t step = 1; step < size(); ++step) {
    const std::int32_t rank = (rank_ + step) % size();
    std::vector<at::Tensor> one = {part_to(rank)};
    if (one[0].numel() > 0) works.push_back(group_->send(one, rank, kTag));
  }
  copy_into(part(output, from, rank_), part_to(rank_));
  for (const auto& work : works) finish(work);
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
