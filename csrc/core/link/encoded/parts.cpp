#include "core/link/encoded/parts.h"

#include <algorithm>

namespace deft {

void Parts::add(wire::Format format, std::int64_t begin, std::int64_t end) {
  if (begin == end) return;
  Part part{format, begin, end - begin, bytes_, -1};
  if (format != wire::Format::kF32) {
    part.rest = rests_;
    rests_ += part.elements;
  }
  bytes_ += wire::encoded_bytes(format, part.elements);
  parts_.push_back(part);
}

void Parts::encode(const wire::Codec& codec, const float* values, float* rests,
                   std::byte* message) const {
  for (const Part& part : parts_) {
    codec.encode(part.format, values + part.begin, part.rest < 0 ? nullptr : rests + part.rest,
                 part.elements, message + part.offset_bytes);
  }
}

void Parts::add_rests(const float* rests, float* values) const {
  for (const Part& part : parts_) {
    if (part.rest < 0) continue;
    for (std::int64_t i = 0; i < part.elements; ++i) values[part.begin + i] += rests[part.rest + i];
  }
}

Squares Parts::squares(const float* values, const float* rests) const {
  constexpr std::int64_t kSampled = 4096;
  Squares found;
  for (const Part& part : parts_) {
    if (part.rest < 0) continue;
    const std::int64_t stride = std::max<std::int64_t>(1, part.elements / kSampled);
    double of_values = 0.0;
    double of_rests = 0.0;
    for (std::int64_t i = 0; i < part.elements; i += stride) {
      const double value = values[part.begin + i];
      const double rest = rests[part.rest + i];
      of_values += value * value;
      of_rests += rest * rest;
    }
    found.values += of_values * static_cast<double>(stride);
    found.rests += of_rests * static_cast<double>(stride);
  }
  return found;
}

void Parts::sum(const wire::Codec& codec, std::span<const std::byte* const> messages, float factor,
                float* out) const {
  for (const Part& part : parts_) {
    float* const sums = out + part.begin;
    codec.decode(part.format, messages.front() + part.offset_bytes, part.elements, sums);
    for (const std::byte* const message : messages.subspan(1)) {
      codec.decode_add(part.format, message + part.offset_bytes, part.elements, sums);
    }
    if (factor == 1.0F) continue;
    for (std::int64_t i = 0; i < part.elements; ++i) sums[i] *= factor;
  }
}

}  // namespace deft
