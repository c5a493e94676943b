// Whole runs with faults of sums that lean dumps lack, and of a draft that is left in the caches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "golden/trace/verdict/wrong_value.h"
#include "tests/golden/diagnosis/planted.h"
#include "tests/golden/trace/engine.h"

namespace shardproof::dump {
namespace {

using diagnosis::expect_first;
using diagnosis::Hypothesis;
using diagnosis::text;

/// What is said of the first divergence, `first`.
std::vector<Hypothesis> causes_of(const ExactRun& run, const dump::Dump& d,
                                  const std::string& first) {
  ExactRun::Read read(run, d);
  const Verdict verdict = judge(read.values, read.claim, read.reference);
  EXPECT_EQ(first_of(verdict), first);
  return diagnosed(verdict, read.values, read.claim, read.reference);
}

const std::string kWide =
    " batch=2 prompt=8 gen=3 seed=3 model=llama,layers=2,E=32,F=48,H=8,K=4,Q=8,V=40 ";

class SumsOfChips : public testing::Test {
 protected:
  /// The run with zeros in that block of four of a weight's rows, in layer 1.
  void leave_out(const std::string& weight, std::size_t block) {
    Floats& w = engine.weights.at("layer1." + weight);
    for (std::size_t i = 0; i < w.size(); ++i)
      if (i / (w.size() / 4) == block) w[i] = 0;
  }
  std::vector<Hypothesis> said() {
    return causes_of(run, engine.trace(kLean), "prefill.c0.layer1.out");
  }

  const ExactRun run{"torus=4x1x1" + kWide};
  Engine engine{run};
};

TEST_F(SumsOfChips, ABlockIsMissingInOneOfThem) {
  leave_out("wo", 2);
  expect_first(said(),
               "partial sum missing [x]: block 2 of 4 over x is left out, in attn_out, which the "
               "dump lacks");
}

TEST_F(SumsOfChips, ABlockIsMissingInBoth) {
  leave_out("wo", 3), leave_out("w_out", 3);
  expect_first(said(),
               "partial sum missing [x]: block 3 of 4 over x is left out, in attn_out and ffn_out, "
               "which the dump lacks");
}

TEST_F(SumsOfChips, BlocksOfDifferentChipsAreNoFaultOfOne) {
  leave_out("wo", 3), leave_out("w_out", 1);
  for (const Hypothesis& h : said()) EXPECT_FALSE(h.explains) << h.fault << ": " << h.detail;
}

class Drafts : public testing::Test {
 protected:
  /// Caches in which slot 7 of the prefill has what change() makes of other tokens' entry.
  std::vector<Hypothesis> said(const std::function<float(float)>& change) {
    Engine drafts(run), engine(run);
    drafts.prompt["prefill.c1"] = {11, 29};
    std::map<std::string, Floats> left;
    for (const Written& w : drafts.values())
      left[w.name] = Floats(w.numbers.begin(), w.numbers.end());
    engine.in_cache = [&](const std::string& name, Floats& cache) {
      if (!name.starts_with("decode.1.")) return;
      const Floats& other = left.at("prefill.c1." + name.substr(name.find("layer")));
      const std::size_t slot = other.size() / 16, row = slot * 9;
      for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t i = 0; i < slot; ++i)
          cache[b * row + 7 * slot + i] = change(other[(b * 8 + 7) * slot + i]);
    };
    return causes_of(run, engine.trace(kHooks), "decode.1.layer0.k_cache");
  }

  const ExactRun run{"torus=1x1x1 chunk=7" + kWide};
};

TEST_F(Drafts, AreNamedByTheirTokens) {
  expect_first(said([](float v) { return v; }),
               "stale slot: slot 7 of row 0 holds what token 11 has there, as of a rejected draft; "
               "2 slots of 18 are wrong");
  for (const Hypothesis& h : said([](float v) { return 0.99F * v; }))
    EXPECT_FALSE(h.explains) << h.fault << ": " << h.detail;
}

}  // namespace
}  // namespace shardproof::dump
