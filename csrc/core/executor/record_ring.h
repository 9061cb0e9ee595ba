// The latest finished messages; older ones are overwritten, so callers need not collect them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deft {

// One finished message, for cost fits and traces.
struct MessageRecord {
  std::int32_t task = 0;
  std::int64_t step = 0;   // absolute step of the window in which it could leave first
  std::int64_t bytes = 0;  // as they travelled
  std::int64_t ready_us = 0;
  std::int64_t sent_us = 0;
  std::int64_t done_us = 0;
};

class RecordRing {
 public:
  static constexpr std::size_t kCapacity = 4096;

  RecordRing();
  void push(const MessageRecord& record);
  // Oldest first; empties the ring.
  [[nodiscard]] std::vector<MessageRecord> take();

 private:
  std::vector<MessageRecord> records_;
  std::size_t oldest_ = 0;  // once the ring is full
};

}  // namespace deft
