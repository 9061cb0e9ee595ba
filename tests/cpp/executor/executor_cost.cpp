// What a gradient costs on the hot path: nanoseconds per slot_ready, median of many steps.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "core/executor/executor.h"
#include "support.h"

namespace deft {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// `fused` slots share a bucket; every message ends inside send.
double cost_ns(std::int32_t slots, std::int32_t fused) {
  Plan plan = test::bare_plan(slots);
  plan.buckets.clear();
  for (std::int32_t at = 0; at < slots; at += fused) {
    const std::int32_t end = std::min(at + fused, slots);
    test::add_generation(plan, {.bucket = static_cast<std::int32_t>(plan.buckets.size())});
    plan.buckets.push_back({0, at * test::kSlotElements, end * test::kSlotElements});
  }
  const auto factory = [](std::int32_t, std::int32_t) { return Message{}; };
  const auto executor = std::make_shared<Executor>(
      plan, std::vector<std::shared_ptr<Link>>{std::make_shared<ManualLink>(true)}, factory,
      [] { return now_ns() / 1000; });
  std::vector<double> costs;
  for (int step = 0; step < 2000; ++step) {
    executor->begin_backward();
    const std::int64_t begin_ns = now_ns();
    for (std::int32_t slot = 0; slot < slots; ++slot) executor->slot_ready(slot);
    costs.push_back(static_cast<double>(now_ns() - begin_ns) / slots);
    for (const Due& due : executor->due()) executor->release(due);
    executor->end_step();
  }
  std::nth_element(costs.begin(), costs.begin() + 1000, costs.end());
  return costs[1000];
}

}  // namespace
}  // namespace deft

int main() {
  for (const std::int32_t fused : {300, 30, 1}) {
    std::printf("300 slots, %3d in a bucket: %.0f ns per slot_ready (sending included)\n", fused,
                deft::cost_ns(300, fused));
  }
}
