#include "core/link/staged_link.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

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

std::shared_ptr<BufferPool> pool_of(const std::shared_ptr<DeviceCopier>& copier) {
  return std::make_shared<BufferPool>(
      [copier](std::int64_t bytes) { return copier->host_memory(bytes); });
}

LinkStatus failed_copy(const Message& message, const char* where, const std::exception& error) {
  return {Outcome::kAborted, "message " + message.name + " could not be copied " + where + ": " +
                                 error.what() + "; the device's earlier errors say why"};
}

}  // namespace

class StagedLink::Carrier : public std::enable_shared_from_this<Carrier> {
 public:
  explicit Carrier(Parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const Parts& parts() const { return parts_; }

  [[nodiscard]] bool stages_nothing() const { return parts_.direct && parts_.names.empty(); }

  void carry(Message message, Completion done) {
    if (message.device < 0 || (parts_.direct && !parts_.names.contains(message.name))) {
      parts_.inner->send(std::move(message), std::move(done));
      return;
    }
    const std::int64_t item = bytes_of(message.dtype);
    const Range input{static_cast<const char*>(message.input), message.input_elements * item};
    const Range output{static_cast<const char*>(message.output), message.output_elements * item};
    const Places places = places_of(input, output);
    BufferPool::Buffer buffer;
    try {
      buffer = parts_.pool->take(places.bytes);
      parts_.copier->to_host(buffer.at(places.input), message.input, input.bytes,
                             message.ready.get());
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
    parts_.inner->send(std::move(travelling),
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
        parts_.copier->to_device(message.output, buffer.at(places.output), bytes);
      } catch (const std::exception& error) {
        status = failed_copy(message, "back to the device", error);
      }
    }
    parts_.pool->give_back(buffer);
    return status;
  }

  const Parts parts_;
  SerialWorker back_;
};

StagedLink::StagedLink(Parts parts) : carrier_(std::make_shared<Carrier>(std::move(parts))) {}

StagedLink::StagedLink(std::shared_ptr<Link> inner, const std::shared_ptr<DeviceCopier>& copier,
                       bool direct)
    : StagedLink(Parts{std::move(inner), copier, pool_of(copier), direct, {}}) {}

std::shared_ptr<StagedLink> StagedLink::around(std::shared_ptr<Link> inner,
                                               std::set<std::string> names) const {
  const Parts& parts = carrier_->parts();
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  return std::shared_ptr<StagedLink>(new StagedLink(Parts{
      std::move(inner), parts.copier->another(), parts.pool, parts.direct, std::move(names)}));
}

const std::shared_ptr<Link>& StagedLink::inner() const { return carrier_->parts().inner; }

void StagedLink::send(Message message, Completion done) {
  if (carrier_->stages_nothing()) {
    inner()->send(std::move(message), std::move(done));
    return;
  }
  out_.post([carrier = carrier_, message = std::move(message), done = std::move(done)] {
    carrier->carry(message, done);
  });
}

void StagedLink::begin_step(std::int64_t step) { inner()->begin_step(step); }

bool StagedLink::matches_by_order() const { return inner()->matches_by_order(); }

bool StagedLink::takes_any_integers() const { return inner()->takes_any_integers(); }

}  // namespace deft
