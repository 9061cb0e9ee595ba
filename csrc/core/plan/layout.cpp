// Rules on space: links, arenas, slots, buckets.
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "core/plan/bucket_table.h"
#include "core/plan/fusion_groups.h"
#include "core/plan/plan.h"
#include "core/plan/rules.h"

namespace deft {
namespace {

// Slots and buckets begin at multiples of it, and the header of a slot is as long: so no cut goes
// through a header.
constexpr std::int64_t kAlignBytes = 16;

template <typename Number>
std::string text(Number value) {
  return std::to_string(value);
}

template <typename Range>
std::string text_of_range(const Range& range) {
  return "[" + text(range.begin) + ", " + text(range.end) + ") of arena " + text(range.arena);
}

void check_links(const Plan& plan) {
  std::set<std::string> names;
  for (const LinkSpec& link : plan.links) {
    if (link.name.empty()) break_rule("every link has a name", "a link has an empty name");
    if (!names.insert(link.name).second) {
      break_rule("names of links are unique", "two links are named " + link.name);
    }
    if (link.credit_bytes < 0 || link.credit_messages < 0) {
      break_rule("a credit is 0 (unlimited) or positive",
                 "link " + link.name + " has a credit of " + text(link.credit_bytes) + " bytes, " +
                     text(link.credit_messages) + " messages");
    }
    if (!link.plan_order && (link.credit_bytes > 0 || link.credit_messages > 0)) {
      break_rule("a link with a finite credit keeps the order of the plan",
                 "link " + link.name + " has a finite credit and plan_order false");
    }
    if (!link.fusion && (link.credit_messages < 1 || link.credit_messages > kMostApart)) {
      break_rule("messages that must not be fused are few enough to be kept apart",
                 "link " + link.name + " forbids fusion with a credit of " +
                     text(link.credit_messages) + " messages, not 1 to " + text(kMostApart));
    }
  }
}

template <typename Range>
void check_range(const Plan& plan, const Range& range, const std::string& who) {
  if (range.arena < 0 || static_cast<std::size_t>(range.arena) >= plan.arenas.size()) {
    break_rule("references are in range",
               who + " names arena " + text(range.arena) + " of " + text(plan.arenas.size()));
  }
  const std::int64_t elements = plan.arenas[static_cast<std::size_t>(range.arena)].elements;
  if (range.begin < 0 || range.begin >= range.end || range.end > elements) {
    break_rule("a range is not empty and lies in its arena",
               who + " is " + text_of_range(range) + ", which has " + text(elements) + " elements");
  }
  const DType wire = plan.arenas[static_cast<std::size_t>(range.arena)].wire;
  if (range.begin * bytes_of(wire) % kAlignBytes != 0) {
    break_rule("slots and buckets begin at multiples of 16 bytes",
               who + " is " + text_of_range(range) + " with elements of " + text(bytes_of(wire)) +
                   " bytes");
  }
}

// Indices of the ranges of one arena, ascending.
template <typename Range>
std::vector<std::size_t> in_arena(const std::vector<Range>& ranges, std::size_t arena) {
  std::vector<std::size_t> order;
  for (std::size_t at = 0; at < ranges.size(); ++at) {
    if (static_cast<std::size_t>(ranges[at].arena) == arena) order.push_back(at);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return ranges[left].begin < ranges[right].begin;
  });
  return order;
}

void check_slots(const Plan& plan) {
  for (std::size_t at = 0; at < plan.slots.size(); ++at) {
    const SlotSpec& slot = plan.slots[at];
    check_range(plan, slot, "slot " + text(at));
    const DType wire = plan.arenas[static_cast<std::size_t>(slot.arena)].wire;
    if ((slot.end - slot.begin) * bytes_of(wire) < kAlignBytes) {
      break_rule("a slot has room for its header of 16 bytes",
                 "slot " + text(at) + " is " + text_of_range(slot));
    }
  }
  for (std::size_t arena = 0; arena < plan.arenas.size(); ++arena) {
    std::int64_t end = 0;
    for (const std::size_t at : in_arena(plan.slots, arena)) {
      if (plan.slots[at].begin < end) {
        break_rule("slots do not overlap",
                   "slot " + text(at) + ", " + text_of_range(plan.slots[at]) +
                       ", begins before its neighbour ends at " + text(end));
      }
      end = plan.slots[at].end;
    }
  }
}

void check_buckets(const Plan& plan) {
  for (std::size_t at = 0; at < plan.buckets.size(); ++at) {
    check_range(plan, plan.buckets[at], "bucket " + text(at));
  }
  const std::string rule = "the buckets of an arena tile it without gap or overlap";
  for (std::size_t arena = 0; arena < plan.arenas.size(); ++arena) {
    std::int64_t end = 0;
    for (const std::size_t at : in_arena(plan.buckets, arena)) {
      if (plan.buckets[at].begin != end) {
        break_rule(rule, "bucket " + text(at) + " is " + text_of_range(plan.buckets[at]) +
                             " where one that begins at " + text(end) + " was expected");
      }
      end = plan.buckets[at].end;
    }
    if (end != plan.arenas[arena].elements) {
      break_rule(rule, "the buckets of arena " + text(arena) + " end at " + text(end) + " of " +
                           text(plan.arenas[arena].elements) + " elements");
    }
  }
  const BucketTable table(plan);
  for (std::size_t at = 0; at < plan.buckets.size(); ++at) {
    if (table.slots_of(static_cast<std::int32_t>(at)).empty()) {
      break_rule("every bucket carries a part of a slot (else nothing ever makes it ready)",
                 "bucket " + text(at) + ", " + text_of_range(plan.buckets[at]) + ", carries none");
    }
  }
}

}  // namespace

void check_layout(const Plan& plan) {
  if (plan.period < 1 || plan.buffers < 1) {
    break_rule("period and buffers are at least 1",
               "period is " + text(plan.period) + ", buffers is " + text(plan.buffers));
  }
  check_links(plan);
  for (std::size_t at = 0; at < plan.arenas.size(); ++at) {
    if (plan.arenas[at].elements < 0) {
      break_rule("an arena has no negative size",
                 "arena " + text(at) + " has " + text(plan.arenas[at].elements) + " elements");
    }
  }
  check_slots(plan);
  check_buckets(plan);
}

}  // namespace deft
