// To be run under the sanitizers too: jobs outlive their worker, and destroy it.
#include "core/link/serial_worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace deft {
namespace {

constexpr std::chrono::seconds kLong{20};
constexpr std::chrono::milliseconds kShort{20};

// Held by a job, tells when and on which thread that is destroyed.
class Witness {
 public:
  Witness() = default;
  ~Witness() { gone_.set_value(std::this_thread::get_id()); }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  [[nodiscard]] std::future<std::thread::id> gone() { return gone_.get_future(); }

 private:
  std::promise<std::thread::id> gone_;
};

TEST(SerialWorkerTest, RunsJobsInOrderOneAtATimeOnOneThread) {
  std::vector<int> order;  // not guarded: the sanitizer checks that only one thread writes
  std::vector<std::thread::id> threads;
  SerialWorker worker;
  for (int number = 0; number < 100; ++number) {
    worker.post([&, number] {
      order.push_back(number);
      threads.push_back(std::this_thread::get_id());
    });
  }
  ASSERT_TRUE(worker.wait_idle(kLong));
  for (int number = 0; number < 100; ++number) {
    EXPECT_EQ(order[static_cast<std::size_t>(number)], number);
    EXPECT_EQ(threads[static_cast<std::size_t>(number)], threads.front());
  }
  EXPECT_NE(threads.front(), std::this_thread::get_id());
}

TEST(SerialWorkerTest, PostReturnsWhileAJobRuns) {
  std::promise<void> release;
  SerialWorker worker;
  worker.post([blocked = release.get_future().share()] { blocked.wait(); });
  worker.post([] {});
  EXPECT_FALSE(worker.wait_idle(kShort));
  release.set_value();
  EXPECT_TRUE(worker.wait_idle(kLong));
}

TEST(SerialWorkerTest, IdleIsWhenTheLastJobIsDestroyed) {
  auto witness = std::make_shared<Witness>();
  const auto gone = witness->gone();
  SerialWorker worker;
  worker.post([witness = std::move(witness)] {});
  ASSERT_TRUE(worker.wait_idle(kLong));
  // Idle means that the job is destroyed as well, not only that it has run.
  EXPECT_EQ(gone.wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

TEST(SerialWorkerTest, WhatWasGivenStillRunsWhenTheWorkerIsGone) {
  std::promise<void> release;
  auto witness = std::make_shared<Witness>();
  auto gone = witness->gone();
  std::atomic<int> runs{0};
  {
    SerialWorker worker;
    worker.post([blocked = release.get_future().share()] { blocked.wait(); });
    worker.post([&runs] { ++runs; });
    worker.post([&runs, witness = std::move(witness)] { ++runs; });
  }  // does not wait: the first job would never end
  EXPECT_EQ(runs.load(), 0);
  release.set_value();
  ASSERT_EQ(gone.wait_for(kLong), std::future_status::ready);
  EXPECT_NE(gone.get(), std::this_thread::get_id());
  EXPECT_EQ(runs.load(), 2);
}

TEST(SerialWorkerTest, AJobMayDestroyItsOwnWorker) {
  for (int round = 0; round < 200; ++round) {
    auto witness = std::make_shared<Witness>();
    const auto gone = witness->gone();
    std::atomic<bool> after{false};
    std::promise<void> release;
    auto worker = std::make_shared<SerialWorker>();
    SerialWorker& used = *worker;
    used.post([worker, blocked = release.get_future().share()]() mutable {
      blocked.wait();
      worker.reset();  // the last reference
    });
    used.post([&after, witness = std::move(witness)] { after = true; });
    worker.reset();
    release.set_value();
    ASSERT_EQ(gone.wait_for(kLong), std::future_status::ready);
    EXPECT_TRUE(after.load());
  }
}

TEST(SerialWorkerTest, AJobThatIsDestroyedMayDestroyItsOwnWorker) {
  for (int round = 0; round < 200; ++round) {
    auto witness = std::make_shared<Witness>();
    auto gone = witness->gone();
    auto worker = std::make_shared<SerialWorker>();
    SerialWorker& used = *worker;
    used.post([witness = std::move(witness), worker = std::move(worker)] {});
    ASSERT_EQ(gone.wait_for(kLong), std::future_status::ready);
    EXPECT_NE(gone.get(), std::this_thread::get_id());
  }
}

TEST(SerialWorkerTest, ManyThreadsMayPost) {
  constexpr int kThreads = 4;
  constexpr int kJobs = 500;
  int runs = 0;  // not atomic: jobs never overlap
  SerialWorker worker;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&] {
      for (int job = 0; job < kJobs; ++job) worker.post([&runs] { ++runs; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(worker.wait_idle(kLong));
  EXPECT_EQ(runs, kThreads * kJobs);
}

}  // namespace
}  // namespace deft
