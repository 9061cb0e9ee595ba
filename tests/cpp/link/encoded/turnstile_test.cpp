#include "core/link/encoded/turnstile.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace deft {
namespace {

class TurnstileTest : public testing::Test {
 protected:
  Turnstile::Send named(const std::string& name) {
    return [this, name] { passed_.push_back(name); };
  }

  Turnstile turnstile_;
  std::vector<std::string> passed_;
};

TEST_F(TurnstileTest, NoneComesBetweenTwoStages) {
  turnstile_.pass(named("a"), false);
  turnstile_.pass(named("b"), true);
  turnstile_.pass(named("c"), true);
  turnstile_.pass(named("d"), false);
  EXPECT_EQ(passed_, (std::vector<std::string>{"a", "b"}));
  turnstile_.open(named("b2"));
  EXPECT_EQ(passed_, (std::vector<std::string>{"a", "b", "b2", "c"}));
  turnstile_.open(named("c2"));
  EXPECT_EQ(passed_, (std::vector<std::string>{"a", "b", "b2", "c", "c2", "d"}));
}

TEST_F(TurnstileTest, ASecondStageThatComesFromWithinTheFirstKeepsTheOrder) {
  turnstile_.pass(
      [this] {
        passed_.emplace_back("a");
        turnstile_.pass(named("b"), false);
        turnstile_.open(named("a2"));
      },
      true);
  EXPECT_EQ(passed_, (std::vector<std::string>{"a", "a2", "b"}));
}

}  // namespace
}  // namespace deft
