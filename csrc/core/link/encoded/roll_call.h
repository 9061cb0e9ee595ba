// Whether all ranks take part in a step.
//
// A rank in hvd.join() gives zeros to the sums of others and can take part in nothing else. So a
// sum of ones tells how many ranks there are, and everyone gets the same answer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/link/link.h"

namespace deft {

class RollCall : public std::enable_shared_from_this<RollCall> {
 public:
  // Must not block, nor call back here.
  using Job = std::function<void(bool everyone)>;

  // `name`: of the message that asks.
  RollCall(std::shared_ptr<Link> link, std::string name, std::int32_t size, std::int32_t rank);

  // Asks, unless this step or a later one was asked about before. Never blocks.
  void call(std::int64_t step);
  // Runs the job with the answer for a step, after all jobs before it. Where a step lies before
  // those that were asked about, everyone has taken part. If the link fails the answer is that,
  // too: what is sent next says why.
  void pass(std::int64_t step, Job job);

 private:
  struct Waiting {
    std::int64_t step = 0;
    Job job;
  };

  void note(std::int64_t step);
  void ask(std::unique_lock<std::mutex>& lock);
  void answer(std::int64_t step, bool everyone, bool failed);
  void run_jobs();
  [[nodiscard]] Message message() const;
  [[nodiscard]] bool is_everyone(const Message& answered) const;

  const std::shared_ptr<Link> link_;
  const std::string name_;
  const std::int32_t size_;
  const std::int32_t rank_;
  std::mutex mutex_;
  std::int64_t latest_ = -1;  // of the steps that were, or are to be, asked about
  std::int64_t oldest_ =
      std::numeric_limits<std::int64_t>::max();  // that may have to be waited for
  std::deque<std::int64_t> to_ask_;              // one at a time: all questions have one name
  bool is_asking_ = false;
  bool has_failed_ = false;
  std::map<std::int64_t, bool> answers_;  // of the latest steps
  std::deque<Waiting> waiting_;
};

}  // namespace deft
