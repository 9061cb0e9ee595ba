#include "core/plan/bucket_table.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/plan/plan.h"

namespace deft {
namespace {

template <typename Range>
std::vector<std::int32_t> by_position(const std::vector<Range>& ranges) {
  std::vector<std::int32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t left, std::int32_t right) {
    const Range& a = ranges[static_cast<std::size_t>(left)];
    const Range& b = ranges[static_cast<std::size_t>(right)];
    return std::tie(a.arena, a.begin) < std::tie(b.arena, b.begin);
  });
  return order;
}

using Lists = std::vector<std::vector<std::int32_t>>;

template <typename Rows>
void flatten(const Lists& lists, Rows& rows) {
  rows.offsets.reserve(lists.size() + 1);
  rows.offsets.push_back(0);
  for (const auto& list : lists) {
    rows.values.insert(rows.values.end(), list.begin(), list.end());
    rows.offsets.push_back(rows.values.size());
  }
}

}  // namespace

BucketTable::BucketTable(const Plan& plan) {
  const std::vector<std::int32_t> slots = by_position(plan.slots);
  const std::vector<std::int32_t> buckets = by_position(plan.buckets);
  Lists of_slot(plan.slots.size());
  Lists of_bucket(plan.buckets.size());
  std::size_t first = 0;  // the first bucket that may still overlap: both lists ascend
  for (const std::int32_t slot : slots) {
    const SlotSpec& range = plan.slots[static_cast<std::size_t>(slot)];
    const auto is_before = [&](const BucketSpec& bucket) {
      return std::tie(bucket.arena, bucket.end) <= std::tie(range.arena, range.begin);
    };
    while (first < buckets.size() &&
           is_before(plan.buckets[static_cast<std::size_t>(buckets[first])])) {
      ++first;
    }
    for (std::size_t at = first; at < buckets.size(); ++at) {
      const BucketSpec& bucket = plan.buckets[static_cast<std::size_t>(buckets[at])];
      if (bucket.arena != range.arena || bucket.begin >= range.end) break;
      of_slot[static_cast<std::size_t>(slot)].push_back(buckets[at]);
      of_bucket[static_cast<std::size_t>(buckets[at])].push_back(slot);
    }
  }
  flatten(of_slot, buckets_);
  flatten(of_bucket, slots_);
}

}  // namespace deft
