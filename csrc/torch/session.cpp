#include "torch/libtorch.h"

#include "torch/session.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/clock.h"
#include "core/plan/fusion_groups.h"
#include "cuda/event.h"
#include "torch/memory/memory.h"
#include "torch/memory/multi_pack.h"
#include "torch/memory/pack.h"
#include "torch/native_stream.h"

namespace deft {

namespace {

// The calling thread's current one.
c10::Stream stream_now(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

// The current stream waits for the one that computes the gradient, and its memory for both.
void join_stream(const Held& held) {
  if (!held.stream.has_value()) return;
  const c10::Stream here = stream_now(held.stream->device());
  if (here == *held.stream) return;
  c10::Event computed(held.stream->device_type());
  computed.record(*held.stream);
  computed.block(here);
  held.gradient.record_stream(here);
}

// A graph that is replayed runs no hooks, and writes gradients to where they were.
void refuse_capture(const Held& held) {
  if (!held.stream.has_value()) return;
  const int capturing = deft_cuda_stream_capturing(native_stream(*held.stream));
  TORCH_CHECK(capturing <= 0,
              "a backward pass is being captured into a CUDA graph: replaying it would bring "
              "deft_horovod no gradients. Capture forward alone, or use policy='stock' and "
              "synchronize() outside of the graph.");
}

}  // namespace

Shard shard_of(std::int64_t elements, std::int32_t rank, std::int32_t size) {
  const std::int64_t base = elements / size;
  const std::int64_t rest = elements % size;
  return {base * rank + std::min<std::int64_t>(rank, rest), base + (rank < rest ? 1 : 0)};
}

Session::Session(const Plan& plan, std::vector<at::Tensor> parameters, SessionOptions options)
    : plan_(plan),
      fusion_groups_(fusion_groups_of(plan)),
      parameters_(std::move(parameters)),
      options_(std::move(options)) {
  TORCH_CHECK(plan_.slots.size() == parameters_.size(), "the plan has ", plan_.slots.size(),
              " slots for ", parameters_.size(), " parameters");
  std::vector<std::vector<SlotSpec>> slots(plan_.arenas.size());
  std::vector<std::vector<at::Tensor>> members(plan_.arenas.size());
  for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
    const std::int32_t where = plan_.slots[i].arena;
    const auto a = static_cast<std::size_t>(where);
    places_.push_back({where, slots[a].size()});
    slots[a].push_back(plan_.slots[i]);
    members[a].push_back(parameters_[i]);
  }
  for (std::int32_t buffer = 0; buffer < plan_.buffers; ++buffer) {
    auto& copies = arenas_.emplace_back();
    for (std::size_t a = 0; a < plan_.arenas.size(); ++a) {
      copies.emplace_back(plan_.arenas[a], members[a].front().device(), slots[a], members[a]);
    }
    auto& signals = signals_.emplace_back();
    for (const BucketSpec& bucket : plan_.buckets) {
      const auto a = static_cast<std::size_t>(bucket.arena);
      signals.push_back(make_signal(members[a].front().device()));
    }
  }
}

std::shared_ptr<Session> Session::create(const Plan& plan, std::vector<at::Tensor> parameters,
                                         std::vector<std::shared_ptr<Link>> links,
                                         SessionOptions options) {
  std::shared_ptr<Session> session(new Session(plan, std::move(parameters), std::move(options)));
  session->start(std::move(links));
  return session;
}

void Session::start(std::vector<std::shared_ptr<Link>> links) {
  // The session outlives its messages: a completion holds the arenas through this.
  const auto factory = [self = weak_from_this()](std::int32_t task, std::int32_t buffer) {
    const auto session = self.lock();
    TORCH_CHECK(session != nullptr, "a message was asked of a session that is gone");
    return session->message(task, buffer);
  };
  executor_ = std::make_shared<Executor>(plan_, std::move(links), factory, steady_us);
  gathering_ =
      std::make_unique<Gathering>(executor_->table(), plan_.slots.size(), plan_.buckets.size());
  check_parameters_travel_whole();
}

// A parameter is updated at one moment: everything that carries a part of it is due together.
void Session::check_parameters_travel_whole() const {
  using Span = std::tuple<std::int32_t, std::int32_t, std::int32_t, bool>;
  std::vector<std::set<Span>> spans(plan_.buckets.size());
  for (const GenerationSpec& g : plan_.generations) {
    spans[static_cast<std::size_t>(g.bucket)].emplace(g.first_step, g.last_step, g.apply_step,
                                                      g.gated);
  }
  for (std::size_t slot = 0; slot < plan_.slots.size(); ++slot) {
    const auto& buckets = executor_->table().buckets_of(static_cast<std::int32_t>(slot));
    for (const std::int32_t bucket : buckets) {
      TORCH_CHECK(spans[static_cast<std::size_t>(bucket)] ==
                      spans[static_cast<std::size_t>(buckets.front())],
                  "the plan applies parts of slot ", slot, " at different moments (buckets ",
                  buckets.front(), " and ", bucket,
                  "); all parts of one parameter must share "
                  "their generations");
    }
  }
}

Arena& Session::arena(std::int32_t buffer, std::size_t slot) {
  return arenas_[static_cast<std::size_t>(buffer)][static_cast<std::size_t>(places_[slot].arena)];
}

const Arena& Session::arena(std::int32_t buffer, std::size_t slot) const {
  return arenas_[static_cast<std::size_t>(buffer)][static_cast<std::size_t>(places_[slot].arena)];
}

Message Session::message(std::int32_t task, std::int32_t buffer) const {
  const TaskSpec& spec = plan_.tasks[static_cast<std::size_t>(task)];
  const GenerationSpec& generation = plan_.generations[static_cast<std::size_t>(spec.generation)];
  const auto b = static_cast<std::size_t>(generation.bucket);
  const BucketSpec& bucket = plan_.buckets[b];
  const auto a = static_cast<std::size_t>(bucket.arena);
  const Arena& memory = arenas_[static_cast<std::size_t>(buffer)][a];

  Message message;
  const LinkSpec& link = plan_.links[static_cast<std::size_t>(spec.link)];
  message.in_order = link.plan_order;
  message.name = options_.prefix + ".t" + std::to_string(task);
  // In order, a message is never in flight twice, and its name has one place in the order.
  if (!message.in_order) message.name += "." + std::to_string(buffer);
  message.op = spec.op;
  message.dtype = plan_.arenas[a].wire;
  message.root = spec.root;
  message.fusion_group = fusion_groups_[static_cast<std::size_t>(task)];
  message.device = memory.device();
  message.owner = memory.owner();
  message.ready = signals_[static_cast<std::size_t>(buffer)][b];
  message.input = message.output = memory.address(bucket.begin);
  message.input_elements = message.output_elements = bucket.end - bucket.begin;
  const Shard shard = shard_of(message.input_elements, options_.rank, options_.size);
  void* mine = memory.address(bucket.begin + shard.begin);
  if (spec.op == Op::kReduceScatter) {
    message.output = mine;
    message.output_elements = shard.elements;
  } else if (spec.op == Op::kAllGather) {
    message.input = mine;
    message.input_elements = shard.elements;
  }
  return message;
}

void Session::collect(std::size_t index, const at::Tensor* gradient) {
  if (!options_.together.value_or(!arena(0, index).on_host())) {
    const auto slot = static_cast<std::int32_t>(index);
    pack_one(index, gradient);
    record({slot});
    executor_->slot_ready(slot);
    return;
  }
  Held held{static_cast<std::int32_t>(index), {}, std::nullopt};
  if (gradient != nullptr) {
    held.gradient = *gradient;
    if (!gradient->is_cpu()) held.stream = stream_now(gradient->device());
  }
  const std::vector<Held> full = gathering_->add(std::move(held));
  if (full.empty()) return;
  pack_together(full);
  std::vector<std::int32_t> slots;
  slots.reserve(full.size());
  for (const Held& one : full) slots.push_back(one.slot);
  record(slots);
  for (const std::int32_t packed : slots) executor_->slot_ready(packed);
}

// Generations of all buckets of one parameter agree (checked at start), so its first target stands
// for all of them.
void Session::pack_one(std::size_t index, const at::Tensor* gradient) {
  const PackTarget& first = executor_->targets(static_cast<std::int32_t>(index)).front();
  Arena& memory = arena(first.buffer, index);
  const std::size_t at = places_[index].index;
  const PackMode mode = first.accumulate ? PackMode::kAccumulate : PackMode::kOverwrite;
  Header header = first.accumulate ? memory.read_header(at) : Header{};
  header.replan += replan_requested_ ? 1.0 : 0.0;
  if (gradient != nullptr) {
    pack(*gradient, memory.view(at), 1.0, mode);
    header.presence += 1.0;
  } else if (mode == PackMode::kOverwrite) {
    memory.zero(at);
  }
  memory.write_header(at, header);
}

// Slots of one bucket, and those that share a bucket with them: one arena, and one generation, as
// for the buckets of one parameter. Headers are packed like gradients, and add up like these.
void Session::pack_together(const std::vector<Held>& held) {
  refuse_capture(held.front());
  const PackTarget& first = executor_->targets(held.front().slot).front();
  const bool replan = replan_requested_;
  Tensors from;
  Tensors to;
  for (const Held& one : held) {
    const auto index = static_cast<std::size_t>(one.slot);
    Arena& memory = arena(first.buffer, index);
    const std::size_t at = places_[index].index;
    if (one.gradient.defined()) {
      join_stream(one);
      from.push_back(one.gradient);
      to.push_back(memory.view(at));
    } else if (!first.accumulate) {
      memory.zero(at);
    }
    from.push_back(memory.header_saying(one.gradient.defined(), replan));
    to.push_back(memory.header(at));
  }
  const PackMode mode = first.accumulate ? PackMode::kAccumulate : PackMode::kOverwrite;
  pack_all(from, to, 1.0, mode);
}

void Session::record(const std::vector<std::int32_t>& slots) {
  std::set<std::pair<std::int32_t, std::int32_t>> recorded;  // buffer and bucket
  for (const std::int32_t slot : slots) {
    if (arena(0, static_cast<std::size_t>(slot)).on_host()) continue;
    for (const PackTarget& target : executor_->targets(slot)) {
      if (!recorded.emplace(target.buffer, target.bucket).second) continue;
      const auto& of_buffer = signals_[static_cast<std::size_t>(target.buffer)];
      of_buffer[static_cast<std::size_t>(target.bucket)]->record();
    }
  }
}

void Session::on_gradient(std::size_t index, const at::Tensor& gradient) {
  executor_->begin_backward();
  collect(index, &gradient);
}

void Session::on_sparse_gradient(std::size_t index) {
  executor_->begin_backward();
  collect(index, nullptr);  // it travels the stock way; here its place stays empty
}

void Session::close_step() {
  executor_->begin_backward();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto slot = static_cast<std::int32_t>(i);
    if (executor_->slot_collected(slot) || gathering_->holds(slot)) {
      continue;
    }
    const at::Tensor& gradient = parameters_[i].grad();
    const bool dense = gradient.defined() && !gradient.is_sparse();
    collect(i, dense ? &gradient : nullptr);
  }
}

