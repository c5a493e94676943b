// `run` and `verify` on two slices.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

using SplitVerb = Cli;

constexpr const char* kCase =
    " --model palm-tiny,layers=2,E=12,F=12,H=6,Q=4,V=12 --batch 6 --gen 4 --prefill ws2d:heads "
    "--decode ws2d:batch --seed 3 ";

TEST_F(SplitVerb, RunGeneratesTheTokensOfOneTorus) {
  const Outcome one = run(std::string("run --torus 2x1x3") + kCase);
  EXPECT_EQ(one.code, 0) << one.err;
  for (const char* tori :
       {"--torus 2x1x3 --decode-torus 1x3x1", "--torus 1x3x1 --decode-torus 3x2x1",
        "--torus 1x1x1 --decode-torus 1x1x1"}) {
    const Outcome two = run(std::string("run ") + tori + kCase);
    EXPECT_EQ(two.code, 0) << two.err;
    EXPECT_EQ(two.out, one.out) << tori;
  }
}

TEST_F(SplitVerb, VerifyJudgesBoth) {
  const Outcome o = run(std::string("verify --torus 2x1x3 --decode-torus 1x3x1") + kCase);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("decode_torus=1x3x1"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("1 case: 1 equal"), std::string::npos) << o.out;
  const Outcome json = run(std::string("verify --json --hazards full --torus 2x1x3 --decode-torus "
                                       "1x3x1 --regime f32") +
                           kCase);
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_NE(json.out.find("torus=2x1x3 decode_torus=1x3x1 model="), std::string::npos) << json.out;
}

TEST_F(SplitVerb, RefusesInOneLine) {
  const auto refused = [&](const std::string& arguments, const std::string& label) {
    const Outcome o = run(arguments);
    EXPECT_EQ(o.code, 2) << arguments;
    EXPECT_EQ(o.out, "") << arguments;
    EXPECT_TRUE(o.err.starts_with("shardproof: " + label)) << o.err;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
  };
  refused("run --decode-torus 2x2", "torus_c0: ");
  refused("run --decode-torus 1x1x1 --gen 1", "case_split: ");
  refused("run --decode-torus 5x1x1", "strategy_c3: ws2d:heads on torus 5x1x1 needs ");
  refused("run --decode-torus 1x1x1 --trace t.h5", "case_split: decode_torus=1x1x1: a trace ");
  refused("golden write --case \"decode_torus=1x1x1\" --out g.npz", "case_split: ");
  EXPECT_EQ(files(), 0U);
}

}  // namespace
