// Wire formats: what a message of so many values looks like.
//
// A block format sends blocks of values, each with one scale in float: first all scales, then all
// codes, then zeros up to a multiple of 4 bytes. docs/internals/wire-codec.md has the layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace deft::wire {

enum class Format : std::uint8_t { kF32, kF16, kBf16, kE4m3, kInt8, kInt4 };

constexpr std::size_t kFormats = 6;
constexpr std::array<Format, kFormats> kAllFormats = {Format::kF32,  Format::kF16,  Format::kBf16,
                                                      Format::kE4m3, Format::kInt8, Format::kInt4};

[[nodiscard]] const char* name_of(Format format);
[[nodiscard]] Format format_of(std::string_view name);  // throws WireError

// Of a block, which shares a scale; 1 where each value stands for itself.
[[nodiscard]] std::int64_t block_elements(Format format);
// Of a message of so many values. Throws WireError for less than none.
[[nodiscard]] std::int64_t encoded_bytes(Format format, std::int64_t elements);

}  // namespace deft::wire
