// A link reduces a buffer: the only thing the executor knows about Horovod, NCCL or a test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/types.h"

namespace deft {

// Tells whether the bytes of a message are really there (a GPU may still be writing them).
class ReadySignal {
 public:
  virtual ~ReadySignal() = default;
  [[nodiscard]] virtual bool ready() const = 0;
  // The device event behind it (a CUDA event), or null where there is none.
  [[nodiscard]] virtual void* native_event() const { return nullptr; }
};

struct Message {
  std::string name;  // stable over steps: Horovod caches responses by name
  Op op = Op::kAllReduce;
  // Codes (is_code) are summed even by a link that scales or averages all else. Sums of those
  // narrower than kInt32 are modulo their range only where a link takes any integers.
  DType dtype = DType::kFloat32;
  const void* input = nullptr;
  std::int64_t input_elements = 0;
  void* output = nullptr;  // may equal input; for a broadcast it does
  std::int64_t output_elements = 0;
  std::int32_t root = 0;
  // Of an all-to-all: how many elements of the input go to each rank, and how many of the output
  // come from each, in the order of ranks. from_ranks also of an all-gather of unlike parts. Empty:
  // equal parts, for an all-gather those of shard_of.
  std::vector<std::int64_t> to_ranks;
  std::vector<std::int64_t> from_ranks;
  // Ranks that have begun the backward of this step send it, and no others.
  std::int64_t step = 0;
  // Horovod must not fuse messages of different groups. All ranks give a message the same group.
  std::int32_t fusion_group = 0;
  // Meets those with the same tag on other ranks, on a link that goes by tags. Two messages that
  // may be on their way at the same time have different ones. Negative: none.
  std::int32_t tag = -1;
  // Must not overtake those handed over before it; only where all ranks hand over the same order.
  bool in_order = false;
  std::int32_t device = -1;            // -1: host memory
  std::shared_ptr<ReadySignal> ready;  // null: already there
  std::shared_ptr<void> owner;         // keeps the memory until the link is done with it
};

using Completion = std::function<void(const LinkStatus&)>;

// A completion can hold the last reference to its executor, and so to the links: a link may be
// destroyed by the thread that completes, from inside the completion.
class Link {
 public:
  virtual ~Link() = default;
  // Never blocks. Calls `done` exactly once, from any thread, possibly before send returns.
  virtual void send(Message message, Completion done) = 0;
  // The backward of a step begins. Never blocks.
  virtual void begin_step(std::int64_t /*step*/) {}
  // Whether messages meet those of other ranks by their order alone, not by their names.
  [[nodiscard]] virtual bool matches_by_order() const { return false; }
  // Whether codes may be of any type, and messages of different types are never fused.
  [[nodiscard]] virtual bool takes_any_integers() const { return false; }
};

}  // namespace deft
