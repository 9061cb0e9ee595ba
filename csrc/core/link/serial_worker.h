// A thread that runs jobs one after another, in the order in which they were given.
//
// For links that carry messages with blocking calls. Jobs may outlive their worker, because a job
// can end up destroying it: completions reach executors, and these own links.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace deft {

class SerialWorker {
 public:
  SerialWorker();
  // Jobs that were given still run, and are destroyed, by their thread. Waits for a thread that has
  // nothing to do and leaves a busy one to itself: it may be the caller's own, or it may need a
  // lock that the caller holds (the GIL).
  ~SerialWorker();
  SerialWorker(const SerialWorker&) = delete;
  SerialWorker& operator=(const SerialWorker&) = delete;

  // Never blocks. A job must not throw.
  void post(std::function<void()> job);
  // Waits until every job has been run and destroyed; false when the time is over before that.
  [[nodiscard]] bool wait_idle(std::chrono::microseconds timeout) const;

 private:
  struct State;

  std::shared_ptr<State> state_;  // shared with the thread, which may live longer
  std::thread thread_;
};

}  // namespace deft
