#include "core/link/encoded/exchange.h"

#include <array>
#include <utility>

namespace deft {

namespace {

std::byte* bytes_at(const BufferPool::Buffer& buffer, std::int64_t offset) {
  return reinterpret_cast<std::byte*>(buffer.at(offset));
}

constexpr std::array kSummed{DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8};
constexpr std::array kGathered{DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32};
static_assert(kSummed.size() == kGathered.size());

// Without carry from one lane to the next.
template <typename Lane>
void subtract(const std::byte* own, std::byte* sums, std::int64_t bytes) {
  const auto* const from = reinterpret_cast<const Lane*>(own);
  auto* const to = reinterpret_cast<Lane*>(sums);
  const std::int64_t lanes = bytes / static_cast<std::int64_t>(sizeof(Lane));
  for (std::int64_t i = 0; i < lanes; ++i) to[i] = static_cast<Lane>(to[i] - from[i]);
}

std::vector<std::int64_t> same_for_all(std::int64_t bytes, Place place) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(place.size), bytes);
}

}  // namespace

Exchange::Exchange(const Encoding& encoding, Place place, BufferPool::Buffer buffer,
                   std::int32_t fusion_group)
    : bytes_(encoding.bytes()),
      chunk_bytes_(encoding.chunk_bytes()),
      place_(place),
      buffer_(std::move(buffer)),
      turn_(static_cast<std::size_t>(fusion_group) % kSummed.size()) {}

std::int64_t Exchange::buffer_bytes(const Encoding& encoding, Place place) {
  if (encoding.owners() == 1) return encoding.bytes() * place.size;
  return encoding.bytes() +
         encoding.chunk_bytes()[static_cast<std::size_t>(place.rank)] * place.size;
}

std::byte* Exchange::message() const {
  return bytes_at(buffer_, chunk_bytes_.size() == 1 ? bytes_ * place_.rank : 0);
}

std::byte* Exchange::chunks() const { return bytes_at(buffer_, bytes_); }

bool Exchange::is_pair() const {
  return chunk_bytes_.size() == 1 && place_.size == 2 && !place_.mesh;
}

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

Message Exchange::bytes_for(const Message& message, Op op, DType dtype) const {
  Message travelling = message;
  travelling.op = op;
  travelling.dtype = dtype;
  travelling.input = this->message();
  travelling.input_elements = bytes_ / bytes_of(dtype);
  travelling.output = bytes_at(buffer_, 0);
  travelling.owner = buffer_.memory;
  if (message.tag >= 0) travelling.tag = 2 * message.tag;
  return travelling;
}

Message Exchange::first(const Message& message) const {
  if (chunk_bytes_.size() > 1) {
    Message travelling = bytes_for(message, Op::kAllToAll, DType::kUInt8);
    const std::int64_t own = chunk_bytes_[static_cast<std::size_t>(place_.rank)];
    travelling.output = chunks();
    travelling.output_elements = own * place_.size;
    travelling.to_ranks = chunk_bytes_;
    travelling.from_ranks = same_for_all(own, place_);
    return travelling;
  }
  if (is_pair()) {
    Message travelling = bytes_for(message, Op::kAllReduce, kSummed[turn_]);
    travelling.output = of_other();
    travelling.output_elements = travelling.input_elements;
    return travelling;
  }
  Message travelling = bytes_for(message, Op::kAllGather, kGathered[turn_]);
  travelling.output_elements = travelling.input_elements * place_.size;
  return travelling;
}

void Exchange::separate() const {
  if (!is_pair()) return;
  switch (bytes_of(kSummed[turn_])) {
    case 1:
      return subtract<std::uint8_t>(message(), of_other(), bytes_);
    case 2:
      return subtract<std::uint16_t>(message(), of_other(), bytes_);
    default:
      return subtract<std::uint32_t>(message(), of_other(), bytes_);
  }
}

Message Exchange::second(const Message& message) const {
  const DType dtype = kGathered[turn_];
  const std::int64_t unit = bytes_of(dtype);
  Message travelling = bytes_for(message, Op::kAllGather, dtype);
  travelling.name += ".sums";
  if (message.tag >= 0) travelling.tag = 2 * message.tag + 1;
  travelling.input = chunks();
  travelling.input_elements = chunk_bytes_[static_cast<std::size_t>(place_.rank)] / unit;
  travelling.output_elements = bytes_ / unit;
  for (const std::int64_t bytes : chunk_bytes_) travelling.from_ranks.push_back(bytes / unit);
  return travelling;
}

}  // namespace deft
