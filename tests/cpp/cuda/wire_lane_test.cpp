// Every thread of every span, played on the host, against the reference codec.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda/wire/lane.h"
#include "wire/wire_support.h"

namespace {

using namespace deft_cuda;
using deft::wire::Bytes;
using deft::wire::Codec;
using deft::wire::Floats;
using deft::wire::Format;

constexpr std::size_t kAligned = 16;

// Memory at so many bytes past a multiple of 16.
template <class T>
class Placed {
 public:
  Placed(const std::vector<T>& from, std::size_t shift_bytes)
      : memory_(from.size() * sizeof(T) + 2 * kAligned), size_(from.size()) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = reinterpret_cast<T*>(memory_.data() + (kAligned - address % kAligned) + shift_bytes);
    std::copy(from.begin(), from.end(), begin_);
  }
  T* data() { return begin_; }
  std::vector<T> values() const { return {begin_, begin_ + size_}; }

 private:
  std::vector<std::byte> memory_;
  std::size_t size_;
  T* begin_;
};

struct Result {
  Bytes message;
  Floats rest;
  Floats out;
  Floats sum;
};

template <class Lanes>
void encode(const EncodeJob& job) {
  for (std::int64_t span = 0; span * Lanes::kSpan < job.elements; ++span) {
    std::vector<Loaded> loaded;
    std::uint32_t largest = 0;
    for (int lane = 0; lane < Lanes::kLanes; ++lane) {
      loaded.push_back(load_values(job, span * Lanes::kSpan + 4 * lane, Lanes::kHalf));
      largest = std::max(largest, loaded.back().largest);
    }
    for (int lane = 0; lane < Lanes::kLanes; ++lane) {
      Lanes::finish(job, span, lane, loaded[static_cast<std::size_t>(lane)], largest);
    }
  }
}

template <class Lanes>
void decode(const DecodeJob& job) {
  for (std::int64_t span = 0; span * Lanes::kSpan < job.elements; ++span) {
    for (int lane = 0; lane < Lanes::kLanes; ++lane) Lanes::decode(job, span, lane);
  }
}

template <class Lanes>
Result played(Format format, const Floats& values, const Floats& rest, std::size_t shift) {
  const auto elements = static_cast<std::int64_t>(values.size());
  const bool vectors = shift == 0;
  Placed<float> own_values(values, shift);
  Placed<float> own_rest(rest, shift);
  const auto bytes = static_cast<std::size_t>(deft::wire::encoded_bytes(format, elements));
  Placed<std::byte> message(Bytes(bytes, std::byte{0xA5}), shift);
  auto* raw = reinterpret_cast<Byte*>(message.data());
  float* kept = rest.empty() && !values.empty() ? nullptr : own_rest.data();
  encode<Lanes>({own_values.data(), kept, raw, elements, vectors});
  Placed<float> out(Floats(values.size()), shift);
  decode<Lanes>({raw, out.data(), elements, vectors, false});
  Placed<float> sum(values, shift);
  decode<Lanes>({raw, sum.data(), elements, vectors, true});
  return {message.values(), own_rest.values(), out.values(), sum.values()};
}

Result played(Format format, const Floats& values, const Floats& rest, std::size_t shift) {
  switch (format) {
    case Format::kF32:
      return played<PlainLanes<wire::F32Codes>>(format, values, rest, shift);
    case Format::kF16:
      return played<PlainLanes<wire::F16Codes>>(format, values, rest, shift);
    case Format::kBf16:
      return played<PlainLanes<wire::Bf16Codes>>(format, values, rest, shift);
    case Format::kE4m3:
      return played<BlockLanes<wire::E4m3Codes>>(format, values, rest, shift);
    case Format::kInt8:
      return played<BlockLanes<wire::Int8Codes>>(format, values, rest, shift);
    default:
      return played<BlockLanes<wire::Int4Codes>>(format, values, rest, shift);
  }
}

void expect_equal(Format format, const Floats& values, const Floats& rest, std::size_t shift) {
  const Codec reference(deft::wire::Kind::kReference);
  Floats expected_rest = rest;
  const Bytes expected =
      deft::wire::encoded(reference, format, values, rest.empty() ? nullptr : &expected_rest);
  Floats expected_sum = values;
  reference.decode_add(format, expected.data(), static_cast<std::int64_t>(values.size()),
                       expected_sum.data());
  const Result result = played(format, values, rest, shift);
  const std::string what = std::string(name_of(format)) + ", " + std::to_string(values.size());
  EXPECT_EQ(result.message, expected) << what;
  EXPECT_TRUE(deft::wire::same(result.rest, expected_rest)) << what;
  EXPECT_TRUE(deft::wire::same(result.out, decoded(reference, format, expected, values.size())))
      << what;
  EXPECT_TRUE(deft::wire::same(result.sum, expected_sum)) << what;
}

TEST(WireLane, EverySizeIsAsTheReferenceHasIt) {
  for (std::size_t elements = 0; elements < 600; ++elements) {
    const auto seed = static_cast<unsigned>(elements);
    const Floats values = deft::wire::gaussian(elements, seed);
    for (const Format format : deft::wire::kAllFormats) {
      expect_equal(format, values, deft::wire::gaussian(elements, seed + 1, 0.01F), 0);
      expect_equal(format, values, {}, 0);
    }
  }
}

TEST(WireLane, BuffersNeedNotLieAtVectors) {
  for (const std::size_t elements : {1, 31, 33, 255, 511, 777}) {
    const Floats values = deft::wire::gaussian(elements, 4);
    for (const Format format : deft::wire::kAllFormats) {
      expect_equal(format, values, deft::wire::gaussian(elements, 5, 0.01F), 4);
      expect_equal(format, values, {}, 12);
    }
  }
}

TEST(WireLane, ValuesOfAnySizeAndNoneAtAll) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    Floats values = deft::wire::any_finite(1000, seed);
    for (const Format format : deft::wire::kAllFormats) {
      expect_equal(format, values, deft::wire::any_finite(1000, seed + 100), 0);
    }
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(values[i], -120);
    values[seed] = seed % 2 == 0 ? deft::wire::kInfinity : std::nanf("");
    for (const Format format : deft::wire::kAllFormats) {
      expect_equal(format, values, deft::wire::gaussian(1000, seed, 1e-38F), 0);
      expect_equal(format, values, {}, 0);
    }
  }
}

}  // namespace
