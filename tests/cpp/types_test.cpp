#include "core/types.h"

#include <gtest/gtest.h>

namespace deft {
namespace {

TEST(Types, WindowsAreOrderedByStepThenStage) {
  const Window forward{4, Stage::kForward};
  const Window backward{4, Stage::kBackward};
  const Window next{5, Stage::kForward};
  EXPECT_LT(forward, backward);
  EXPECT_LT(backward, next);
  EXPECT_EQ(forward, (Window{4, Stage::kForward}));
}

TEST(Types, SizesAreThoseOfTheWire) {
  EXPECT_EQ(bytes_of(DType::kUInt8), 1);
  EXPECT_EQ(bytes_of(DType::kInt8), 1);
  EXPECT_EQ(bytes_of(DType::kInt16), 2);
  EXPECT_EQ(bytes_of(DType::kFloat16), 2);
  EXPECT_EQ(bytes_of(DType::kFloat32), 4);
  EXPECT_EQ(bytes_of(DType::kInt32), 4);
  EXPECT_EQ(bytes_of(DType::kFloat64), 8);
  EXPECT_EQ(bytes_of(DType::kInt64), 8);
}

TEST(Types, CodesAreWholeNumbersThatTravelAsSums) {
  for (const DType code : {DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32}) {
    EXPECT_TRUE(is_code(code));
  }
  for (const DType other : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt64}) {
    EXPECT_FALSE(is_code(other));
  }
}

TEST(Types, NamesAreThoseOfThePlan) {
  EXPECT_STREQ(name_of(Op::kAllReduce), "all_reduce");
  EXPECT_STREQ(name_of(Op::kReduceScatter), "reduce_scatter");
  EXPECT_STREQ(name_of(Op::kAllGather), "all_gather");
  EXPECT_STREQ(name_of(Op::kBroadcast), "broadcast");
  EXPECT_STREQ(name_of(Op::kAllToAll), "all_to_all");
  EXPECT_STREQ(name_of(Stage::kForward), "forward");
  EXPECT_STREQ(name_of(Stage::kBackward), "backward");
}

TEST(Types, OnlyOkIsOk) {
  EXPECT_TRUE(LinkStatus{}.ok());
  EXPECT_FALSE((LinkStatus{Outcome::kAborted, "peer"}.ok()));
  EXPECT_FALSE((LinkStatus{Outcome::kInvalid, "shape"}.ok()));
}

}  // namespace
}  // namespace deft
