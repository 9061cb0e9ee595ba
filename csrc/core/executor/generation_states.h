// Who owns each buffer of each bucket, and how far that generation has come.
//
// Instances of a bucket take its buffers in turn. An instance is past once a later one owns its
// buffer. So a past message or boundary differs from the current one in its number, not in its
// address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan/schedule.h"

namespace deft {

// kFailed is only reported, never stored: a failure stops all generations at once.
enum class Progress : std::uint8_t { kCollecting, kHeld, kInFlight, kReduced, kFailed };

struct GenerationState {
  std::int64_t number = -1;  // Schedule::number of the owner; -1: none yet
  Progress progress = Progress::kReduced;
  bool released = true;
  std::size_t tasks_done = 0;
  std::int64_t ready_us = 0;
  std::int64_t sent_us = 0;
};

class GenerationStates {
 public:
  GenerationStates(const Schedule& schedule, std::size_t buckets, std::int32_t buffers);

  // The state of the buffer that belongs to the instance, also when another one owns it now.
  [[nodiscard]] const GenerationState& at_buffer_of(Instance instance) const;
  // Null when the instance does not own its buffer (not begun, or past).
  [[nodiscard]] GenerationState* find(Instance instance);
  [[nodiscard]] const GenerationState* find(Instance instance) const;
  // The instance takes its buffer, which has to be released.
  void begin(Instance instance);
  // Reduced, or released long ago.
  [[nodiscard]] bool is_reduced(Instance instance) const;
  [[nodiscard]] bool is_released(Instance instance) const;

 private:
  [[nodiscard]] std::size_t place_of(Instance instance) const;

  const Schedule* schedule_;
  std::size_t buffers_;
  std::vector<GenerationState> states_;  // [bucket * buffers + buffer]
};

}  // namespace deft
