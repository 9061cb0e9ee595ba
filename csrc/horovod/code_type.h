// The type that Horovod takes the codes of a message for.
//
// Horovod fuses what waits side by side, and all of it arrives only with its last byte; but nothing
// of different types. Codes are bytes, whatever integers they are taken for, so messages of
// different fusion groups get different types, as far as there are any.
#pragma once

#include <cstdint>

#include "core/link/link.h"
#include "horovod/common/common.h"

namespace deft {

// Sums of narrow integers may be saturated by MPI, so there they are taken for wide ones.
enum class Sums : std::uint8_t { kAnyIntegers, kWideIntegers };

// Equal on all ranks, whatever part of a message is theirs. Of values it is their own type.
[[nodiscard]] horovod::common::DataType type_of(const Message& message, Sums sums);

}  // namespace deft
