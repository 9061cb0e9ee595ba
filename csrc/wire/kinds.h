// The implementations of the codec, by the instructions that they need. All make the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "wire/format.h"

namespace deft::wire {

// kReference is slow and plain to read; the others are held to it.
enum class Kind : std::uint8_t { kReference, kPortable, kAvx2, kAvx512 };

[[nodiscard]] const char* name_of(Kind kind);
[[nodiscard]] const std::vector<Kind>& kinds_here();  // that this processor can run, best last
[[nodiscard]] Kind kind_of(std::string_view name);    // "auto" is the best; throws WireError

// What an implementation does for one format. `rest` may be null.
struct FormatKernels {
  void (*encode)(const float* values, float* rest, std::int64_t elements, std::byte* out);
  void (*decode)(const std::byte* in, std::int64_t elements, float* out);
  void (*decode_add)(const std::byte* in, std::int64_t elements, float* out);
};
using Kernels = std::array<FormatKernels, kFormats>;  // by Format

[[nodiscard]] const Kernels& reference_kernels();
[[nodiscard]] const Kernels& portable_kernels();
[[nodiscard]] const Kernels& avx2_kernels();    // portable where the compiler knows none
[[nodiscard]] const Kernels& avx512_kernels();  // portable where the compiler knows none

}  // namespace deft::wire
