// The one clock: monotonic, microseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace deft {

[[nodiscard]] inline std::int64_t steady_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace deft
