#include "core/link/encoded/exchange.h"

#include <utility>

namespace deft {

namespace {

// What a second stage costs, as bytes of a link.
constexpr std::int64_t kStageBytes = 131'072;

std::byte* bytes_at(const BufferPool::Buffer& buffer, std::int64_t offset) {
  return reinterpret_cast<std::byte*>(buffer.at(offset));
}

std::vector<std::int64_t> same_for_all(std::int64_t bytes, Place place) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(place.size), bytes);
}

}  // namespace

std::int32_t owners_for(std::int64_t bytes, std::int32_t ranks) {
  const std::int64_t in_one = bytes * (ranks - 1);
  return 2 * in_one / ranks + kStageBytes < in_one ? ranks : 1;
}

Exchange::Exchange(const Encoding& encoding, Place place, BufferPool::Buffer buffer)
    : bytes_(encoding.bytes()),
      chunk_bytes_(encoding.chunk_bytes()),
      place_(place),
      buffer_(std::move(buffer)) {}

std::int64_t Exchange::buffer_bytes(const Encoding& encoding, Place place) {
  if (encoding.owners() == 1) return encoding.bytes() * place.size;
  return encoding.bytes() +
         encoding.chunk_bytes()[static_cast<std::size_t>(place.rank)] * place.size;
}

std::byte* Exchange::message() const {
  return bytes_at(buffer_, chunk_bytes_.size() == 1 ? bytes_ * place_.rank : 0);
}

std::byte* Exchange::chunks() const { return bytes_at(buffer_, bytes_); }

bool Exchange::is_pair() const { return chunk_bytes_.size() == 1 && place_.size == 2; }

std::byte* Exchange::of_other() const { return bytes_at(buffer_, bytes_ * (1 - place_.rank)); }

std::vector<const std::byte*> Exchange::messages() const {
  if (chunk_bytes_.size() > 1) return {bytes_at(buffer_, 0)};
  std::vector<const std::byte*> all;
  all.reserve(static_cast<std::size_t>(place_.size));
  for (std::int32_t rank = 0; rank < place_.size; ++rank) {
    all.push_back(bytes_at(buffer_, bytes_ * rank));
  }
  return all;
}

Message Exchange::bytes_for(const Message& message, Op op) const {
  Message travelling = message;
  travelling.op = op;
  travelling.dtype = DType::kUInt8;
  travelling.input = this->message();
  travelling.input_elements = bytes_;
  travelling.output = bytes_at(buffer_, 0);
  travelling.owner = buffer_.memory;
  return travelling;
}

Message Exchange::first(const Message& message) const {
  if (chunk_bytes_.size() > 1) {
    Message travelling = bytes_for(message, Op::kAllToAll);
    const std::int64_t own = chunk_bytes_[static_cast<std::size_t>(place_.rank)];
    travelling.output = chunks();
    travelling.output_elements = own * place_.size;
    travelling.to_ranks = chunk_bytes_;
    travelling.from_ranks = same_for_all(own, place_);
    return travelling;
  }
  if (is_pair()) {
    Message travelling = bytes_for(message, Op::kAllReduce);
    travelling.dtype = DType::kInt32;
    travelling.input_elements = bytes_ / bytes_of(DType::kInt32);
    travelling.output = of_other();
    travelling.output_elements = travelling.input_elements;
    return travelling;
  }
  Message travelling = bytes_for(message, Op::kAllGather);
  travelling.output_elements = bytes_ * place_.size;
  return travelling;
}

void Exchange::separate() const {
  if (!is_pair()) return;
  const auto* const own = reinterpret_cast<const std::uint32_t*>(message());
  auto* const other = reinterpret_cast<std::uint32_t*>(of_other());
  const std::int64_t words = bytes_ / bytes_of(DType::kInt32);
  for (std::int64_t i = 0; i < words; ++i) other[i] -= own[i];
}

Message Exchange::second(const Message& message) const {
  Message travelling = bytes_for(message, Op::kAllGather);
  travelling.name += ".sums";
  travelling.input = chunks();
  travelling.input_elements = chunk_bytes_[static_cast<std::size_t>(place_.rank)];
  travelling.output_elements = bytes_;
  travelling.from_ranks = chunk_bytes_;
  return travelling;
}

}  // namespace deft
