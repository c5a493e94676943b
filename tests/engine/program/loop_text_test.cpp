#include "engine/program/loop_text.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

std::string text_of(OpKind kind, Loop loop, const char* torus) {
  Op op;
  op.kind = kind;
  op.axes = Axes::parse("x");
  op.loop = loop;
  return loop_text(op, Torus::parse(torus));
}

TEST(LoopText, ByEye) {
  EXPECT_EQ(text_of(OpKind::all_gather, Loop::one_way, "3x1x1"),
            "ring of 3 over x, one-way: chip j takes chunks j, j-1, j+1");
}

}  // namespace
}  // namespace shardproof
