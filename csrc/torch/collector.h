// C++ hooks on the parameters' AccumulateGrad nodes: they see every finished gradient, in the order
// in which autograd finishes them, without Python and without the GIL.
//
// The collector counts backward passes, remembers order and time, and hands complete gradients to a
// sink (a session that runs a plan) if there is one.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace deft {

class GradientSink {
 public:
  virtual ~GradientSink() = default;
  virtual void on_gradient(std::size_t index, const at::Tensor& gradient) = 0;
  virtual void on_sparse_gradient(std::size_t index) = 0;
};

// What one backward window produced, per parameter.
struct Collected {
  std::vector<std::int64_t> order;   // parameters, in the order of their last gradient
  std::vector<double> ready_us;      // since the window's first gradient; -1: none
  std::vector<std::int64_t> sparse;  // parameters with a sparse gradient
  std::int64_t began_us = -1;        // the window's first gradient, on steady_us(); -1: none
  double backward_us = 0.0;          // first to last gradient
};

class Collector : public std::enable_shared_from_this<Collector> {
 public:
  static std::shared_ptr<Collector> attach(std::vector<at::Tensor> parameters,
                                           std::vector<std::string> names,
                                           std::int64_t passes_per_step);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  void detach();  // removes the hooks; idempotent
  // `places[i]` is the sink's index of parameter i, -1 where it takes no gradient of it.
  void set_sink(std::shared_ptr<GradientSink> sink, std::vector<std::int64_t> places);
  void set_passes_per_step(std::int64_t passes);
  // From now on backward passes only add to gradients, and are not counted; or are, again.
  void set_adding(bool adding);

  [[nodiscard]] bool any() const;        // a gradient came since the last reset
  [[nodiscard]] bool complete() const;   // some parameter has had all its passes
  [[nodiscard]] bool all_train() const;  // every parameter still requires a gradient
  [[nodiscard]] Collected collected() const;
  void reset();  // a new window begins

  // Called by the hooks.
  void on_hook(std::size_t index);

 private:
  Collector(std::vector<at::Tensor> parameters, std::vector<std::string> names,
            std::int64_t passes_per_step);

  // A smart pointer; which kind depends on torch's version.
  using Node = decltype(torch::autograd::impl::grad_accumulator(std::declval<at::Tensor>()));
  struct Attachment {
    Node node;
    std::uintptr_t key = 0;
  };

  const std::vector<at::Tensor> parameters_;
  const std::vector<std::string> names_;
  std::vector<Attachment> attachments_;

  mutable std::mutex mutex_;
  std::shared_ptr<GradientSink> sink_;
  std::vector<std::int64_t> places_;
  std::int64_t passes_per_step_;
  std::vector<std::int64_t> passes_left_;
  std::vector<std::int64_t> ready_us_;
  std::vector<std::int64_t> order_;
  std::vector<bool> sparse_;
  std::int64_t first_us_ = -1;
  std::int64_t last_us_ = -1;
  bool complete_ = false;
  bool adding_ = false;
};

}  // namespace deft
