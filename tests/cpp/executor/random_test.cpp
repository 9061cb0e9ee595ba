// Random plans, random order of gradients and of completions, one thread; the invariants of the
// executor are checked from outside, at every message, against the plan itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "core/executor/executor.h"
#include "core/plan/schedule.h"
#include "support.h"

namespace deft {
namespace {

// Plays the training loop and the network, and knows the plan only.
class Player {
 public:
  Player(Plan plan, unsigned seed)
      : plan_(std::move(plan)),
        schedule_(plan_),
        random_(seed),
        sequence_(plan_.links.size()),
        in_flight_(plan_.links.size()) {
    std::vector<std::shared_ptr<Link>> links;
    links.reserve(plan_.links.size());
    for (std::size_t at = 0; at < plan_.links.size(); ++at) {
      links.push_back(std::make_shared<PlayedLink>(*this, at));
    }
    executor_ = std::make_shared<Executor>(
        plan_, std::move(links),
        [](std::int32_t task, std::int32_t buffer) {
          Message message;
          message.root = task;
          message.device = buffer;
          return message;
        },
        [this] { return ++now_us_; });
  }

  void run(std::int64_t steps) {
    for (std::int64_t step = 0; step < steps && !testing::Test::HasFailure(); ++step) play_step();
    if (testing::Test::HasFailure()) return;
    for (const Due& due : gated_) finish(due);
    while (land_one()) continue;
    EXPECT_EQ(executor_->in_flight(), 0);
    check_every_generation_travelled(steps);
  }

 private:
  struct PlayedMessage {
    TaskInstance task;
    Completion done;
  };

  class PlayedLink : public Link {
   public:
    PlayedLink(Player& player, std::size_t index) : player_(player), index_(index) {}
    void send(Message message, Completion done) override {
      player_.on_send(index_, message, std::move(done));
    }

   private:
    Player& player_;
    std::size_t index_;
  };

  void play_step() {
    if (chance()) land_some();
    for (const Due& due : std::exchange(gated_, {})) finish(due);
    window_.stage = Stage::kBackward;
    executor_->begin_backward();
    std::vector<std::int32_t> slots(plan_.slots.size());
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), random_);
    for (const std::int32_t slot : slots) {
      check_targets(slot);
      collected_.insert({slot, window_.step});
      executor_->slot_ready(slot);
      if (chance()) land_some();
    }
    for (const Due& due : executor_->due()) {
      EXPECT_TRUE(due_.insert({due.generation, due.first_step}).second) << "due twice";
      if (due.gated) {
        gated_.push_back(due);
      } else {
        finish(due);
      }
    }
    window_ = {window_.step + 1, Stage::kForward};
    executor_->end_step();
  }

  bool chance() { return std::uniform_int_distribution<int>(0, 2)(random_) == 0; }

  void check_targets(std::int32_t slot) {
    for (const PackTarget& target : executor_->targets(slot)) {
      const Instance instance = schedule_.collecting(target.bucket, window_.step);
      EXPECT_EQ(target.buffer, schedule_.buffer(instance));
      EXPECT_EQ(target.accumulate, schedule_.first_step(instance) < window_.step);
      // The first gradient takes the buffer, which nobody may hold; the others find it theirs.
      const auto [owner, is_new] =
          owners_.insert({{target.bucket, target.buffer}, schedule_.number(instance)});
      EXPECT_EQ(owner->second, schedule_.number(instance)) << "the buffer is in use";
      EXPECT_FALSE(is_new && target.accumulate) << "accumulates onto nothing";
    }
  }

  // Called by the executor: everything about this message is checked here.
  void on_send(std::size_t link, const Message& message, Completion done) {
    const std::int32_t task = message.root;
    const TaskInstance entry = identify(task, message.device);
    const std::int64_t cycle = entry.cycle;
    const Instance instance = schedule_.instance_of(entry);
    const LinkSpec& spec = plan_.links[link];
    EXPECT_EQ(static_cast<std::size_t>(plan_.tasks[static_cast<std::size_t>(task)].link), link);
    EXPECT_GE(window_, schedule_.window(entry)) << "sent before its window";
    check_complete(instance);
    const auto tasks = schedule_.tasks_of(instance.generation);
    const auto turn = std::find(tasks.begin(), tasks.end(), task) - tasks.begin();
    EXPECT_EQ(done_tasks_[std::pair(instance.generation, cycle)], turn) << "out of turn";
    if (spec.plan_order) {
      const auto order = schedule_.tasks_on(static_cast<std::int32_t>(link));
      const auto position = static_cast<std::size_t>(sequence_[link]++);
      EXPECT_EQ(task, order[position % order.size()]);
      EXPECT_EQ(cycle, static_cast<std::int64_t>(position / order.size()));
    }
    in_flight_[link].push_back({entry, std::move(done)});
    check_credit(link);
  }

  // The first run of the task with this buffer that was not sent: a buffer has one user at a time,
  // while without plan_order different buffers may overtake each other.
  TaskInstance identify(std::int32_t task, std::int32_t buffer) {
    TaskInstance entry{task, 0};
    while (schedule_.buffer(schedule_.instance_of(entry)) != buffer ||
           sent_.contains({task, entry.cycle})) {
      if (++entry.cycle > window_.step) break;
    }
    EXPECT_LE(entry.cycle, window_.step) << "no run of task " << task << " is left";
    sent_.insert({task, entry.cycle});
    return entry;
  }

