#include "wire/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "wire/wire_support.h"

namespace deft::wire {
namespace {

const Codec& reference() {
  static const Codec codec(Kind::kReference);
  return codec;
}

// Every kind makes the reference's bytes, rests and values of these.
void expect_equal(Format format, const Floats& values, const Floats& rest) {
  Floats reference_rest = rest;
  const Bytes with_rest = encoded(reference(), format, values, &reference_rest);
  const Bytes without = encoded(reference(), format, values);
  const Floats out = decoded(reference(), format, with_rest, values.size());
  Floats reference_sum = values;
  reference().decode_add(format, with_rest.data(), static_cast<std::int64_t>(values.size()),
                         reference_sum.data());
  for (const Kind kind : kinds_here()) {
    const Codec codec(kind);
    const std::string what = std::string(name_of(kind)) + ", " + name_of(format) + ", " +
                             std::to_string(values.size()) + " values";
    Floats own_rest = rest;
    EXPECT_EQ(encoded(codec, format, values, &own_rest), with_rest) << what;
    EXPECT_TRUE(same(own_rest, reference_rest)) << what;
    EXPECT_EQ(encoded(codec, format, values), without) << what;
    EXPECT_TRUE(same(decoded(codec, format, with_rest, values.size()), out)) << what;
    Floats sum = values;
    codec.decode_add(format, with_rest.data(), static_cast<std::int64_t>(values.size()),
                     sum.data());
    EXPECT_TRUE(same(sum, reference_sum)) << what;
  }
}

TEST(Codec, AllKindsAgreeOnEverySize) {
  for (std::size_t elements = 0; elements < 600; ++elements) {
    const auto seed = static_cast<unsigned>(elements);
    for (const Format format : kAllFormats) {
      expect_equal(format, gaussian(elements, seed), gaussian(elements, seed + 1, 0.01F));
    }
  }
}

TEST(Codec, AllKindsAgreeOnValuesOfAnySize) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    for (const Format format : kAllFormats) {
      expect_equal(format, any_finite(1000, seed), any_finite(1000, seed + 1000));
      // Blocks of one size each, as sizes of all sorts in one block leave only the largest.
      Floats values = gaussian(1000, seed);
      Floats rest = gaussian(1000, seed + 1);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const int power = static_cast<int>(seed) * 7 - 149 + static_cast<int>(i / 64);
        values[i] = std::ldexp(values[i], power);
        rest[i] = std::ldexp(rest[i], power - 3);
      }
      expect_equal(format, values, rest);
    }
  }
}

TEST(Codec, AllKindsAgreeOnWhatIsSpecial) {
  const Floats special = {
      0.0F,     -0.0F,  kInfinity, -kInfinity,    std::nanf(""), kMax,
      -kMax,    1e-45F, -1e-40F,   kLeastNormal,  65504.0F,      65519.9F,
      65520.0F, 1e30F,  5.9e-8F,   3.3961775e38F, 448.0F,        from_raw(0x7F800001U)};
  for (const Format format : kAllFormats) {
    expect_equal(format, special, Floats(special.size()));
    for (std::size_t one = 0; one < special.size(); ++one) {
      for (const std::size_t elements : {1, 63, 64, 300, 1024}) {
        Floats values = gaussian(elements, 3);
        values[elements / 2] = special[one];
        expect_equal(format, values, gaussian(elements, 4, 0.1F));
        expect_equal(format, Floats(elements, special[one]), Floats(elements, special[one]));
      }
    }
  }
}

TEST(Codec, AllKindsAgreeOnAnyCodes) {
  std::mt19937 generator(11);
  for (const Format format : kAllFormats) {
    constexpr std::size_t kElements = 777;
    Bytes bytes(static_cast<std::size_t>(encoded_bytes(format, kElements)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
    const Floats expected = decoded(reference(), format, bytes, kElements);
    for (const Kind kind : kinds_here()) {
      EXPECT_TRUE(same(decoded(Codec(kind), format, bytes, kElements), expected))
          << name_of(kind) << ", " << name_of(format);
    }
  }
}

TEST(Codec, BuffersMayLieAnywhere) {
  const Floats values = gaussian(701, 8);
  for (const Kind kind : kinds_here()) {
    for (const Format format : kAllFormats) {
      const Codec codec(kind);
      const Bytes expected = encoded(codec, format, values);
      for (std::size_t shift = 1; shift < 4; ++shift) {
        Bytes bytes(expected.size() + shift);
        Floats moved(values.size() + shift);
        std::copy(values.begin(), values.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
        codec.encode(format, moved.data() + shift, nullptr, 701, bytes.data() + shift);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                               bytes.begin() + static_cast<std::ptrdiff_t>(shift)));
        codec.decode(format, bytes.data() + shift, 701, moved.data() + shift);
        EXPECT_TRUE(same(Floats(moved.begin() + static_cast<std::ptrdiff_t>(shift), moved.end()),
                         decoded(codec, format, expected, 701)));
      }
    }
  }
}

TEST(Codec, BytesDoNotDependOnTheThreadsFlags) {
  Floats values = any_finite(5000, 2);
  for (std::size_t i = 0; i < 2000; ++i) values[i] = from_raw(raw(values[i]) & 0x80FFFFFFU);
  const Floats rest = gaussian(5000, 3, 1e-39F);
  for (const Kind kind : kinds_here()) {
    for (const Format format : kAllFormats) {
      const Codec codec(kind);
      Floats plain_rest = rest;
      const Bytes plain = encoded(codec, format, values, &plain_rest);
      std::fesetround(FE_UPWARD);
#ifdef __x86_64__
      _mm_setcsr(_mm_getcsr() | 0x8040U);  // flush denormals, and read them as zeros
#endif
      Floats own_rest = rest;
      const Bytes own = encoded(codec, format, values, &own_rest);
      const Floats out = decoded(codec, format, own, values.size());
#ifdef __x86_64__
      EXPECT_EQ(_mm_getcsr() & 0xE040U, 0xC040U);  // as it was: upward, and flushing
      _mm_setcsr(0x1F80U);
#endif
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(own, plain) << name_of(kind) << ", " << name_of(format);
      EXPECT_TRUE(same(own_rest, plain_rest)) << name_of(kind) << ", " << name_of(format);
      EXPECT_TRUE(same(out, decoded(codec, format, plain, values.size())));
    }
  }
}

}  // namespace
}  // namespace deft::wire
