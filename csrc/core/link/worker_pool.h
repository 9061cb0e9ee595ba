// Threads for jobs that block: every job begins at once, whatever the others wait for.
//
// There are as many as there were jobs at the same time. Jobs may outlive their pool, because a job
// can end up destroying it: completions reach executors, and these own links.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace deft {

class WorkerPool {
 public:
  WorkerPool();
  // Jobs that were given still run, and are destroyed, by their threads, which then end.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Never blocks. A job must not throw.
  void post(std::function<void()> job);
  // Waits until every job has been run and destroyed; false when the time is over before that.
  [[nodiscard]] bool wait_idle(std::chrono::microseconds timeout) const;

 private:
  struct State;

  std::shared_ptr<State> state_;  // shared with the threads, which may live longer
};

}  // namespace deft
