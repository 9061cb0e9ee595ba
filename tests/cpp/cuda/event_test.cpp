#include "cuda/event.h"

#include <gtest/gtest.h>

#include <string>

namespace {

TEST(Event, IsDoneAfterItsStream) {
  if (deft_cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device, or built without nvcc";
  void* event = deft_cuda_event_create(0);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(deft_cuda_event_record(0, event, nullptr), 0);
  int done = 0;
  while (done == 0) done = deft_cuda_event_query(event);
  EXPECT_EQ(done, 1) << deft_cuda_error(done);
  EXPECT_EQ(deft_cuda_stream_capturing(nullptr), 0);
  EXPECT_EQ(deft_cuda_event_destroy(event), 0);
}

TEST(Event, FailsWithAReasonWhereThereIsNoDevice) {
  const int count = deft_cuda_device_count();
  ASSERT_GE(count, 0) << deft_cuda_error(count);
  EXPECT_EQ(deft_cuda_event_create(count), nullptr) << "one past the last device";
  EXPECT_FALSE(std::string(deft_cuda_error(-1)).empty());
  if (deft_cuda_built() == 1) return;
  EXPECT_LT(deft_cuda_event_record(0, nullptr, nullptr), 0);
  EXPECT_LT(deft_cuda_event_query(nullptr), 0);
  EXPECT_LT(deft_cuda_stream_capturing(nullptr), 0);
  EXPECT_LT(deft_cuda_event_destroy(nullptr), 0);
  EXPECT_NE(std::string(deft_cuda_error(-1)).find("not built"), std::string::npos);
}

}  // namespace
