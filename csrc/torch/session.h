// A plan at work on real tensors: gradients in, averaged gradients out.
//
// The session owns the arenas and the executor. Autograd threads bring gradients in through the
// sink; the training thread closes the step, waits, and takes the results as `p.grad`.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/executor/executor.h"
#include "torch/collector.h"
#include "torch/gathering.h"
#include "torch/links/device_signal.h"
#include "torch/memory/arena.h"

namespace deft {

struct SessionOptions {
  std::string prefix;  // of message names; unique among the optimizers of a job
  std::int32_t rank = 0;
  std::int32_t size = 1;
  // Whether a bucket's gradients are packed together; unset: on a device, not on the host.
  std::optional<bool> together;
};

// The part of a reduce-scatter that a rank keeps: Horovod gives the first ranks one element more.
struct Shard {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
};
[[nodiscard]] Shard shard_of(std::int64_t elements, std::int32_t rank, std::int32_t size);

class Session final : public GradientSink, public std::enable_shared_from_this<Session> {
 public:
  // `parameters` in the order of the plan's slots.
  static std::shared_ptr<Session> create(const Plan& plan, std::vector<at::Tensor> parameters,
                                         std::vector<std::shared_ptr<Link>> links,
                                         SessionOptions options);

  void on_gradient(std::size_t index, const at::Tensor& gradient) override;
  void on_sparse_gradient(std::size_t index) override;

  // Supplies what autograd did not bring in this step: a gradient that is there without a hook
  // having fired is sent as it is, a missing one as a zero.
  void close_step();
  // Waits until all of `dues` are reduced. If time or links fail: the index of the first that is
  // not.
  [[nodiscard]] std::optional<std::size_t> wait(const std::vector<Due>& dues,
                                                std::chrono::microseconds timeout);
  // Sets p.grad of every parameter whose gradient lies in these generations: to zero where no rank
  // had one, as Horovod does, but for a parameter that does not train any more. Returns whether any
  // rank asks for a new plan in them: the same answer on every rank, from the headers that have to
  // be read anyway.
  bool install(const std::vector<Due>& dues);
  // Sets p.grad to what will hold the averages of these generations once they have arrived.
  void show(const std::vector<Due>& dues);
  // The memory of one bucket in one buffer, headers included: for checkpoints.
  [[nodiscard]] at::Tensor bucket_memory(std::int32_t bucket, std::int32_t buffer) const;
  // From now on every header of this rank asks, until a new plan makes a new session.
  void request_replan() { replan_requested_ = true; }

  [[nodiscard]] Executor& executor() { return *executor_; }
  [[nodiscard]] std::span<const std::int32_t> slots_of(std::int32_t bucket) const;
  [[nodiscard]] std::int64_t buffer_bytes() const;

 private:
  struct Place {
    std::int32_t arena = 0;
    std::size_t index = 0;  // of the slot within its arena
  };

  Session(const Plan& plan, std::vector<at::Tensor> parameters, SessionOptions options);
  void start(std::vector<std::shared_ptr<Link>> links);
  void check_parameters_travel_whole() const;
  [[nodiscard]] Message message(std::int32_t task, std::int32_t buffer) const;
  void collect(std::size_t index, const at::Tensor* gradient);
  void pack_one(std::size_t index, const at::Tensor* gradient);
  void pack_together(const std::vector<Held>& held);
  // Behind what has packed these, for all of their buckets.
  void record(const std::vector<std::int32_t>& slots);
  // Of all parameters that have a part in these generations, by slot; headers of others are empty.
  [[nodiscard]] std::vector<Header> headers(const std::vector<Due>& dues) const;
  [[nodiscard]] Arena& arena(std::int32_t buffer, std::size_t slot);
  [[nodiscard]] const Arena& arena(std::int32_t buffer, std::size_t slot) const;

  const Plan plan_;
  const std::vector<std::int32_t> fusion_groups_;  // per task
  const std::vector<at::Tensor> parameters_;
  const SessionOptions options_;
  std::vector<Place> places_;                                        // per slot
  std::vector<std::vector<Arena>> arenas_;                           // [buffer][arena]
  std::vector<std::vector<std::shared_ptr<DeviceSignal>>> signals_;  // [buffer][bucket]
  std::shared_ptr<Executor> executor_;
  std::unique_ptr<Gathering> gathering_;
  std::atomic<bool> replan_requested_{false};
};

}  // namespace deft
