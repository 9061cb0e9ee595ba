#include "core/link/encoding.h"

#include <string>

#include "core/errors.h"

namespace deft {

Encoding::Encoding(wire::Format format, std::int64_t elements, const std::vector<ValueRange>& raw)
    : elements_(elements) {
  std::int64_t place = 0;
  for (const ValueRange& range : raw) {
    const std::int64_t end = range.begin + range.elements;
    if (range.begin < place || range.elements < 0 || end > elements) {
      throw WireError("raw values " + std::to_string(range.begin) + " .. " + std::to_string(end) +
                      " of a message of " + std::to_string(elements) +
                      "; expected ranges within it, in ascending order");
    }
    add_part(format, place, range.begin);
    add_part(wire::Format::kF32, range.begin, end);
    place = end;
  }
  add_part(format, place, elements);
}

void Encoding::add_part(wire::Format format, std::int64_t begin, std::int64_t end) {
  if (begin == end) return;
  Part part{format, {begin, end - begin}, bytes_, -1};
  if (format != wire::Format::kF32) {
    part.rest = static_cast<std::int64_t>(rest_.size());
    rest_.resize(rest_.size() + static_cast<std::size_t>(end - begin));
  }
  bytes_ += wire::encoded_bytes(format, end - begin);
  parts_.push_back(part);
}

void Encoding::encode(const float* values, std::byte* message) {
  for (const Part& part : parts_) {
    float* const rest = part.rest < 0 ? nullptr : rest_.data() + part.rest;
    codec_.encode(part.format, values + part.values.begin, rest, part.values.elements,
                  message + part.offset_bytes);
  }
}

void Encoding::sum(const std::byte* messages, std::int32_t ranks, float factor, float* out) const {
  for (const Part& part : parts_) {
    float* const sums = out + part.values.begin;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const std::byte* const from = messages + rank * bytes_ + part.offset_bytes;
      if (rank == 0) {
        codec_.decode(part.format, from, part.values.elements, sums);
      } else {
        codec_.decode_add(part.format, from, part.values.elements, sums);
      }
    }
    if (factor == 1.0F) continue;
    for (std::int64_t i = 0; i < part.values.elements; ++i) sums[i] *= factor;
  }
}

}  // namespace deft
