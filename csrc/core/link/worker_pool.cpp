#include "core/link/worker_pool.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace deft {

struct WorkerPool::State {
  using Job = std::function<void()>;

  void run();

  std::mutex mutex;
  std::condition_variable given;
  std::condition_variable idle;
  std::deque<Job> jobs;
  std::size_t threads = 0;
  std::size_t busy = 0;  // of the threads: they run a job, or destroy it
  bool ending = false;
};

void WorkerPool::State::run() {
  std::unique_lock lock(mutex);
  while (true) {
    given.wait(lock, [this] { return ending || !jobs.empty(); });
    if (jobs.empty()) break;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    ++busy;
    lock.unlock();
    job();
    job = nullptr;  // what it holds may call back here, so it goes without the lock
    lock.lock();
    --busy;
    idle.notify_all();
  }
  --threads;
}

WorkerPool::WorkerPool() : state_(std::make_shared<State>()) {}

WorkerPool::~WorkerPool() {
  const std::lock_guard lock(state_->mutex);
  state_->ending = true;
  state_->given.notify_all();
}

void WorkerPool::post(std::function<void()> job) {
  const std::lock_guard lock(state_->mutex);
  state_->jobs.push_back(std::move(job));
  if (state_->busy + state_->jobs.size() > state_->threads) {
    ++state_->threads;
    std::thread([state = state_] { state->run(); }).detach();
  }
  state_->given.notify_one();
}

bool WorkerPool::wait_idle(std::chrono::microseconds timeout) const {
  std::unique_lock lock(state_->mutex);
  return state_->idle.wait_for(lock, timeout,
                               [this] { return state_->jobs.empty() && state_->busy == 0; });
}

}  // namespace deft
