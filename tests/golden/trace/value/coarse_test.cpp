#include "golden/trace/value/coarse.h"

#include <gtest/gtest.h>

namespace shardproof::dump {
namespace {

TEST(Coarse, OfEachEncoding) {
  const auto expect = [](NumberFormat encoding, double unit, double least) {
    EXPECT_EQ(coarse_of(encoding).unit, unit) << to_string(encoding);
    EXPECT_EQ(coarse_of(encoding).least, least) << to_string(encoding);
  };
  expect(NumberFormat::f32, 0x1p-24, 0x1p-150);
  expect(NumberFormat::bf16, 0x1p-8, 0x1p-134);
  expect(NumberFormat::f16, 0x1p-11, 0x1p-25);
  for (const NumberFormat exact :
       {NumberFormat::f64, NumberFormat::int8, NumberFormat::int32, NumberFormat::int64})
    expect(exact, 0.0, 0.0);
}

}  // namespace
}  // namespace shardproof::dump
