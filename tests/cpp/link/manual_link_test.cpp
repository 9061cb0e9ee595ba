#include "core/link/manual_link.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/errors.h"

namespace deft {
namespace {

class ManualLinkTest : public testing::Test {
 protected:
  void send(Link& link, const std::string& name) {
    Message message;
    message.name = name;
    link.send(std::move(message), [this, name](const LinkStatus& status) {
      ended_.push_back(name + (status.ok() ? "" : ":" + status.reason));
    });
  }

  std::vector<std::string> ended_;
};

TEST_F(ManualLinkTest, EndsMessagesWhenTold) {
  ManualLink link;
  send(link, "a");
  send(link, "b");
  send(link, "c");
  EXPECT_EQ(link.pending(), (std::vector<std::string>{"a", "b", "c"}));
  link.complete("b", Outcome::kAborted, "peer died");
  EXPECT_TRUE(link.complete_oldest());
  EXPECT_EQ(ended_, (std::vector<std::string>{"b:peer died", "a"}));
  EXPECT_EQ(link.sent(), 3);
  EXPECT_THROW(link.complete("b"), ExecutorError);
  EXPECT_TRUE(link.complete_oldest());
  EXPECT_FALSE(link.complete_oldest());
}

TEST_F(ManualLinkTest, ImmediateEndsInsideSend) {
  ManualLink link(true);
  send(link, "a");
  EXPECT_EQ(ended_, (std::vector<std::string>{"a"}));
  EXPECT_TRUE(link.pending().empty());
  EXPECT_EQ(link.sent(), 1);
}

}  // namespace
}  // namespace deft
