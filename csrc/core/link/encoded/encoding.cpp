#include "core/link/encoded/encoding.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/errors.h"

namespace deft {

namespace {

// So that a chunk has whole blocks, but for the last of a range.
std::int64_t cut_near(std::int64_t place, wire::Format format, std::int64_t begin) {
  return place - (place - begin) % wire::block_elements(format);
}

}  // namespace

Encoding::Encoding(wire::Format format, std::int64_t elements, const std::vector<ValueRange>& raw,
                   std::int32_t owners, std::int32_t rank)
    : elements_(elements), rank_(rank) {
  if (owners < 1 || rank < 0 || rank >= owners) {
    throw WireError("an encoding for rank " + std::to_string(rank) + " of " +
                    std::to_string(owners) + " owners; expected 0 <= rank < owners");
  }
  std::int64_t place = 0;
  std::vector<Stretch> stretches;
  for (const ValueRange& range : raw) {
    const std::int64_t end = range.begin + range.elements;
    if (range.begin < place || range.elements < 0 || end > elements) {
      throw WireError("raw values " + std::to_string(range.begin) + " .. " + std::to_string(end) +
                      " of a message of " + std::to_string(elements) +
                      "; expected ranges within it, in ascending order");
    }
    stretches.push_back({format, place, range.begin});
    stretches.push_back({wire::Format::kF32, range.begin, end});
    place = end;
  }
  stretches.push_back({format, place, elements});
  cut(stretches, owners);
}

std::shared_ptr<Encoding> Encoding::whole(std::int64_t elements,
                                          const std::vector<ValueRange>& raw) {
  // Any format that has rests will do: nothing is encoded in it.
  auto encoding = std::make_shared<Encoding>(wire::Format::kF16, elements, raw);
  encoding->always_whole_ = true;
  return encoding;
}

void Encoding::cut(const std::vector<Stretch>& stretches, std::int32_t owners) {
  chunks_.resize(static_cast<std::size_t>(owners));
  std::size_t owner = 0;
  for (const Stretch& stretch : stretches) {
    std::int64_t begin = stretch.begin;
    while (begin < stretch.end) {
      const bool last = owner + 1 == chunks_.size();
      const std::int64_t share_end =
          last ? elements_ : elements_ * static_cast<std::int64_t>(owner + 1) / owners;
      const std::int64_t end =
          share_end >= stretch.end
              ? stretch.end
              : std::max(begin, cut_near(share_end, stretch.format, stretch.begin));
      chunks_[owner].parts.add(stretch.format, begin, end);
      if (end < stretch.end) ++owner;
      begin = end;
    }
  }
  std::int64_t rests = 0;
  for (Chunk& chunk : chunks_) {
    chunk.offset_bytes = bytes_;
    chunk.rest = rests;
    bytes_ += chunk.parts.bytes();
    rests += chunk.parts.rests();
  }
  rest_.resize(static_cast<std::size_t>(rests));
  if (owners > 1) {
    const Parts& own = chunks_[static_cast<std::size_t>(rank_)].parts;
    sum_rest_.resize(static_cast<std::size_t>(own.rests()));
  }
}

std::vector<std::int64_t> Encoding::chunk_bytes() const {
  std::vector<std::int64_t> bytes;
  bytes.reserve(chunks_.size());
  for (const Chunk& chunk : chunks_) bytes.push_back(chunk.parts.bytes());
  return bytes;
}

std::vector<float> Encoding::with_rests(const float* values, float factor) {
  const std::lock_guard lock(rests_mutex_);
  std::vector<float> left = rest_;
  float* const own = left.data() + sum_rest_begin();
  for (std::size_t i = 0; i < sum_rest_.size(); ++i) own[i] += sum_rest_[i] / factor;
  std::vector<float> sums(values, values + elements_);
  for (const Chunk& chunk : chunks_) chunk.parts.add_rests(left.data() + chunk.rest, sums.data());
  if (!std::all_of(sums.begin(), sums.end(), [](float sum) { return std::isfinite(sum); })) {
    return {values, values + elements_};
  }
  std::fill(rest_.begin(), rest_.end(), 0.0F);
  std::fill(sum_rest_.begin(), sum_rest_.end(), 0.0F);
  spent_.store(always_whole_, std::memory_order_release);
  return sums;
}

void Encoding::encode(const float* values, std::byte* message) {
  Squares squares;
  for (const Chunk& chunk : chunks_) {
    float* const rests = rest_.data() + chunk.rest;
    chunk.parts.encode(codec_, values, rests, message + chunk.offset_bytes);
    const Squares more = chunk.parts.squares(values, rests);
    squares.values += more.values;
    squares.rests += more.rests;
  }
  const bool known = std::isfinite(squares.values) && squares.values > 0.0;
  error_.store(known ? std::sqrt(squares.rests / squares.values) : -1.0, std::memory_order_relaxed);
}

void Encoding::sum(std::span<const std::byte* const> messages, float factor, float* out) const {
  std::vector<const std::byte*> places(messages.size());
  for (const Chunk& chunk : chunks_) {
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = messages[i] + chunk.offset_bytes;
    chunk.parts.sum(codec_, places, factor, out);
  }
}

void Encoding::sum_own(std::byte* chunks, float factor, float* values) {
  const Parts& own = chunks_[static_cast<std::size_t>(rank_)].parts;
  std::vector<const std::byte*> places(chunks_.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = chunks + static_cast<std::int64_t>(i) * own.bytes();
  }
  own.sum(codec_, places, factor, values);
  own.encode(codec_, values, sum_rest_.data(), chunks);
}

}  // namespace deft
