#include "core/link/encoded/encoded_link.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "core/link/buffer_pool.h"
#include "core/link/encoded/exchange.h"
#include "core/link/encoded/roll_call.h"
#include "core/link/encoded/turnstile.h"
#include "core/link/serial_worker.h"

namespace deft {

namespace {

std::shared_ptr<void> host_memory(std::int64_t bytes) {
  return {::operator new(static_cast<std::size_t>(bytes)),
          [](void* memory) { ::operator delete(memory); }};
}

// One for each message of a mesh. Whether it takes rests along is each rank's own affair.
std::map<std::string, std::int32_t> tags_of(const Encodings& encodings, const Encodings& exact) {
  std::set<std::string> names;
  for (const auto& [name, encoding] : encodings) {
    if (!encoding->always_whole()) names.insert(name);
  }
  for (const auto& [name, encoding] : exact) names.insert(name);
  std::map<std::string, std::int32_t> tags;
  for (const std::string& name : names) {
    tags.emplace(name, static_cast<std::int32_t>(tags.size()));
  }
  return tags;
}

// Why a message cannot be encoded, or take its rests with it; empty when it can.
std::string refusal_of(const Message& message, const Encoding& encoding, Place place) {
  if (encoding.owners() > 1 && (encoding.owners() != place.size || encoding.rank() != place.rank)) {
    return "the encoding of message " + message.name + " is that of rank " +
           std::to_string(encoding.rank()) + " of " + std::to_string(encoding.owners()) +
           " owners; expected rank " + std::to_string(place.rank) + " of " +
           std::to_string(place.size) + ", or a single owner";
  }
  const bool known = message.op == Op::kAllReduce
                         ? message.output_elements == encoding.elements()
                         : message.op == Op::kReduceScatter && encoding.always_whole();
  if (known && message.dtype == DType::kFloat32 && message.device < 0 &&
      message.input_elements == encoding.elements()) {
    return {};
  }
  return "message " + message.name + " is an " + name_of(message.op) + " of " +
         std::to_string(message.input_elements) + " values on device " +
         std::to_string(message.device) + "; its encoding expects an all_reduce of " +
         std::to_string(encoding.elements()) + " float32 values in host memory";
}

}  // namespace

class EncodedLink::Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  Carrier(std::shared_ptr<Link> inner, const EncodedLinkOptions& options, Encodings encodings)
      : inner_(std::move(inner)),
        mesh_(options.mesh),
        place_{options.size, options.rank, options.mesh != nullptr},
        factor_(options.factor),
        encodings_(std::move(encodings)),
        exact_(options.exact),
        tags_(tags_of(encodings_, exact_)),
        pool_(host_memory) {
    const bool all_whole = std::all_of(encodings_.begin(), encodings_.end(), [](const auto& entry) {
      return entry.second->always_whole();
    });
    if (options.roll_call.empty() || all_whole) return;
    roll_call_ = std::make_shared<RollCall>(inner_, options.roll_call, options.size, options.rank);
  }

  void send(Message message, Completion done) {
    // Then nothing is left to be done on the way out, and no thread has to be woken for it.
    if (spent() && out_.wait_idle(std::chrono::microseconds(0))) {
      carry(std::move(message), true, std::move(done));
      return;
    }
    if (roll_call_ == nullptr) {
      post(std::move(message), true, std::move(done));
      return;
    }
    const std::int64_t step = message.step;
    roll_call_->pass(
        step, [self = shared_from_this(), message = std::move(message),
               done = std::move(done)](bool everyone) { self->post(message, everyone, done); });
  }

  void begin_step(std::int64_t step) {
    if (roll_call_ != nullptr) roll_call_->call(step);
  }

  [[nodiscard]] bool matches_by_order() const { return inner_->matches_by_order(); }

 private:
  struct Flight {
    Message message;
    std::shared_ptr<Encoding> encoding;
    BufferPool::Buffer buffer;
    Exchange exchange;
    Completion done;
  };
  using FlightPointer = std::shared_ptr<const Flight>;
  using Step = void (Carrier::*)(const FlightPointer&, const LinkStatus&);

  // Whether no message is to be encoded, now or later, nor takes rests with it. One thread at a
  // time asks.
  [[nodiscard]] bool spent() {
    if (!spent_) {
      spent_ = std::all_of(encodings_.begin(), encodings_.end(),
                           [](const auto& entry) { return entry.second->spent(); });
    }
    return spent_;
  }

  void post(Message message, bool everyone, Completion done) {
    out_.post([self = shared_from_this(), message = std::move(message), everyone,
               done = std::move(done)] { self->carry(message, everyone, done); });
  }

