#include "torch/libtorch.h"

#include "torch/collector.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"

namespace deft {

namespace {

class Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(std::weak_ptr<Collector> collector, std::size_t index)
      : collector_(std::move(collector)), index_(index) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    if (const auto collector = collector_.lock()) {
      collector->on_hook(index_);
    }
    return outputs;
  }

 private:
  std::weak_ptr<Collector> collector_;
  std::size_t index_;
};

}  // namespace

Collector::Collector(std::vector<at::Tensor> parameters, std::vector<std::string> names,
                     std::int64_t passes_per_step)
    : parameters_(std::move(parameters)),
      names_(std::move(names)),
      passes_per_step_(passes_per_step) {
  reset();
}

std::shared_ptr<Collector> Collector::attach(std::vector<at::Tensor> parameters,
                                             std::vector<std::string> names,
                                             std::int64_t passes_per_step) {
  std::shared_ptr<Collector> collector(
      new Collector(std::move(parameters), std::move(names), passes_per_step));
  for (std::size_t i = 0; i < collector->parameters_.size(); ++i) {
    // The parameter holds its AccumulateGrad node weakly; we keep it, or the hook would go with it.
    auto node = torch::autograd::impl::grad_accumulator(collector->parameters_[i]);
    TORCH_CHECK(node != nullptr, "parameter ", collector->names_[i],
                " does not require a gradient; hooks go on those that do");
    const auto key = node->add_post_hook(std::make_unique<Hook>(collector, i));
    collector->attachments_.push_back({std::move(node), key});
  }
  return collector;
}

Collector::~Collector() { detach(); }

void Collector::detach() {
  for (const auto& attachment : attachments_) {
    attachment.node->del_post_hook(attachment.key);
  }
  attachments_.clear();
  set_sink(nullptr, {});
}

void Collector::set_sink(std::shared_ptr<GradientSink> sink, std::vector<std::int64_t> places) {
  TORCH_CHECK(sink == nullptr || places.size() == parameters_.size(),
              "a place per parameter is needed: ", places.size(), " for ", parameters_.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  sink_.swap(sink);  // the old one is let go after the lock
  places_ = std::move(places);
}

void Collector::set_passes_per_step(std::int64_t passes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  passes_per_step_ = passes;
  passes_left_.assign(parameters_.size(), passes);
}

void Collector::set_adding(bool adding) {
  const std::lock_guard<std::mutex> lock(mutex_);
  adding_ = adding;
}

bool Collector::any() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return first_us_ >= 0;
}

bool Collector::complete() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return complete_;
}

bool Collector::all_train() const {
  return std::all_of(parameters_.begin(), parameters_.end(),
                     [](const at::Tensor& parameter) { return parameter.requires_grad(); });
}

Collected Collector::collected() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Collected result;
  result.order = order_;
  result.ready_us.reserve(parameters_.size());
  for (const std::int64_t ready : ready_us_) {
    result.ready_us.push_back(ready < 0 ? -1.0 : static_cast<double>(ready - first_us_));
  }
  for (std::size_t i = 0; i < sparse_.size(); ++i) {
    if (sparse_[i]) {
      result.sparse.push_back(static_cast<std::int64_t>(i));
    }
  }
  result.began_us = first_us_;
  result.backward_us = first_us_ < 0 ? 0.0 : static_cast<double>(last_us_ - first_us_);
  return result;
}

void Collector::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  passes_left_.assign(parameters_.size(), passes_per_step_);
  ready_us_.assign(parameters_.size(), -1);
  sparse_.assign(parameters_.size(), false);
  order_.clear();
  first_us_ = -1;
  last_us_ = -1;
  complete_ = false;
}

void Collector::on_hook(std::size_t index) {
  const at::Tensor& gradient = parameters_[index].grad();
  if (!gradient.defined()) {
    return;  // a tensor hook of the user's swallowed it
  }
  std::shared_ptr<GradientSink> sink;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(adding_ || passes_left_[index] > 0, "the gradient of ", names_[index],
                " was computed more than backward_passes_per_step = ", passes_per_step_,
                " times before step(). Call step() after every ", passes_per_step_,
                " backward passes, or pass the number that you accumulate as "
                "backward_passes_per_step to DistributedOptimizer.");
    const std::int64_t now = steady_us();
    if (first_us_ < 0) {
      first_us_ = now;
    }
    last_us_ = now;
    if (adding_ || --passes_left_[index] > 0) {
      return;
    }
    complete_ = true;
    ready_us_[index] = now;
    order_.push_back(static_cast<std::int64_t>(index));
    sparse_[index] = gradient.is_sparse();
    if (sink_ == nullptr || places_[index] < 0) {
      return;
    }
    sink = sink_;
    index = static_cast<std::size_t>(places_[index]);
  }
  if (gradient.is_sparse()) {
    sink->on_sparse_gradient(index);
  } else {
    sink->on_gradient(index, gradient);
  }
}

}  // namespace deft