std::optional<std::size_t> Session::wait(const std::vector<Due>& dues,
                                         std::chrono::microseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (std::size_t i = 0; i < dues.size(); ++i) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
        deadline - std::chrono::steady_clock::now());
    const auto result = executor_->wait(dues[i], std::max(left, std::chrono::microseconds(0)));
    if (result != WaitResult::kDone) {
      return i;
    }
  }
  return std::nullopt;
}

std::vector<Header> Session::headers(const std::vector<Due>& dues) const {
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> wanted;
  std::vector<bool> seen(parameters_.size(), false);
  for (const Due& due : dues) {
    for (const std::int32_t slot : slots_of(due.bucket)) {
      const auto i = static_cast<std::size_t>(slot);
      if (!seen[i]) wanted[{due.buffer, places_[i].arena}].push_back(i);
      seen[i] = true;
    }
  }
  std::vector<Header> found(parameters_.size());
  for (const auto& [where, slots] : wanted) {
    std::vector<std::size_t> places;
    for (const std::size_t slot : slots) places.push_back(places_[slot].index);
    const auto read = arena(where.first, slots.front()).read_headers(places);
    for (std::size_t i = 0; i < slots.size(); ++i) found[slots[i]] = read[i];
  }
  return found;
}

bool Session::install(const std::vector<Due>& dues) {
  const std::vector<Header> facts = headers(dues);
  Tensors arrived;
  Tensors gradients;
  std::vector<bool> seen(parameters_.size(), false);
  for (const Due& due : dues) {
    for (const std::int32_t slot : slots_of(due.bucket)) {
      const auto i = static_cast<std::size_t>(slot);
      if (seen[i]) {
        continue;
      }
      seen[i] = true;
      const Arena& memory = arena(due.buffer, i);
      const std::size_t at = places_[i].index;
      at::Tensor& gradient = parameters_[i].mutable_grad();
      if (gradient.defined() && gradient.is_sparse()) {
        continue;
      }
      if (!gradient.defined() && facts[i].presence <= 0.0 && !parameters_[i].requires_grad()) {
        continue;
      }
      const at::Tensor& result = memory.view(at);
      if (result.scalar_type() == parameters_[i].scalar_type()) {
        gradient = result;
        continue;
      }
      if (!gradient.defined()) {
        gradient = at::empty_like(parameters_[i].detach());
      }
      arrived.push_back(result);
      gradients.push_back(gradient);
    }
  }
  unpack_all(arrived, gradients);
  return std::any_of(facts.begin(), facts.end(),
                     [](const Header& header) { return header.replan > 0.0; });
}

