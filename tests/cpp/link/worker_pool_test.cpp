// To be run under the sanitizers too: jobs outlive their pool, and destroy it.
#include "core/link/worker_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace deft {
namespace {

constexpr std::chrono::seconds kLong{20};
constexpr std::chrono::milliseconds kShort{20};

TEST(WorkerPoolTest, EveryJobBeginsHoweverManyWait) {
  constexpr int kJobs = 20;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::vector<std::promise<void>> begun(kJobs);
  WorkerPool pool;
  for (std::promise<void>& each : begun) {
    pool.post([&each, released] {
      each.set_value();
      released.wait();
    });
  }
  for (std::promise<void>& each : begun) {
    ASSERT_EQ(each.get_future().wait_for(kLong), std::future_status::ready);
  }
  EXPECT_FALSE(pool.wait_idle(kShort));
  release.set_value();
  EXPECT_TRUE(pool.wait_idle(kLong));
}

TEST(WorkerPoolTest, ThreadsAreUsedAgain) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  WorkerPool pool;
  for (int number = 0; number < 100; ++number) {
    pool.post([&] {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
    ASSERT_TRUE(pool.wait_idle(kLong));
  }
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0U);
}

TEST(WorkerPoolTest, IsIdleOnlyOnceJobsAreDestroyed) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  WorkerPool pool;
  EXPECT_TRUE(pool.wait_idle(kShort));
  const auto wait = [released](int* value) {
    released.wait();
    delete value;
  };
  pool.post([held = std::shared_ptr<int>(new int(1), wait)] {});
  EXPECT_FALSE(pool.wait_idle(kShort));
  release.set_value();
  EXPECT_TRUE(pool.wait_idle(kLong));
}

TEST(WorkerPoolTest, JobsOutliveTheirPool) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::promise<int> done;
  {
    WorkerPool pool;
    pool.post([&done, released] {
      released.wait();
      done.set_value(1);
    });
  }
  release.set_value();
  auto future = done.get_future();
  ASSERT_EQ(future.wait_for(kLong), std::future_status::ready);
}

TEST(WorkerPoolTest, AJobMayDestroyItsPool) {
  for (int round = 0; round < 50; ++round) {
    std::promise<void> gone;
    const auto tell = [&gone](WorkerPool* it) {
      delete it;
      gone.set_value();
    };
    std::shared_ptr<WorkerPool> owner(new WorkerPool, tell);
    WorkerPool& used = *owner;
    used.post([owner = std::move(owner)] {});
    ASSERT_EQ(gone.get_future().wait_for(kLong), std::future_status::ready);
  }
}

}  // namespace
}  // namespace deft
