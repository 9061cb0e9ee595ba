// Several threads report gradients while another one ends messages: to be run under the
// sanitizers too.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/executor/executor.h"
#include "support.h"

namespace deft {
namespace {

// Ends messages in random order from its own thread, checks that at most one send runs at a time
// and that messages come in the order of the plan.
class ThreadedLink : public Link {
 public:
  explicit ThreadedLink(std::int32_t tasks) : tasks_(tasks), thread_([this] { run(); }) {}
  ThreadedLink(const ThreadedLink&) = delete;
  ThreadedLink& operator=(const ThreadedLink&) = delete;
  ~ThreadedLink() override = default;

  // Before the last reference goes: a completion may hold that of the executor, and with it ours,
  // and no thread can join itself.
  void stop() {
    stop_.store(true);
    thread_.join();
  }

  void send(Message message, Completion done) override {
    if (is_sending_.exchange(true)) ++violations_;
    if (message.root != sent_ % tasks_) ++violations_;
    ++sent_;  // not atomic: the executor has to order the calls, and the sanitizer checks it
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(done));
    }
    is_sending_.store(false);
  }

  [[nodiscard]] int violations() const { return violations_.load(); }

 private:
  void run() {
    std::mt19937 random(5);
    while (!stop_.load()) {
      Completion done;
      {
        const std::lock_guard lock(mutex_);
        if (!waiting_.empty()) {
          std::swap(waiting_[random() % waiting_.size()], waiting_.back());
          done = std::move(waiting_.back());
          waiting_.pop_back();
        }
      }
      if (done) {
        done(LinkStatus{});
      } else {
        std::this_thread::yield();
      }
    }
  }

  const std::int32_t tasks_;
  std::int32_t sent_ = 0;
  std::atomic<bool> is_sending_{false};
  std::atomic<bool> stop_{false};
  std::atomic<int> violations_{0};
  std::mutex mutex_;
  std::vector<Completion> waiting_;
  std::thread thread_;  // last: it uses the others
};

std::shared_ptr<Executor> make_executor(const Plan& plan, const std::shared_ptr<Link>& link) {
  const auto factory = [](std::int32_t task, std::int32_t /*buffer*/) {
    Message message;
    message.root = task;
    return message;
  };
  const auto clock = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  return std::make_shared<Executor>(plan, std::vector{link}, factory, clock);
}

void run_backward(Executor& executor, std::int32_t slots, int threads) {
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  std::atomic<std::int32_t> next{0};
  for (int at = 0; at < threads; ++at) {
    workers.emplace_back([&] {
      executor.begin_backward();
      for (std::int32_t slot = next++; slot < slots; slot = next++) {
        (void)executor.targets(slot);
        executor.slot_ready(slots - 1 - slot);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

void train(const Plan& plan, std::int64_t steps) {
  const auto slots = static_cast<std::int32_t>(plan.slots.size());
  const auto link = std::make_shared<ThreadedLink>(static_cast<std::int32_t>(plan.tasks.size()));
  const auto executor = make_executor(plan, link);
  std::vector<Due> gated;
  const auto finish = [&](const Due& due) {
    EXPECT_EQ(executor->wait(due, std::chrono::seconds(60)), WaitResult::kDone)
        << executor->inspect(due).held_by;
    executor->release(due);
  };
  for (std::int64_t step = 0; step < steps; ++step) {
    for (const Due& due : std::exchange(gated, {})) finish(due);
    run_backward(*executor, slots, 4);
    for (const Due& due : executor->due()) {
      (void)executor->inspect(due);
      if (due.gated) {
        gated.push_back(due);
      } else {
        finish(due);
      }
    }
    executor->end_step();
    (void)executor->link_stats();
    (void)executor->take_records();
  }
  EXPECT_EQ(link->violations(), 0);
  EXPECT_EQ(executor->wait_idle(std::chrono::seconds(60)), WaitResult::kDone);
  link->stop();
}

TEST(ExecutorThreads, SynchronousStepsUnderCredit) {
  Plan plan = test::synchronous_plan(200);
  plan.links[0].credit_bytes = 4 * test::kBucketBytes;
  train(plan, 30);
}

TEST(ExecutorThreads, DelayedAndGatedSteps) {
  Plan plan = test::bare_plan(120);
  plan.buffers = 2;
  plan.links[0].credit_messages = 3;
  for (std::int32_t bucket = 0; bucket < 120; ++bucket) {
    GenerationSpec spec{.bucket = bucket};
    if (bucket % 3 == 1) spec.apply_step = 1;
    spec.gated = bucket % 3 == 2;
    test::add_generation(plan, spec);
  }
  train(plan, 30);
}

TEST(ExecutorThreads, FailureAndDestructionRaceWithCompletions) {
  const Plan plan = test::synchronous_plan(100);
  for (int round = 0; round < 30; ++round) {
    const auto link = std::make_shared<ThreadedLink>(100);
    {
      const auto executor = make_executor(plan, link);
      std::thread killer([weak = std::weak_ptr(executor)] {
        if (const auto alive = weak.lock()) alive->fail("stopped", Outcome::kAborted);
      });
      run_backward(*executor, 100, 2);
      killer.join();
    }
    link->stop();
    EXPECT_EQ(link->violations(), 0);
  }
}

}  // namespace
}  // namespace deft
