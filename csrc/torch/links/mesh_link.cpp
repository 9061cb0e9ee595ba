#include "torch/libtorch.h"

#include "torch/links/mesh_link.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "torch/links/group_failure.h"

namespace deft {

namespace {

using Counts = std::vector<std::int64_t>;
using Group = c10::intrusive_ptr<c10d::Backend>;
using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

std::int64_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// What goes to each rank and comes from each, in elements.
struct Parts {
  Parts(const Message& message, std::int32_t size) {
    const auto ranks = static_cast<std::size_t>(size);
    gathers = message.op == Op::kAllGather;
    to = gathers                    ? Counts(ranks, message.input_elements)
         : message.to_ranks.empty() ? Counts(ranks, message.input_elements / size)
                                    : message.to_ranks;
    from = message.from_ranks.empty() ? Counts(ranks, message.output_elements / size)
                                      : message.from_ranks;
  }

  [[nodiscard]] bool add_up(const Message& message, std::int32_t rank, std::int32_t size) const {
    const auto ranks = static_cast<std::size_t>(size);
    const auto mine = static_cast<std::size_t>(rank);
    const bool whole = gathers || sum_of(to) == message.input_elements;
    return to.size() == ranks && from.size() == ranks && whole &&
           sum_of(from) == message.output_elements && to[mine] == from[mine];
  }

  bool gathers = false;  // the same part goes to all ranks
  Counts to;
  Counts from;
};

// Bytes of a buffer. Who only reads gets the same view: torch has no tensor of constant memory.
std::vector<at::Tensor> bytes_at(const void* data, std::int64_t offset, std::int64_t bytes) {
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(data)) + offset;
  return {at::from_blob(begin, {bytes}, at::kByte)};
}

std::int64_t before(const Counts& counts, std::int32_t rank) {
  return sum_of({counts.begin(), counts.begin() + rank});
}

}  // namespace

class MeshLink::Carrier {
 public:
  Carrier(Group group, std::string path)
      : path_(std::move(path)),
        rank_(group->getRank()),
        size_(group->getSize()),
        group_(std::move(group)) {}

  struct Flight {
    Message message;
    Group group;  // its connections are needed until all has ended
    Works works;
  };
  using FlightPlace = std::list<Flight>::iterator;

  // Why a message cannot travel here; empty when it can.
  [[nodiscard]] std::string refusal(const Message& message) const;
  // Begins to send and to receive. Never blocks.
  [[nodiscard]] FlightPlace begin(Message message);
  // Blocks until the message has travelled.
  [[nodiscard]] LinkStatus end(FlightPlace flight);

 private:
  void post(Flight& flight) const;
  void keep_own(const Message& message) const;
  void fail(const std::exception& error);

  const std::string path_;
  const std::int32_t rank_;
  const std::int32_t size_;
  std::mutex mutex_;
  Group group_;  // null once it failed
  LinkStatus failure_;
  std::list<Flight> flights_;
};

std::string MeshLink::Carrier::refusal(const Message& message) const {
  if (message.op != Op::kAllToAll && message.op != Op::kAllGather) {
    return "carries all_to_all and all_gather alone, not an " + std::string(name_of(message.op));
  }
  if (message.device >= 0) return "exchanges parts in host memory only; stage them";
  if (message.tag < 0) return "was given no tag, by which messages meet";
  const Parts parts(message, size_);
  if (parts.add_up(message, rank_, size_)) return {};
  return "was given parts for " + std::to_string(parts.to.size()) + " ranks and from " +
         std::to_string(parts.from.size()) + ", " + std::to_string(sum_of(parts.from)) +
         " elements for room of " + std::to_string(message.output_elements) +
         "; expected one part for each of " + std::to_string(size_) +
         " ranks, which add up, and the own one of the same size in both";
}

MeshLink::Carrier::FlightPlace MeshLink::Carrier::begin(Message message) {
  const std::lock_guard lock(mutex_);
  const auto flight = flights_.insert(flights_.end(), {std::move(message), group_, {}});
  if (group_ != nullptr) {
    try {
      post(*flight);
    } catch (const std::exception& error) {
      fail(error);
    }
  }
  return flight;
}

// All that is to be received before anything is sent.
void MeshLink::Carrier::post(Flight& flight) const {
  const Message& message = flight.message;
  const Parts parts(message, size_);
  const std::int64_t width = bytes_of(message.dtype);
  for (std::int32_t step = 1; step < size_; ++step) {
    const std::int32_t rank = (rank_ + size_ - step) % size_;
    const std::int64_t count = parts.from[static_cast<std::size_t>(rank)];
    auto part = bytes_at(message.output, width * before(parts.from, rank), width * count);
    if (count > 0) flight.works.push_back(flight.group->recv(part, rank, message.tag));
  }
  for (std::int32_t step = 1; step < size_; ++step) {
    const std::int32_t rank = (rank_ + step) % size_;
    const std::int64_t count = parts.to[static_cast<std::size_t>(rank)];
    const std::int64_t offset = parts.gathers ? 0 : before(parts.to, rank);
    auto part = bytes_at(message.input, width * offset, width * count);
    if (count > 0) flight.works.push_back(flight.group->send(part, rank, message.tag));
  }
}

void MeshLink::Carrier::keep_own(const Message& message) const {
  const Parts parts(message, size_);
  const std::int64_t width = bytes_of(message.dtype);
  const auto bytes = static_cast<std::size_t>(width * parts.from[static_cast<std::size_t>(rank_)]);
  const std::int64_t offset = parts.gathers ? 0 : before(parts.to, rank_);
  auto* const to = static_cast<std::byte*>(message.output) + width * before(parts.from, rank_);
  const auto* const from = static_cast<const std::byte*>(message.input) + width * offset;
  if (bytes > 0) std::memmove(to, from, bytes);
}

LinkStatus MeshLink::Carrier::end(FlightPlace flight) {
  try {
    keep_own(flight->message);
    for (const auto& work : flight->works) TORCH_CHECK(work->wait(), "a message was given up");
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    fail(error);
  }
  std::list<Flight> ended;  // so that what it holds goes without the lock
  const std::lock_guard lock(mutex_);
  ended.splice(ended.end(), flights_, flight);
  return failure_;
}

// With the lock held. Whoever waits is woken, and connections are closed when the last has ended.
void MeshLink::Carrier::fail(const std::exception& error) {
  if (failure_.ok()) failure_ = {Outcome::kAborted, path_ + " failed: " + reason_of(error)};
  group_.reset();
  for (const Flight& flight : flights_) {
    for (const auto& work : flight.works) work->abort();
  }
}

MeshLink::MeshLink(c10::intrusive_ptr<c10d::Backend> group, std::string path)
    : carrier_(std::make_shared<Carrier>(std::move(group), std::move(path))) {}

void MeshLink::send(Message message, Completion done) {
  const std::string refusal = carrier_->refusal(message);
  if (!refusal.empty()) {
    done({Outcome::kInvalid, "the mesh " + refusal});
    return;
  }
  waiters_.post([carrier = carrier_, flight = carrier_->begin(std::move(message)),
                 done = std::move(done)] { done(carrier->end(flight)); });
}

bool MeshLink::wait_idle(std::chrono::microseconds timeout) const {
  return waiters_.wait_idle(timeout);
}

}  // namespace deft
