#include "core/link/buffer_pool.h"

namespace deft {

BufferPool::Buffer BufferPool::take(std::int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->bytes >= bytes && (best == free_.end() || it->bytes < best->bytes)) best = it;
    }
    if (best != free_.end()) {
      Buffer found = std::move(*best);
      free_.erase(best);
      return found;
    }
    // One that is too small for this message would stay too small: a larger one replaces it.
    if (!free_.empty()) free_.pop_back();
  }
  return {allocate_(bytes), bytes};
}

void BufferPool::give_back(Buffer buffer) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(buffer));
}

}  // namespace deft
