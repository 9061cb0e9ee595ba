// Which gradients are packed together: one launch for all of a bucket instead of one for each.
//
// On the host a gradient is copied the moment it is there, while it is in the cache. On a device
// every copy costs a launch, so those of a bucket wait for its last one. A slot that lies in
// several buckets is packed whole with the first of these that is full.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "core/plan/bucket_table.h"

namespace deft {

struct Held {
  std::int32_t slot = 0;
  at::Tensor gradient;                // undefined: this step has none
  std::optional<c10::Stream> stream;  // on which a device computes it
};

class Gathering {
 public:
  Gathering(const BucketTable& table, std::size_t slots, std::size_t buckets);

  // One more slot of this step has come. Returns the slots to pack now. Each slot comes once a
  // step, and the next step begins when all have come.
  [[nodiscard]] std::vector<Held> add(Held held);
  // Whether it has come and is not packed yet.
  [[nodiscard]] bool holds(std::int32_t slot) const;

 private:
  const BucketTable& table_;
  mutable std::mutex mutex_;
  std::vector<std::optional<Held>> waiting_;  // per slot
  std::vector<std::size_t> missing_;          // per bucket: slots that have not come
};

}  // namespace deft