void Session::show(const std::vector<Due>& dues) {
  for (const Due& due : dues) {
    for (const std::int32_t slot : slots_of(due.bucket)) {
      const auto i = static_cast<std::size_t>(slot);
      at::Tensor& gradient = parameters_[i].mutable_grad();
      const bool absent = !gradient.defined();
      if (absent ? !parameters_[i].requires_grad() : gradient.is_sparse()) {
        continue;
      }
      const at::Tensor& result = arena(due.buffer, i).view(places_[i].index);
      if (result.scalar_type() == parameters_[i].scalar_type()) {
        gradient = result;
      } else if (absent) {
        gradient = at::zeros_like(parameters_[i].detach());
      }
    }
  }
}

at::Tensor Session::bucket_memory(std::int32_t bucket, std::int32_t buffer) const {
  const BucketSpec& spec = plan_.buckets.at(static_cast<std::size_t>(bucket));
  const auto& copies = arenas_.at(static_cast<std::size_t>(buffer));
  return copies[static_cast<std::size_t>(spec.arena)].range(spec.begin, spec.end);
}

std::span<const std::int32_t> Session::slots_of(std::int32_t bucket) const {
  return executor_->table().slots_of(bucket);
}

std::int64_t Session::buffer_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& copies : arenas_) {
    for (const Arena& memory : copies) {
      bytes += memory.bytes();
    }
  }
  return bytes;
}

}  // namespace deft
