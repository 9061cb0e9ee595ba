// The definition of every format, one value after the other; slow, and nothing shared with the fast
// kernels but where scales and codes lie. They are held to it bit for bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "wire/kinds.h"
#include "wire/layout.h"

namespace deft::wire {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A float of few bits: of fraction, and the exponents of its least normal and its largest numbers.
struct Shape {
  unsigned fraction;
  int least;
  double largest;

  // Of the step between numbers with this exponent.
  [[nodiscard]] int step(int exponent) const {
    return std::max(exponent, least) - static_cast<int>(fraction);
  }
};
constexpr Shape kE4m3 = {3U, -6, 448.0};
constexpr Shape kF16 = {10U, -14, 65504.0};
constexpr Shape kBf16 = {7U, -126, 0x1.FEp127};

// To the nearest number of the shape, if it went on above its largest one.
double nearest(double value, const Shape& shape) {
  if (value == 0.0) return value;
  const int step = shape.step(std::ilogb(value));
  return std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
}

// The code of a number of the shape: sign, exponent, fraction.
std::uint32_t code_of(double number, const Shape& shape, unsigned bits) {
  const std::uint32_t sign = std::signbit(number) ? 1U << (bits - 1U) : 0U;
  const double size = std::fabs(number);
  if (size == 0.0) return sign;
  const int exponent = std::max(std::ilogb(size), shape.least);
  const auto steps = static_cast<std::uint32_t>(std::ldexp(size, -shape.step(exponent)));
  // A normal number has 2^fraction in its steps, which counts the exponent up by one.
  return sign | ((static_cast<std::uint32_t>(exponent - shape.least) << shape.fraction) + steps);
}

double number_of(std::uint32_t code, const Shape& shape, unsigned bits) {
  const std::uint32_t size = code & ((1U << (bits - 1U)) - 1U);
  const std::uint32_t whole = 1U << shape.fraction;
  const int exponent = static_cast<int>(size >> shape.fraction);
  const std::uint32_t steps = (size & (whole - 1U)) + (exponent > 0 ? whole : 0U);
  const int power = shape.step(std::max(exponent, 1) - 1 + shape.least);
  const double number = std::ldexp(static_cast<double>(steps), power);
  return code >> (bits - 1U) != 0 ? -number : number;
}

// --- values that stand for themselves ----------------------------------------------------------
std::uint32_t encode_half(float value, const Shape& shape, bool saturate) {
  const std::uint32_t infinite = shape.fraction == 10U ? 0x7C00U : 0x7F80U;
  const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
  if (std::isnan(value)) return 0x7FFFU;
  const double rounded = nearest(static_cast<double>(value), shape);
  if (std::isinf(value) || (std::fabs(rounded) > shape.largest && !saturate)) {
    return sign | infinite;
  }
  if (std::fabs(rounded) > shape.largest) return sign | (infinite - 1U);
  return code_of(rounded, shape, 16U);
}

float decode_half(std::uint32_t code, const Shape& shape) {
  const std::uint32_t infinite = shape.fraction == 10U ? 0x7C00U : 0x7F80U;
  const std::uint32_t size = code & 0x7FFFU;
  if (size > infinite) return kNan;
  if (size == infinite) return (code & 0x8000U) != 0 ? -kInfinity : kInfinity;
  return static_cast<float>(number_of(code, shape, 16U));
}

struct F32 {
  static constexpr std::size_t kBytes = 4;
  static std::uint32_t encode(float value, bool /*saturate*/) {
    const float sent = std::isnan(value) ? kNan : value;  // all NaN have the same bits
    std::uint32_t code = 0;
    std::memcpy(&code, &sent, sizeof code);
    return code;
  }
  static float decode(std::uint32_t code) {
    float value = 0.0F;
    std::memcpy(&value, &code, sizeof value);
    return value;
  }
};

struct F16 {
  static constexpr std::size_t kBytes = 2;
  static std::uint32_t encode(float v, bool saturate) { return encode_half(v, kF16, saturate); }
  static float decode(std::uint32_t code) { return decode_half(code, kF16); }
};

struct Bf16 {
  static constexpr std::size_t kBytes = 2;
  static std::uint32_t encode(float v, bool saturate) { return encode_half(v, kBf16, saturate); }
  static float decode(std::uint32_t code) { return decode_half(code, kBf16); }
};

// Little-endian, as the message is.
template <class One>
struct Plain {
  static void encode(const float* values, float* rest, std::int64_t elements, std::byte* out) {
    for (std::int64_t i = 0; i < elements; ++i) {
      const float sum = rest == nullptr ? values[i] : values[i] + rest[i];
      const std::uint32_t code = One::encode(sum, rest != nullptr);
      for (std::size_t byte = 0; byte < One::kBytes; ++byte) {
        out[static_cast<std::size_t>(i) * One::kBytes + byte] =
            static_cast<std::byte>(code >> (8 * byte));
      }
      if (rest != nullptr && std::isfinite(sum)) rest[i] = sum - One::decode(code);
    }
    const std::int64_t bytes = static_cast<std::int64_t>(One::kBytes) * elements;
    for (std::int64_t i = bytes; i < padded(bytes); ++i) out[i] = std::byte{0};
  }

