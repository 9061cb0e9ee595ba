// One link's ordered stream of messages: what may leave next, and what is in flight.
//
// Not locked: the executor's mutex guards it. `is_draining` lets one thread send at a
// time: one that finds it false sends, in a loop that looks again after every message; one that
// finds it true returns, because that loop will see what it changed. So order on the link needs no
// lock around send, and a link that completes inside send cannot recurse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/link/link.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace deft {

struct LinkStats {
  std::int64_t messages = 0;  // sent
  std::int64_t bytes = 0;     // sent, as they travel
  std::int64_t busy_us = 0;   // time with at least one message in flight
};

class Lane {
 public:
  Lane(LinkSpec spec, std::shared_ptr<Link> link, std::span<const std::int32_t> tasks);

  // With plan_order: the message that has to leave next, ready or not; none on an unused link.
  [[nodiscard]] std::optional<TaskInstance> head() const;
  void advance();
  // Goes to the beginning of a cycle.
  void start_at(std::int64_t cycle);

  // Without plan_order: messages that became ready, and the first of those whose window is open.
  void offer(TaskInstance task, Window window, bool is_open);
  void open_until(Window now);
  [[nodiscard]] std::optional<TaskInstance> take_offered();

  [[nodiscard]] bool has_credit(std::int64_t bytes) const;
  // What the credit says when it holds a message of this size, else nothing.
  [[nodiscard]] std::string held_by_credit(std::int64_t bytes) const;

  // `bytes` of values, which travel as `message_bytes`.
  void start(std::int64_t bytes, std::int64_t message_bytes, std::int64_t now_us);
  void finish(std::int64_t bytes, std::int64_t now_us);

  [[nodiscard]] const LinkSpec& spec() const { return spec_; }
  [[nodiscard]] const std::shared_ptr<Link>& link() const { return link_; }
  [[nodiscard]] LinkStats stats(std::int64_t now_us) const;

  bool is_draining = false;

 private:
  struct Waiting {
    TaskInstance task;
    Window window;
  };

  [[nodiscard]] bool lacks_messages() const;
  [[nodiscard]] bool lacks_bytes(std::int64_t bytes) const;

  LinkSpec spec_;
  std::shared_ptr<Link> link_;
  std::vector<std::int32_t> tasks_;  // of one cycle
  std::size_t position_ = 0;
  std::int64_t cycle_ = 0;
  std::vector<Waiting> closed_;     // ready, window not yet open
  std::vector<TaskInstance> open_;  // ready to leave; [taken_, end) are left
  std::size_t taken_ = 0;
  std::int64_t messages_in_flight_ = 0;
  std::int64_t bytes_in_flight_ = 0;
  std::int64_t busy_since_us_ = 0;
  LinkStats stats_;
};

}  // namespace deft
