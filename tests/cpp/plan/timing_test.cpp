// Every rule on generations, tasks, buffers and deadlines, broken one at a time.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "core/errors.h"
#include "core/plan/plan.h"
#include "support.h"

namespace deft {
namespace {

using test::add_generation;

struct Case {
  std::string name;
  std::string expected;  // part of the message
  std::function<void(Plan&)> spoil;
};

class PlanTiming : public testing::TestWithParam<Case> {};

TEST_P(PlanTiming, RefusesAndNamesTheRule) {
  Plan plan = test::synchronous_plan(2);
  GetParam().spoil(plan);
  try {
    plan.validate();
    FAIL() << "the plan was accepted";
  } catch (const PlanError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().expected), std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, PlanTiming,
    testing::Values(
        Case{"bucket", "names bucket 7 of 2", [](Plan& p) { p.generations[0].bucket = 7; }},
        Case{"beyond_period", "first to last", [](Plan& p) { p.generations[0].last_step = 1; }},
        Case{"backwards", "first to last", [](Plan& p) { p.generations[0].first_step = 1; }},
        Case{"longer_than_the_period", "first to last",
             [](Plan& p) { p.generations[0].first_step = -1; }},
        Case{"ends_before_the_period", "first to last",
             [](Plan& p) { p.generations[0].first_step = p.generations[0].last_step = -1; }},
        Case{"covered_twice", "is covered again by generation 2",
             [](Plan& p) { add_generation(p, {.bucket = 1}); }},
        Case{"not_covered", "step 1 of bucket 0 is not covered", [](Plan& p) { p.period = 2; }},
        Case{"applied_early", "after its last gradient",
             [](Plan& p) { p.generations[1].apply_step = -1; }},
        Case{"no_task", "generation 1 has none", [](Plan& p) { p.tasks.pop_back(); }},
        Case{"task_generation", "references", [](Plan& p) { p.tasks[0].generation = 2; }},
        Case{"task_link", "references", [](Plan& p) { p.tasks[0].link = 1; }},
        Case{"root", "a root is a rank", [](Plan& p) { p.tasks[0].root = -2; }},
        Case{"leaves_early", "forward of step 0",
             [](Plan& p) { p.tasks[0].window.stage = Stage::kForward; }},
        Case{"leaves_late", "needed in the backward of step 0",
             [](Plan& p) { p.tasks[0].window.step = 1; }},
        Case{"too_few_buffers", "one of 1", [](Plan& p) { p.generations[0].apply_step = 1; }}),
    [](const auto& parameters) { return parameters.param.name; });

// The first message waits for step 1, the second one is needed before.
TEST(PlanTimingRules, RefuseAnOrderThatHoldsAnotherMessageTooLong) {
  Plan plan = test::bare_plan(2);
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0, .apply_step = 1}).window = {1, Stage::kForward};
  add_generation(plan, {.bucket = 1});
  EXPECT_THROW(plan.validate(), PlanError);
  std::swap(plan.tasks[0], plan.tasks[1]);
  EXPECT_NO_THROW(plan.validate());
  std::swap(plan.tasks[0], plan.tasks[1]);
  plan.links[0].plan_order = false;
  EXPECT_NO_THROW(plan.validate());
}

// The order of one cycle is fine in itself, but its last message outlasts the next cycle's first.
TEST(PlanTimingRules, RefuseAMessageThatHoldsTheNextCycle) {
  Plan plan = test::bare_plan(2);
  plan.buffers = 3;
  add_generation(plan, {.bucket = 0});
  add_generation(plan, {.bucket = 1, .apply_step = 2}).window = {2, Stage::kBackward};
  EXPECT_THROW(plan.validate(), PlanError);
  plan.tasks[1].window = {1, Stage::kForward};
  EXPECT_NO_THROW(plan.validate());
}

// The one in time of step 1 meets the late one of step 0; a step later it meets the next cycle's.
TEST(PlanTimingRules, RefuseTwoGenerationsOfABucketAtABoundary) {
  Plan plan = test::bare_plan(1);
  plan.period = 2;
  plan.buffers = 4;
  add_generation(plan, {.bucket = 0, .apply_step = 1});
  add_generation(plan, {.bucket = 0, .first_step = 1, .last_step = 1, .apply_step = 1});
  EXPECT_THROW(plan.validate(), PlanError);
  plan.generations[1].apply_step = 2;
  EXPECT_NO_THROW(plan.validate());
  plan.generations[1].apply_step = 3;
  EXPECT_THROW(plan.validate(), PlanError);
}

TEST(PlanTimingRules, AGatedGenerationMayLeaveInTheNextForward) {
  Plan plan = test::bare_plan(1);
  add_generation(plan, {.bucket = 0, .gated = true}).window = {1, Stage::kForward};
  EXPECT_NO_THROW(plan.validate());
  plan.tasks[0].window = {1, Stage::kBackward};
  EXPECT_THROW(plan.validate(), PlanError);
}

TEST(PlanTimingRules, CountTheBuffersOfMergedAndDelayedGenerations) {
  Plan plan = test::bare_plan(1);
  plan.period = 4;
  plan.buffers = 2;
  add_generation(plan, {.bucket = 0, .first_step = 0, .last_step = 1, .apply_step = 3});
  add_generation(plan, {.bucket = 0, .first_step = 2, .last_step = 3, .apply_step = 5});
  EXPECT_NO_THROW(plan.validate());
  plan.generations[1].apply_step = 6;  // in use when the instance after the next begins
  EXPECT_THROW(plan.validate(), PlanError);
  plan.buffers = 3;
  EXPECT_NO_THROW(plan.validate());
}

}  // namespace
}  // namespace deft
