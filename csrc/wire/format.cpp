#include "wire/format.h"

#include <string>

#include "core/errors.h"
#include "wire/layout.h"

namespace deft::wire {

namespace {

constexpr std::array<const char*, kFormats> kNames = {"f32", "f16", "bf16", "e4m3", "int8", "int4"};

}  // namespace

const char* name_of(Format format) { return kNames[static_cast<std::size_t>(format)]; }

Format format_of(std::string_view name) {
  for (const Format format : kAllFormats) {
    if (name == name_of(format)) return format;
  }
  std::string known;
  for (const char* each : kNames) known += (known.empty() ? "" : ", ") + std::string(each);
  throw WireError("unknown wire format '" + std::string(name) + "', expected one of " + known);
}

std::int64_t block_elements(Format format) {
  switch (format) {
    case Format::kE4m3:
    case Format::kInt8:
      return kLongBlock;
    case Format::kInt4:
      return kShortBlock;
    default:
      return 1;
  }
}

std::int64_t encoded_bytes(Format format, std::int64_t elements) {
  if (elements < 0) {
    throw WireError("a message of " + std::to_string(elements) + " values, expected 0 or more");
  }
  switch (format) {
    case Format::kF32:
      return 4 * elements;
    case Format::kF16:
    case Format::kBf16:
      return padded(2 * elements);
    default: {
      const std::int64_t block = block_elements(format);
      const std::int64_t codes =
          format == Format::kInt4 ? int4_code_bytes(elements) : byte_code_bytes(elements);
      return padded(scale_bytes(elements, block) + codes);
    }
  }
}

}  // namespace deft::wire
