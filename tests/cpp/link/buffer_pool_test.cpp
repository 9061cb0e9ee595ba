#include "core/link/buffer_pool.h"

#include <gtest/gtest.h>

namespace deft {
namespace {

class BufferPoolTest : public testing::Test {
 protected:
  int allocated_ = 0;
  BufferPool pool_{[this](std::int64_t bytes) -> std::shared_ptr<void> {
    ++allocated_;
    return {::operator new(static_cast<std::size_t>(bytes)), [](void* p) { ::operator delete(p); }};
  }};
};

TEST_F(BufferPoolTest, ABufferThatCameBackIsTakenAgain) {
  BufferPool::Buffer first = pool_.take(100);
  const void* memory = first.memory.get();
  pool_.give_back(std::move(first));
  EXPECT_EQ(pool_.take(60).memory.get(), memory);
  EXPECT_EQ(allocated_, 1);
}

TEST_F(BufferPoolTest, TheSmallestThatSufficesIsTaken) {
  BufferPool::Buffer large = pool_.take(1000);
  BufferPool::Buffer small = pool_.take(10);
  pool_.give_back(std::move(large));
  pool_.give_back(std::move(small));
  EXPECT_EQ(pool_.take(5).bytes, 10);
  EXPECT_EQ(pool_.take(5).bytes, 1000);
}

TEST_F(BufferPoolTest, OneThatIsTooSmallIsReplaced) {
  pool_.give_back(pool_.take(10));
  pool_.give_back(pool_.take(100));  // the small one is gone
  const BufferPool::Buffer large = pool_.take(10);
  EXPECT_EQ(large.bytes, 100);
  EXPECT_EQ(allocated_, 2);
}

}  // namespace
}  // namespace deft
