#include "core/link/serial_worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace deft {

struct SerialWorker::State {
  using Job = std::function<void()>;

  [[nodiscard]] bool idle() const { return jobs.empty() && !busy; }
  void run();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  bool busy = false;  // a job runs, or is being destroyed
  bool ending = false;
};

void SerialWorker::State::run() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return ending || !jobs.empty(); });
    if (jobs.empty()) return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    busy = true;
    lock.unlock();
    job();
    job = nullptr;  // what it holds may call back here, so it goes without the lock
    lock.lock();
    busy = false;
    changed.notify_all();
  }
}

SerialWorker::SerialWorker()
    : state_(std::make_shared<State>()), thread_([state = state_] { state->run(); }) {}

SerialWorker::~SerialWorker() {
  bool idle = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
    idle = state_->idle();
    state_->changed.notify_all();
  }
  if (idle) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void SerialWorker::post(std::function<void()> job) {
  const std::lock_guard lock(state_->mutex);
  state_->jobs.push_back(std::move(job));
  state_->changed.notify_all();
}

bool SerialWorker::wait_idle(std::chrono::microseconds timeout) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, timeout, [this] { return state_->idle(); });
}

}  // namespace deft
