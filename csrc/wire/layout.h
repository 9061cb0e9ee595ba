// Where scales and codes lie in a message; also for the device.
#pragma once

#include <cstdint>

#include "cuda/both_sides.h"

namespace deft::wire {

constexpr std::int64_t kLongBlock = 256;   // of e4m3 and int8
constexpr std::int64_t kShortBlock = 64;   // of int4
constexpr std::int64_t kHalfBlock = 32;    // the values of a short block that lie in low nibbles
constexpr std::int64_t kAlignedBytes = 4;  // the length of a message is a multiple of it

DEFT_BOTH_SIDES constexpr std::int64_t padded(std::int64_t bytes) {
  return (bytes + kAlignedBytes - 1) / kAlignedBytes * kAlignedBytes;
}

DEFT_BOTH_SIDES constexpr std::int64_t blocks_of(std::int64_t elements, std::int64_t block) {
  return (elements + block - 1) / block;
}

DEFT_BOTH_SIDES constexpr std::int64_t scale_bytes(std::int64_t elements, std::int64_t block) {
  return 4 * blocks_of(elements, block);
}

DEFT_BOTH_SIDES constexpr std::int64_t byte_code_bytes(std::int64_t elements) { return elements; }

// Byte j of a block holds its values j (low nibble) and j + 32 (high nibble), so a last block of up
// to 32 values takes a byte for each, and one of more takes 32.
DEFT_BOTH_SIDES constexpr std::int64_t int4_code_bytes(std::int64_t elements) {
  const std::int64_t last = elements % kShortBlock;
  return elements / kShortBlock * kHalfBlock + (last < kHalfBlock ? last : kHalfBlock);
}

}  // namespace deft::wire
