#include "torch/libtorch.h"

#include "torch/gathering.h"

#include <utility>

namespace deft {

Gathering::Gathering(const BucketTable& table, std::size_t slots, std::size_t buckets)
    : table_(table), waiting_(slots) {
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    missing_.push_back(table.slots_of(static_cast<std::int32_t>(bucket)).size());
  }
}

std::vector<Held> Gathering::add(Held held) {
  const std::lock_guard lock(mutex_);
  const std::int32_t slot = held.slot;
  waiting_[static_cast<std::size_t>(slot)] = std::move(held);
  std::vector<Held> full;
  for (const std::int32_t bucket : table_.buckets_of(slot)) {
    std::size_t& missing = missing_[static_cast<std::size_t>(bucket)];
    if (--missing > 0) continue;
    const auto members = table_.slots_of(bucket);
    missing = members.size();
    for (const std::int32_t member : members) {
      auto& waiting = waiting_[static_cast<std::size_t>(member)];
      if (!waiting.has_value()) continue;  // packed with another bucket
      full.push_back(std::move(*waiting));
      waiting.reset();
    }
  }
  return full;
}

bool Gathering::holds(std::int32_t slot) const {
  const std::lock_guard lock(mutex_);
  return waiting_[static_cast<std::size_t>(slot)].has_value();
}

}  // namespace deft
