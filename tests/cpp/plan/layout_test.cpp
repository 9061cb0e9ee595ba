// Every rule on links, arenas, slots and buckets, broken one at a time.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/errors.h"
#include "core/plan/plan.h"
#include "support.h"

namespace deft {
namespace {

struct Case {
  std::string name;
  std::string expected;  // part of the message
  std::function<void(Plan&)> spoil;
};

class PlanLayout : public testing::TestWithParam<Case> {};

TEST(PlanLayoutRules, AcceptAGoodPlan) {
  EXPECT_NO_THROW(test::synchronous_plan(3).validate());
  EXPECT_NO_THROW(Plan{}.validate());
}

TEST_P(PlanLayout, RefusesAndNamesTheRule) {
  Plan plan = test::synchronous_plan(3);
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
    Rules, PlanLayout,
    testing::Values(
        Case{"period", "period is 0", [](Plan& p) { p.period = 0; }},
        Case{"buffers", "buffers is 0", [](Plan& p) { p.buffers = 0; }},
        Case{"unnamed_link", "empty name", [](Plan& p) { p.links[0].name.clear(); }},
        Case{"same_name", "two links are named wire",
             [](Plan& p) { p.links.push_back(p.links[0]); }},
        Case{"negative_credit", "positive", [](Plan& p) { p.links[0].credit_bytes = -1; }},
        Case{"negative_messages", "positive", [](Plan& p) { p.links[0].credit_messages = -1; }},
        Case{"unordered_credit", "keeps the order",
             [](Plan& p) {
               p.links[0].plan_order = false;
               p.links[0].credit_messages = 1;
             }},
        Case{"unfused_without_limit", "kept apart", [](Plan& p) { p.links[0].fusion = false; }},
        Case{"too_many_unfused", "kept apart",
             [](Plan& p) {
               p.links[0].fusion = false;
               p.links[0].credit_messages = 9;
             }},
        Case{"negative_arena", "negative size", [](Plan& p) { p.arenas[0].elements = -8; }},
        Case{"arena_of_slot", "slot 1 names arena 1", [](Plan& p) { p.slots[1].arena = 1; }},
        Case{"arena_of_bucket", "bucket 1 names arena -1",
             [](Plan& p) { p.buckets[1].arena = -1; }},
        Case{"slot_outside", "slot 2 is [16, 25)", [](Plan& p) { p.slots[2].end = 25; }},
        Case{"empty_slot", "not empty", [](Plan& p) { p.slots[2].end = p.slots[2].begin; }},
        Case{"misaligned_slot", "multiples of 16", [](Plan& p) { p.slots[2].begin += 1; }},
        Case{"misaligned_bucket", "multiples of 16",
             [](Plan& p) {
               p.buckets[1].end += 2;
               p.buckets[2].begin += 2;
             }},
        Case{"short_slot", "header of 16 bytes", [](Plan& p) { p.slots[1].end -= 5; }},
        Case{"overlapping_slots", "slots do not overlap", [](Plan& p) { p.slots[0].end += 4; }},
        Case{"gap", "tile", [](Plan& p) { p.buckets[1].begin += 4; }},
        Case{"overlap", "tile", [](Plan& p) { p.buckets[1].begin -= 4; }},
        Case{"short_tiling", "end at 20 of 24", [](Plan& p) { p.buckets[2].end -= 4; }},
        Case{"empty_bucket", "carries none", [](Plan& p) { p.slots.pop_back(); }}),
    [](const auto& parameters) { return parameters.param.name; });

}  // namespace
}  // namespace deft
