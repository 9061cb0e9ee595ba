#include "core/link/encoded_link.h"

#include <utility>

#include "core/link/buffer_pool.h"

namespace deft {

namespace {

std::shared_ptr<void> host_memory(std::int64_t bytes) {
  return {::operator new(static_cast<std::size_t>(bytes)),
          [](void* memory) { ::operator delete(memory); }};
}

// Why a message cannot be encoded; empty when it can.
std::string refusal_of(const Message& message, const Encoding& encoding) {
  const bool fits = message.input_elements == encoding.elements() &&
                    message.output_elements == encoding.elements();
  if (message.op == Op::kAllReduce && message.dtype == DType::kFloat32 && message.device < 0 &&
      fits) {
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
  Carrier(std::shared_ptr<Link> inner, EncodedLinkOptions options, Encodings encodings)
      : inner_(std::move(inner)),
        options_(options),
        encodings_(std::move(encodings)),
        pool_(host_memory) {}

  void carry(Message message, Completion done) {
    const auto found = encodings_.find(message.name);
    if (found == encodings_.end()) {
      inner_->send(std::move(message), std::move(done));
      return;
    }
    const std::shared_ptr<Encoding>& encoding = found->second;
    const std::string refusal = refusal_of(message, *encoding);
    if (!refusal.empty()) {
      done({Outcome::kInvalid, refusal});
      return;
    }
    // Of this rank first, then those of all.
    const BufferPool::Buffer buffer = pool_.take(encoding->bytes() * (options_.size + 1));
    encoding->encode(static_cast<const float*>(message.input), bytes_at(buffer, 0));
    Message travelling = message;
    travelling.op = Op::kAllGather;
    travelling.dtype = DType::kUInt8;
    travelling.input = buffer.at(0);
    travelling.input_elements = encoding->bytes();
    travelling.output = buffer.at(encoding->bytes());
    travelling.output_elements = encoding->bytes() * options_.size;
    travelling.owner = buffer.memory;
    inner_->send(std::move(travelling),
                 [self = shared_from_this(), message = std::move(message), encoding, buffer,
                  done = std::move(done)](const LinkStatus& status) {
                   self->back_.post([self, message, encoding, buffer, done, status] {
                     self->land(message, *encoding, buffer, status);
                     done(status);
                   });
                 });
  }

 private:
  static std::byte* bytes_at(const BufferPool::Buffer& buffer, std::int64_t offset) {
    return reinterpret_cast<std::byte*>(buffer.at(offset));
  }

  void land(const Message& message, const Encoding& encoding, const BufferPool::Buffer& buffer,
            const LinkStatus& status) {
    if (status.ok()) {
      encoding.sum(bytes_at(buffer, encoding.bytes()), options_.size, options_.factor,
                   static_cast<float*>(message.output));
    }
    pool_.give_back(buffer);
  }

  const std::shared_ptr<Link> inner_;
  const EncodedLinkOptions options_;
  const Encodings encodings_;
  BufferPool pool_;
  SerialWorker back_;
};

EncodedLink::EncodedLink(std::shared_ptr<Link> inner, EncodedLinkOptions options,
                         Encodings encodings)
    : carrier_(std::make_shared<Carrier>(std::move(inner), options, std::move(encodings))) {}

void EncodedLink::send(Message message, Completion done) {
  out_.post([carrier = carrier_, message = std::move(message), done = std::move(done)] {
    carrier->carry(message, done);
  });
}

}  // namespace deft