  void check_complete(Instance instance) {
    std::int64_t slot = 0;
    for (const SlotSpec& range : plan_.slots) {
      const BucketSpec& bucket =
          plan_.buckets[static_cast<std::size_t>(schedule_.bucket_of(instance))];
      const bool inside = range.begin < bucket.end && bucket.begin < range.end;
      for (auto step = schedule_.first_step(instance);
           inside && step <= schedule_.last_step(instance); ++step) {
        EXPECT_TRUE(collected_.contains({slot, step})) << "sent before its gradients";
      }
      ++slot;
    }
  }

  void check_credit(std::size_t link) {
    const LinkSpec& spec = plan_.links[link];
    std::int64_t bytes = 0;
    for (const PlayedMessage& message : in_flight_[link]) {
      bytes += schedule_.bytes_of_task(message.task.task);
    }
    const auto messages = static_cast<std::int64_t>(in_flight_[link].size());
    EXPECT_TRUE(spec.credit_messages == 0 || messages <= spec.credit_messages);
    EXPECT_TRUE(spec.credit_bytes == 0 || messages == 1 || bytes <= spec.credit_bytes);
  }

  bool land_one() {
    std::vector<std::size_t> busy;
    for (std::size_t link = 0; link < in_flight_.size(); ++link) {
      if (!in_flight_[link].empty()) busy.push_back(link);
    }
    if (busy.empty()) return false;
    auto& flights = in_flight_[busy[random_() % busy.size()]];
    const auto at = static_cast<std::ptrdiff_t>(random_() % flights.size());
    const PlayedMessage message = std::move(flights[static_cast<std::size_t>(at)]);
    flights.erase(flights.begin() + at);
    const Instance instance = schedule_.instance_of(message.task);
    ++done_tasks_[{instance.generation, instance.cycle}];
    message.done(LinkStatus{});
    return true;
  }

  void land_some() {
    for (auto count = random_() % 4; count > 0 && land_one(); --count) continue;
  }

  void finish(const Due& due) {
    while (executor_->wait(due, std::chrono::microseconds(0)) != WaitResult::kDone) {
      ASSERT_TRUE(land_one()) << "nothing in flight, but bucket " << due.bucket << " is held by "
                              << executor_->inspect(due).held_by;
    }
    executor_->release(due);
    EXPECT_EQ(owners_.erase({due.bucket, due.buffer}), 1U);
  }

  void check_every_generation_travelled(std::int64_t steps) {
    for (std::size_t at = 0; at < plan_.generations.size(); ++at) {
      const GenerationSpec& spec = plan_.generations[at];
      const auto generation = static_cast<std::int32_t>(at);
      std::int64_t cycles = 0;
      while (cycles * plan_.period + spec.apply_step < steps) ++cycles;
      for (std::int64_t cycle = 0; cycle < cycles; ++cycle) {
        EXPECT_TRUE(due_.contains({generation, schedule_.first_step({generation, cycle})}));
        EXPECT_EQ(done_tasks_[std::pair(generation, cycle)],
                  std::ssize(schedule_.tasks_of(generation)));
      }
    }
  }

  const Plan plan_;
  const Schedule schedule_;
  std::mt19937 random_;
  std::shared_ptr<Executor> executor_;
  Window window_;
  std::int64_t now_us_ = 0;
  std::vector<std::int64_t> sequence_;                    // [link]: messages sent
  std::vector<std::vector<PlayedMessage>> in_flight_;     // [link]
  std::set<std::pair<std::int32_t, std::int64_t>> sent_;  // task, cycle
  std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t> done_tasks_;  // generation, cycle
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> owners_;      // of buffers in use
  std::set<std::pair<std::int64_t, std::int64_t>> collected_;                 // slot, step
  std::set<std::pair<std::int32_t, std::int64_t>> due_;  // generation, first step
  std::vector<Due> gated_;
};

TEST(ExecutorRandom, InvariantsHoldOnManyPlans) {
  std::mt19937 random(20240517);
  for (unsigned round = 0; round < 600; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Player(test::random_plan(random), round).run(12);
    if (testing::Test::HasFailure()) return;
  }
}

// The plans above must really contain what they are meant to.
TEST(ExecutorRandom, PlansAreVaried) {
  std::mt19937 random(20240517);
  std::map<std::string, int> seen;
  for (int round = 0; round < 600; ++round) {
    const Plan plan = test::random_plan(random);
    const auto any = [&](const char* what, const auto& items, const auto& test) {
      if (std::any_of(items.begin(), items.end(), test)) ++seen[what];
    };
    any("begun before its cycle", plan.generations, [](const auto& g) { return g.first_step < 0; });
    any("merged", plan.generations, [](const auto& g) { return g.first_step < g.last_step; });
    any("delayed", plan.generations, [](const auto& g) { return g.apply_step > g.last_step; });
    any("gated", plan.generations, [](const auto& g) { return g.gated; });
    any("gather", plan.tasks, [](const auto& t) { return t.op == Op::kAllGather; });
    any("second link", plan.tasks, [](const auto& t) { return t.link > 0; });
    any("forward", plan.tasks, [](const auto& t) { return t.window.stage == Stage::kForward; });
    any("credit", plan.links, [](const auto& l) { return l.credit_bytes > 0; });
    any("unordered", plan.links, [](const auto& l) { return !l.plan_order; });
  }
  for (const char* what :
       {"merged", "delayed", "gated", "gather", "second link", "forward", "credit", "unordered"}) {
    EXPECT_GE(seen[what], 60) << what;
  }
}

}  // namespace
}  // namespace deft