  void carry(Message message, bool everyone, Completion done) {
    if (const auto found = encodings_.find(message.name); found != encodings_.end()) {
      const std::shared_ptr<Encoding>& encoding = found->second;
      const std::string refusal = refusal_of(message, *encoding, place_);
      if (!refusal.empty()) {
        done({Outcome::kInvalid, refusal});
        return;
      }
      if (const bool whole = encoding->take_whole(); !whole && everyone) {
        exchange(std::move(message), encoding, std::move(done));
        return;
      }
      done = with_rests(message, *encoding, std::move(done));
    }
    const auto exact = exact_.find(message.name);
    if (everyone && exact != exact_.end() && message.device < 0) {
      exchange(std::move(message), exact->second, std::move(done));
    } else {
      hand_over(std::move(message), false, std::move(done));
    }
  }

  void exchange(Message message, const std::shared_ptr<Encoding>& encoding, Completion done) {
    message.tag = tags_.at(message.name);
    const BufferPool::Buffer buffer = pool_.take(Exchange::buffer_bytes(*encoding, place_));
    const std::int32_t group = inner_->takes_any_integers() ? message.fusion_group : 0;
    Exchange exchange(*encoding, place_, buffer, group);
    const auto flight = std::make_shared<Flight>(
        Flight{std::move(message), encoding, buffer, std::move(exchange), std::move(done)});
    encoding->encode(static_cast<const float*>(flight->message.input), flight->exchange.message());
    const bool in_two = encoding->owners() > 1;
    Message first = flight->exchange.first(flight->message);
    Completion next = then(flight, in_two ? &Carrier::sum_own : &Carrier::land);
    if (mesh_ != nullptr) {
      mesh_->send(std::move(first), std::move(next));
    } else {
      hand_over(std::move(first), in_two, std::move(next));
    }
  }

  [[nodiscard]] bool takes_turns(const Message& message) const {
    return message.in_order || matches_by_order();
  }

  // The message brings what is left, which lives until it has arrived.
  [[nodiscard]] Completion with_rests(Message& message, Encoding& encoding, Completion done) const {
    if (encoding.spent()) return done;
    const auto values = std::make_shared<const std::vector<float>>(
        encoding.with_rests(static_cast<const float*>(message.input), factor_));
    message.input = values->data();
    return [values, done = std::move(done)](const LinkStatus& status) { done(status); };
  }

  void hand_over(Message message, bool in_two, Completion done) {
    if (!takes_turns(message)) {
      inner_->send(std::move(message), std::move(done));
      return;
    }
    turnstile_.pass([self = shared_from_this(), message = std::move(message),
                     done = std::move(done)] { self->inner_->send(message, done); },
                    in_two);
  }

  // On the thread that decodes.
  Completion then(FlightPointer flight, Step step) {
    return [self = shared_from_this(), flight = std::move(flight), step](const LinkStatus& status) {
      self->back_.post([self, flight, step, status] { (*self.*step)(flight, status); });
    };
  }

  void sum_own(const FlightPointer& flight, const LinkStatus& status) {
    const bool turns = mesh_ == nullptr && takes_turns(flight->message);
    if (!status.ok()) {
      if (turns) turnstile_.open([] {});
      land(flight, status);
      return;
    }
    flight->encoding->sum_own(flight->exchange.chunks(), factor_,
                              static_cast<float*>(flight->message.output));
    auto send = [self = shared_from_this(), flight] {
      const std::shared_ptr<Link>& link = self->mesh_ != nullptr ? self->mesh_ : self->inner_;
      link->send(flight->exchange.second(flight->message), self->then(flight, &Carrier::land));
    };
    if (turns) {
      turnstile_.open(std::move(send));
    } else {
      send();
    }
  }

  void land(const FlightPointer& flight, const LinkStatus& status) {
    if (status.ok()) {
      const float factor = flight->encoding->owners() > 1 ? 1.0F : factor_;
      flight->exchange.separate();
      flight->encoding->sum(flight->exchange.messages(), factor,
                            static_cast<float*>(flight->message.output));
    }
    pool_.give_back(flight->buffer);
    flight->done(status);
  }

  const std::shared_ptr<Link> inner_;
  const std::shared_ptr<Link> mesh_;  // null: the inner link carries what is encoded, too
  const Place place_;
  const float factor_;
  const Encodings encodings_;
  const Encodings exact_;
  const std::map<std::string, std::int32_t> tags_;
  BufferPool pool_;
  std::shared_ptr<RollCall> roll_call_;  // null: all ranks take part in all steps
  Turnstile turnstile_;
  SerialWorker out_;
  SerialWorker back_;
  bool spent_ = false;
};

EncodedLink::EncodedLink(std::shared_ptr<Link> inner, const EncodedLinkOptions& options,
                         Encodings encodings)
    : carrier_(std::make_shared<Carrier>(std::move(inner), options, std::move(encodings))) {}

void EncodedLink::send(Message message, Completion done) {
  carrier_->send(std::move(message), std::move(done));
}

void EncodedLink::begin_step(std::int64_t step) { carrier_->begin_step(step); }

bool EncodedLink::matches_by_order() const { return carrier_->matches_by_order(); }

}  // namespace deft
