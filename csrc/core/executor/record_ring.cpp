#include "core/executor/record_ring.h"

#include <algorithm>

namespace deft {

RecordRing::RecordRing() { records_.reserve(kCapacity); }

void RecordRing::push(const MessageRecord& record) {
  if (records_.size() < kCapacity) {
    records_.push_back(record);
    return;
  }
  records_[oldest_] = record;
  oldest_ = (oldest_ + 1) % kCapacity;
}

std::vector<MessageRecord> RecordRing::take() {
  std::vector<MessageRecord> taken = records_;
  std::rotate(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(oldest_), taken.end());
  records_.clear();
  oldest_ = 0;
  return taken;
}

}  // namespace deft
