#include "cuda/wire/wire_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "cuda/event.h"

namespace {

TEST(WireCodec, FailsWithAReasonInsteadOfTouchingMemory) {
  const DeftWire wire = {4, 256, deft_cuda_device_count()};  // one past the last device
  float values[256] = {};
  alignas(4) unsigned char message[260] = {};
  const int encoded = deft_wire_encode(&wire, values, nullptr, message, nullptr);
  EXPECT_LT(encoded, 0);
  EXPECT_FALSE(std::string(deft_cuda_error(encoded)).empty());
  EXPECT_LT(deft_wire_decode(&wire, message, values, 0, nullptr), 0);
}

TEST(WireCodec, RefusesWhatCannotBe) {
  float values[256] = {};
  alignas(4) unsigned char message[264] = {};
  const DeftWire unknown = {6, 256, 0};
  const DeftWire negative = {4, -1, 0};
  const DeftWire good = {4, 256, 0};
  EXPECT_LT(deft_wire_encode(&unknown, values, nullptr, message, nullptr), 0);
  EXPECT_LT(deft_wire_encode(&negative, values, nullptr, message, nullptr), 0);
  EXPECT_LT(deft_wire_encode(nullptr, values, nullptr, message, nullptr), 0);
  EXPECT_LT(deft_wire_encode(&good, nullptr, nullptr, message, nullptr), 0);
  EXPECT_LT(deft_wire_encode(&good, values, nullptr, message + 2, nullptr), 0);
  EXPECT_LT(deft_wire_decode(&good, message + 1, values, 0, nullptr), 0);
  EXPECT_LT(deft_wire_decode(&good, message, nullptr, 0, nullptr), 0);
}

TEST(WireCodec, AnEmptyMessageNeedsNoDevice) {
  const DeftWire empty = {4, 0, 0};
  const int expected = deft_cuda_built() == 1 ? 0 : -1;
  EXPECT_EQ(deft_wire_encode(&empty, nullptr, nullptr, nullptr, nullptr), expected);
  EXPECT_EQ(deft_wire_decode(&empty, nullptr, nullptr, 1, nullptr), expected);
}

}  // namespace
