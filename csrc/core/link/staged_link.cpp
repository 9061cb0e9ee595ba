#include "core/link/staged_link.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "core/link/buffer_pool.h"

namespace deft {

namespace {

// Where two messages' parts share a buffer, each begins at a cache line of its own.
constexpr std::int64_t kLineBytes = 64;

struct Range {
  const char* begin = nullptr;
  std::int64_t bytes = 0;

  [[nodiscard]] const char* end() const { return begin + bytes; }
};

// Where input and output of a message lie in one host buffer: as on the device if they overlap
// there (a shard within its whole), side by side otherwise.
struct Places {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t bytes = 0;
};

Places places_of(const Range& input, const Range& output) {
  if (input.begin < output.end() && output.begin < input.end()) {
    const char* base = std::min(input.begin, output.begin);
    return {input.begin - base, output.begin - base, std::max(input.end(), output.end()) - base};
  }
  const std::int64_t second = (input.bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  return {0, second, second + output.bytes};
}

LinkStatus failed_copy(const Message& message, const char* where, const std::exception& error) {
  return {Outcome::kAborted, "message " + message.name + " could not be copied " + where + ": " +
                                 error.what() + "; the device's earlier errors say why"};
}

}  // namespace

class StagedLink::Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  Carrier(std::shared_ptr<Link> inner, std::shared_ptr<DeviceCopier> copier)
      : inner_(std::move(inner)),
        copier_(std::move(copier)),
        pool_([copier = copier_](std::int64_t bytes) { return copier->host_memory(bytes); }) {}

  [[nodiscard]] bool matches_by_order() const { return inner_->matches_by_order(); }

  [[nodiscard]] bool takes_any_integers() const { return inner_->takes_any_integers(); }

  void carry(Message message, Completion done) {
    if (message.device < 0) {
      inner_->send(std::move(message), std::move(done));
      return;
    }
    const std::int64_t item = bytes_of(message.dtype);
    const Range input{static_cast<const char*>(message.input), message.input_elements * item};
    const Range output{static_cast<const char*>(message.output), message.output_elements * item};
    const Places places = places_of(input, output);
    BufferPool::Buffer buffer;
    try {
      buffer = pool_.take(places.bytes);
      copier_->to_host(buffer.at(places.input), message.input, input.bytes, message.ready.get());
    } catch (const std::exception& error) {
      done(failed_copy(message, "to the host", error));
      return;
    }
    Message travelling = message;
    travelling.device = -1;
    travelling.ready = nullptr;
    travelling.owner = buffer.memory;
    travelling.input = buffer.at(places.input);
    travelling.output = buffer.at(places.output);
    inner_->send(std::move(travelling),
                 [self = shared_from_this(), message = std::move(message), buffer, places,
                  bytes = output.bytes, done = std::move(done)](const LinkStatus& status) {
                   self->back_.post([self, message, buffer, places, bytes, done, status] {
                     done(self->land(message, buffer, places, bytes, status));
                   });
                 });
  }

 private:
  using Buffer = BufferPool::Buffer;

  LinkStatus land(const Message& message, const Buffer& buffer, const Places& places,
                  std::int64_t bytes, LinkStatus status) {
    if (status.ok()) {
      try {
        copier_->to_device(message.output, buffer.at(places.output), bytes);
      } catch (const std::exception& error) {
        status = failed_copy(message, "back to the device", error);
      }
    }
    pool_.give_back(buffer);
    return status;
  }

  const std::shared_ptr<Link> inner_;
  const std::shared_ptr<DeviceCopier> copier_;
  BufferPool pool_;
  SerialWorker back_;
};

StagedLink::StagedLink(std::shared_ptr<Link> inner, std::shared_ptr<DeviceCopier> copier)
    : carrier_(std::make_shared<Carrier>(std::move(inner), std::move(copier))) {}

void StagedLink::send(Message message, Completion done) {
  out_.post([carrier = carrier_, message = std::move(message), done = std::move(done)] {
    carrier->carry(message, done);
  });
}

bool StagedLink::matches_by_order() const { return carrier_->matches_by_order(); }

bool StagedLink::takes_any_integers() const { return carrier_->takes_any_integers(); }

}  // namespace deft
