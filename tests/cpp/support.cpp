#include "support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace deft::test {

Plan bare_plan(std::int32_t count) {
  Plan plan;
  plan.links.push_back({.name = "wire"});
  plan.arenas.push_back({.wire = DType::kFloat32, .elements = std::int64_t{count} * kSlotElements});
  for (std::int32_t at = 0; at < count; ++at) {
    plan.slots.push_back({0, at * kSlotElements, (at + 1) * kSlotElements});
    plan.buckets.push_back({0, at * kSlotElements, (at + 1) * kSlotElements});
  }
  return plan;
}

TaskSpec& add_generation(Plan& plan, const GenerationSpec& generation, std::int32_t link) {
  TaskSpec task;
  task.generation = static_cast<std::int32_t>(plan.generations.size());
  task.link = link;
  task.window = {generation.last_step, Stage::kBackward};
  plan.generations.push_back(generation);
  plan.tasks.push_back(task);
  return plan.tasks.back();
}

Plan synchronous_plan(std::int32_t count) {
  Plan plan = bare_plan(count);
  for (std::int32_t bucket = 0; bucket < count; ++bucket) {
    add_generation(plan, {.bucket = bucket});
  }
  return plan;
}

namespace {

std::int32_t pick(std::mt19937& random, std::int32_t low, std::int32_t high) {
  return std::uniform_int_distribution<std::int32_t>(low, high)(random);
}

// Slots of random sizes, cut into buckets at random multiples of 16 bytes.
void random_layout(Plan& plan, std::mt19937& random) {
  std::int64_t end = 0;
  for (std::int32_t slots = pick(random, 1, 8); slots > 0; --slots) {
    const std::int64_t begin = end;
    end += 4L * pick(random, 1, 6);
    plan.slots.push_back({0, begin, end});
  }
  plan.arenas.push_back({DType::kFloat32, end});
  for (std::int64_t begin = 0; begin < end;) {
    const std::int64_t stop = std::min<std::int64_t>(end, begin + 4L * pick(random, 1, 8));
    plan.buckets.push_back({0, begin, stop});
    begin = stop;
  }
}

void random_generations(Plan& plan, std::mt19937& random) {
  for (std::size_t bucket = 0; bucket < plan.buckets.size(); ++bucket) {
    const std::int32_t delay = pick(random, 0, 2);  // one for the bucket: applied in order
    const std::int32_t begin = pick(random, 0, 1) * pick(random, 0, plan.period - 1);
    for (std::int32_t first = 0; first < plan.period;) {
      const std::int32_t last = pick(random, first, plan.period - 1);
      // One that would end in the next cycle is that one's, and begins in the cycle before.
      const std::int32_t shift = last + begin < plan.period ? begin : begin - plan.period;
      plan.generations.push_back({static_cast<std::int32_t>(bucket), first + shift, last + shift,
                                  last + shift + delay, pick(random, 0, 3) == 0});
      first = last + 1;
    }
  }
}

// Tasks in the order of their windows never hold one another back beyond their own windows.
void random_tasks(Plan& plan, std::mt19937& random) {
  const auto links = static_cast<std::int32_t>(plan.links.size());
  for (std::size_t at = 0; at < plan.generations.size(); ++at) {
    const GenerationSpec& spec = plan.generations[at];
    TaskSpec task;
    task.generation = static_cast<std::int32_t>(at);
    task.link = pick(random, 0, links - 1);
    task.window = {pick(random, spec.last_step, spec.apply_step), Stage::kBackward};
    if (task.window.step > spec.last_step && pick(random, 0, 1) == 0) {
      task.window.stage = Stage::kForward;
    }
    if (pick(random, 0, 3) == 0) {
      task.op = Op::kReduceScatter;
      plan.tasks.push_back(task);
      task.op = Op::kAllGather;
      task.link = pick(random, 0, links - 1);
    }
    plan.tasks.push_back(task);
  }
  std::shuffle(plan.tasks.begin(), plan.tasks.end(), random);
  std::stable_sort(plan.tasks.begin(), plan.tasks.end(),
                   [](const TaskSpec& a, const TaskSpec& b) { return a.window < b.window; });
}

}  // namespace

Plan random_plan(std::mt19937& random) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    Plan plan;
    plan.period = pick(random, 1, 4);
    plan.buffers = pick(random, 1, 4);
    for (std::int32_t links = pick(random, 1, 3); links > 0; --links) {
      LinkSpec link{.name = "link" + std::to_string(links)};
      link.plan_order = pick(random, 0, 3) > 0;
      if (link.plan_order && pick(random, 0, 1) == 0) link.credit_bytes = 16L * pick(random, 1, 12);
      if (link.plan_order && pick(random, 0, 1) == 0) link.credit_messages = pick(random, 1, 3);
      plan.links.push_back(link);
    }
    random_layout(plan, random);
    random_generations(plan, random);
    random_tasks(plan, random);
    try {
      plan.validate();
      return plan;
    } catch (const std::runtime_error&) {
      continue;  // too few buffers, or a window of the next cycle held back too much
    }
  }
  throw std::runtime_error("1000 random plans in a row broke a rule");
}

std::string message_name(std::int32_t task, std::int32_t buffer) {
  return std::to_string(task) + "@" + std::to_string(buffer);
}

std::shared_ptr<Executor> make_executor(Plan plan, std::vector<std::shared_ptr<Link>> links,
                                        std::shared_ptr<std::atomic<std::int64_t>> now_us) {
  const auto factory = [](std::int32_t task, std::int32_t buffer) {
    Message message;
    message.name = message_name(task, buffer);
    return message;
  };
  return std::make_shared<Executor>(std::move(plan), std::move(links), factory,
                                    [now_us = std::move(now_us)] { return now_us->load(); });
}

Bench::Bench(Plan plan, bool immediate) : now_us(std::make_shared<std::atomic<std::int64_t>>(0)) {
  for (std::size_t at = 0; at < plan.links.size(); ++at) {
    links.push_back(std::make_shared<ManualLink>(immediate));
  }
  executor = make_executor(std::move(plan), {links.begin(), links.end()}, now_us);
}

void Bench::collect_all() const {
  const auto slots = static_cast<std::int32_t>(executor->plan().slots.size());
  for (std::int32_t slot = 0; slot < slots; ++slot) executor->slot_ready(slot);
}

void Bench::backward() const {
  executor->begin_backward();
  collect_all();
}

void Bench::complete_all() const {
  for (bool landed = true; landed;) {
    landed = false;
    for (const auto& link : links) landed |= link->complete_oldest();
  }
}

void Bench::finish_step() const {
  for (const Due& due : executor->due()) {
    ASSERT_EQ(executor->wait(due, std::chrono::microseconds(0)), WaitResult::kDone);
    executor->release(due);
  }
  executor->end_step();
}

Due Bench::due_of(std::int32_t bucket) const {
  for (const Due& due : executor->due()) {
    if (due.bucket == bucket) return due;
  }
  throw std::runtime_error("nothing of bucket " + std::to_string(bucket) + " is due");
}

}  // namespace deft::test
