// The Plan as the executor reads it: plain data, made by the solver, identical on every rank.
//
// A plan is cyclic with a period of K steps. Everything inside it is numbered relative to the
// cycle: step 0 .. K-1 for the last gradient that a generation carries. Its first one may lie
// before step 0 (in the cycle before; the first cycle of all then carries fewer), windows and
// apply steps may lie beyond K-1 (they then fall into the next cycle).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/types.h"

namespace deft {

// One path over which messages travel. A credit of 0 means unlimited.
struct LinkSpec {
  std::string name;
  std::int64_t credit_bytes = 0;
  std::int64_t credit_messages = 0;
  // true: messages leave in the order of the plan, whatever is ready first (needed as soon as a
  // credit is finite: two ranks that pick different messages would wait for each other for ever).
  // false: messages leave as they become ready; only with unlimited credits.
  bool plan_order = true;
  // false: messages that wait side by side are not made into one, so each arrives by itself.
  bool fusion = true;
};

// One flat buffer per (parameter dtype, wire dtype, device); slots and buckets are ranges of it.
struct ArenaSpec {
  DType wire = DType::kFloat32;
  std::int64_t elements = 0;
};

// Where one parameter's gradient lives: a header of 16 bytes, then its elements.
struct SlotSpec {
  std::int32_t arena = 0;
  std::int64_t begin = 0;  // first element of the header
  std::int64_t end = 0;    // one past the last element of the data
};

// What travels as one message: a contiguous range of an arena.
struct BucketSpec {
  std::int32_t arena = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t message_bytes = 0;  // as it travels, where a link encodes it; 0: as it is
};

// The gradients of steps [first_step, last_step] of one bucket, summed, at most one period of them;
// applied at the end of apply_step (a boundary), or, when gated, before the first use of its
// parameters in the forward that follows this boundary.
struct GenerationSpec {
  std::int32_t bucket = 0;
  std::int32_t first_step = 0;
  std::int32_t last_step = 0;
  std::int32_t apply_step = 0;
  bool gated = false;
};

// One message: it may leave from the beginning of its window on. Tasks are listed in the order in
// which they leave; several tasks of one generation (reduce-scatter, then all-gather) run in turn.
struct TaskSpec {
  std::int32_t generation = 0;
  Op op = Op::kAllReduce;
  std::int32_t link = 0;
  Window window;
  std::int32_t root = 0;  // of a broadcast
};

struct Plan {
  std::int32_t period = 1;
  std::int32_t buffers = 1;  // copies of every arena: generations of a bucket that may coexist
  std::vector<LinkSpec> links;
  std::vector<ArenaSpec> arenas;
  std::vector<SlotSpec> slots;
  std::vector<BucketSpec> buckets;
  std::vector<GenerationSpec> generations;
  std::vector<TaskSpec> tasks;

  // Throws PlanError naming the first broken rule.
  void validate() const;
};

}  // namespace deft
