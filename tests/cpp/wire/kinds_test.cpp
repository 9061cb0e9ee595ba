#include "wire/kinds.h"

#include <gtest/gtest.h>

#include "core/errors.h"
#include "wire/codec.h"

namespace deft::wire {
namespace {

TEST(Kinds, EveryProcessorRunsTheReferenceAndThePortableOne) {
  ASSERT_GE(kinds_here().size(), 2U);
  EXPECT_EQ(kinds_here()[0], Kind::kReference);
  EXPECT_EQ(kinds_here()[1], Kind::kPortable);
}

TEST(Kinds, NamesComeBackAndAutoIsTheBest) {
  for (const Kind kind : kinds_here()) EXPECT_EQ(kind_of(name_of(kind)), kind);
  EXPECT_EQ(kind_of("auto"), kinds_here().back());
  EXPECT_EQ(Codec().kind(), kinds_here().back());
  EXPECT_THROW((void)kind_of("mmx"), WireError);
}

TEST(Kinds, WhatTheProcessorCannotRunIsRefused) {
  for (const Kind kind : {Kind::kAvx2, Kind::kAvx512}) {
    if (kind <= kinds_here().back()) {
      EXPECT_EQ(Codec(kind).kind(), kind);
    } else {
      EXPECT_THROW(Codec{kind}, WireError);
      EXPECT_THROW((void)kind_of(name_of(kind)), WireError);
    }
  }
}

}  // namespace
}  // namespace deft::wire
