// Buffers that messages in flight borrow. There are as many as messages were ever in flight.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace deft {

class BufferPool {
 public:
  using Allocate = std::function<std::shared_ptr<void>(std::int64_t bytes)>;

  struct Buffer {
    std::shared_ptr<void> memory;
    std::int64_t bytes = 0;

    [[nodiscard]] char* at(std::int64_t offset) const {
      return static_cast<char*>(memory.get()) + offset;
    }
  };

  explicit BufferPool(Allocate allocate) : allocate_(std::move(allocate)) {}

  // The smallest free one that suffices.
  [[nodiscard]] Buffer take(std::int64_t bytes);
  void give_back(Buffer buffer);

 private:
  const Allocate allocate_;
  std::mutex mutex_;
  std::vector<Buffer> free_;
};

}  // namespace deft