  static float value(const std::byte* in, std::int64_t i) {
    std::uint32_t code = 0;
    for (std::size_t byte = 0; byte < One::kBytes; ++byte) {
      const auto part =
          static_cast<std::uint32_t>(in[static_cast<std::size_t>(i) * One::kBytes + byte]);
      code |= part << (8 * byte);
    }
    return One::decode(code);
  }
  static void decode(const std::byte* in, std::int64_t elements, float* out) {
    for (std::int64_t i = 0; i < elements; ++i) out[i] = value(in, i);
  }
  static void decode_add(const std::byte* in, std::int64_t elements, float* out) {
    for (std::int64_t i = 0; i < elements; ++i) out[i] = out[i] + value(in, i);
  }
};

// --- blocks with a scale -----------------------------------------------------------------------
struct E4m3 {
  static constexpr float kTop = 448.0F;
  static constexpr std::int64_t kBlock = kLongBlock;
  static std::uint32_t encode(float scaled) {
    return code_of(nearest(static_cast<double>(scaled), kE4m3), kE4m3, 8U);
  }
  static float decode(std::uint32_t code) {
    return (code & 0x7FU) == 0x7FU ? kNan : static_cast<float>(number_of(code, kE4m3, 8U));
  }
};

template <int Most, std::int64_t Elements>
struct Integer {
  static constexpr float kTop = static_cast<float>(Most);
  static constexpr std::int64_t kBlock = Elements;
  static std::uint32_t encode(float scaled) {
    return static_cast<std::uint32_t>(static_cast<int>(std::nearbyint(scaled)));
  }
  static float decode(std::uint32_t code) {
    constexpr int kRange = Most == 7 ? 16 : 256;
    const int number = static_cast<int>(code);
    return static_cast<float>(number >= kRange / 2 ? number - kRange : number);
  }
};

using Int8 = Integer<127, kLongBlock>;
using Int4 = Integer<7, kShortBlock>;

template <class One>
struct Blocks {
  static constexpr bool kNibbles = One::kBlock == kShortBlock;

  // The place of a code: its byte, and whether it is the high nibble of it.
  static std::int64_t byte_of(std::int64_t elements, std::int64_t i) {
    const std::int64_t codes = scale_bytes(elements, One::kBlock);
    if (!kNibbles) return codes + i;
    return codes + i / kShortBlock * kHalfBlock + i % kHalfBlock;
  }
  static bool high(std::int64_t i) { return kNibbles && i % kShortBlock >= kHalfBlock; }

  static void put(std::byte* out, std::int64_t elements, std::int64_t i, std::uint32_t code) {
    std::byte& at = out[byte_of(elements, i)];
    if (!kNibbles) {
      at = static_cast<std::byte>(code);
    } else if (high(i)) {
      at |= static_cast<std::byte>((code & 0xFU) << 4U);
    } else {
      at = static_cast<std::byte>(code & 0xFU);
    }
  }

  static void encode_block(const float* values, float* rest, std::int64_t begin, std::int64_t end,
                           std::int64_t elements, std::byte* out) {
    float largest = 0.0F;
    bool finite = true;
    for (std::int64_t i = begin; i < end; ++i) {
      const float sum = rest == nullptr ? values[i] : values[i] + rest[i];
      finite = finite && std::isfinite(sum);
      largest = std::max(largest, std::fabs(sum));
    }
    float scale = largest / One::kTop;
    float inverse = One::kTop / largest;
    if (!finite) {
      scale = kNan;
    } else if (scale < std::numeric_limits<float>::min()) {
      scale = inverse = 0.0F;
    } else if (std::isinf(scale * One::kTop)) {
      scale = std::nextafter(scale, 0.0F);
    }
    std::memcpy(out + begin / One::kBlock * 4, &scale, sizeof scale);
    for (std::int64_t i = begin; i < end; ++i) {
      const float sum = rest == nullptr ? values[i] : values[i] + rest[i];
      const std::uint32_t code = finite ? One::encode(sum * inverse) : 0U;
      put(out, elements, i, code);
      if (rest != nullptr && finite) rest[i] = sum - value(out, elements, i);
    }
  }

  static void encode(const float* values, float* rest, std::int64_t elements, std::byte* out) {
    const std::int64_t bytes = encoded_bytes(kNibbles ? Format::kInt4 : Format::kInt8, elements);
    for (std::int64_t i = 0; i < bytes; ++i) out[i] = std::byte{0};
    for (std::int64_t begin = 0; begin < elements; begin += One::kBlock) {
      encode_block(values, rest, begin, std::min(begin + One::kBlock, elements), elements, out);
    }
  }

  static float value(const std::byte* in, std::int64_t elements, std::int64_t i) {
    float scale = 0.0F;
    std::memcpy(&scale, in + i / One::kBlock * 4, sizeof scale);
    auto code = static_cast<std::uint32_t>(in[byte_of(elements, i)]);
    if (kNibbles) code = high(i) ? code >> 4U : code & 0xFU;
    return One::decode(code) * scale;
  }
  static void decode(const std::byte* in, std::int64_t elements, float* out) {
    for (std::int64_t i = 0; i < elements; ++i) out[i] = value(in, elements, i);
  }
  static void decode_add(const std::byte* in, std::int64_t elements, float* out) {
    for (std::int64_t i = 0; i < elements; ++i) out[i] = out[i] + value(in, elements, i);
  }
};

template <class Loops>
constexpr FormatKernels kOf = {&Loops::encode, &Loops::decode, &Loops::decode_add};
constexpr Kernels kTable = {kOf<Plain<F32>>,   kOf<Plain<F16>>,   kOf<Plain<Bf16>>,
                            kOf<Blocks<E4m3>>, kOf<Blocks<Int8>>, kOf<Blocks<Int4>>};

}  // namespace

const Kernels& reference_kernels() { return kTable; }

}  // namespace deft::wire
