// Whole runs with a mistake, as somebody's file has them: the value that it makes wrong first, and
// no cause that is none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "golden/trace/verdict/wrong_value.h"
#include "tests/golden/diagnosis/planted.h"
#include "tests/golden/trace/engine.h"

namespace shardproof::dump {
namespace {

using diagnosis::expect_none;
using diagnosis::Hypothesis;
using diagnosis::text;

struct Said {
  std::string first;  ///< the first divergence
  std::vector<Hypothesis> causes;
};
Said said_of(const ExactRun& run, const dump::Dump& d) {
  const Claim claim = read_claim(d.attributes, std::nullopt);
  const Values values = read_values(d, claim, run.weights());
  Reference reference(values, claim, run.weights());
  const Verdict verdict = judge(values, claim, reference);
  if (!verdict.first) return {};
  return {verdict.rows[*verdict.first].title, diagnosed(verdict, values, claim, reference)};
}

const std::string kGrouped =
    "torus=2x1x1 batch=2 prompt=8 gen=4 seed=3 model=llama,layers=2,E=32,F=48,H=8,K=4,Q=8,V=40 ";

/// The output matrix of both layers is zero, and that of layer 1 is as zero as that of layer 0; or
/// the logits of all passes are.
TEST(WholeRuns, ZerosWereNeverWritten) {
  const ExactRun run(kGrouped);
  for (const char* weight : {"w_out", "unembed"}) {
    Engine engine(run);
    for (auto& [name, numbers] : engine.weights)
      if (name.ends_with(weight)) std::fill(numbers.begin(), numbers.end(), 0.0F);
    const Said said = said_of(run, engine.trace(kHooks));
    EXPECT_EQ(said.first,
              std::string(weight) == "unembed" ? "prefill.c0.logits" : "prefill.c0.layer0.ffn_out");
    ASSERT_EQ(said.causes.size(), 1U) << text(said.causes);
    EXPECT_EQ(said.causes[0].fault + ": " + said.causes[0].detail, "never written: zeros");
  }
}

/// One decode step sees its newest key alone, so that both layers have the same exponentials.
TEST(WholeRuns, EqualExponentialsComeOfTheMask) {
  const ExactRun run(kGrouped);
  Engine engine(run);
  engine.sees = [](std::size_t q, std::size_t k) { return q == 9 ? k == q : k <= q; };
  const Said said = said_of(run, engine.trace(with(kHooks, {"exp"})));
  EXPECT_EQ(said.first, "decode.2.layer0.exp");
  ASSERT_FALSE(said.causes.empty());
  EXPECT_EQ(said.causes[0].fault, "mask") << text(said.causes);
  EXPECT_TRUE(said.causes[0].detail.starts_with("a query sees its own key alone"))
      << text(said.causes);
  expect_none(said.causes, "another layer's or pass's value");
}

TEST(WholeRuns, ScoresOfNoScaleHoldNoOthers) {
  const ExactRun run(kGrouped);
  Engine engine(run);
  engine.scale = 0;
  const Said said = said_of(run, engine.trace(with(kHooks, {"score"})));
  EXPECT_EQ(said.first, "prefill.c0.layer0.score");
  ASSERT_EQ(said.causes.size(), 1U) << text(said.causes);
  EXPECT_EQ(said.causes[0].fault, "never written");
}

/// Two or four parts of a decode step's keys, dealt one by one, each with its sum and its LSE.
struct Merge {
  const char* name;
  /// Of the LSE of all parts, their maxima and sums, the weight of one of them.
  float (*weight)(const Floats& lse, const Floats& top, const Floats& Z, std::size_t part);
};
const Merge kMerges[]{
    {"powers of two", [](const Floats& lse, const Floats&, const Floats&,
                         std::size_t i) { return std::exp2(lse[i] - lse[0]); }},
    {"LSE of base two", [](const Floats& lse, const Floats&, const Floats&,
                           std::size_t i) { return std::exp((lse[i] - lse[0]) / std::log(2.0F)); }},
    {"the other part's LSE",
     [](const Floats& lse, const Floats&, const Floats&, std::size_t i) {
       return std::exp(lse[(i + 1) % lse.size()] - lse[0]);
     }},
    {"equal weights",
     [](const Floats&, const Floats&, const Floats&, std::size_t) { return 1.0F; }},
    {"without the maxima",
     [](const Floats&, const Floats&, const Floats& Z, std::size_t i) { return Z[i]; }},
};

Floats merged(const Floats& s, const std::vector<const float*>& v, std::size_t parts,
              const Merge& merge) {
  Floats lse, top(parts, -INFINITY), Z(parts), out(8);
  std::vector<Floats> o(parts, Floats(8));
  for (std::size_t m = 0; m < s.size(); ++m) top[m % parts] = std::max(top[m % parts], s[m]);
  for (std::size_t m = 0; m < s.size(); ++m) {
    const float e = std::exp(s[m] - top[m % parts]);
    Z[m % parts] += e;
    for (std::size_t c = 0; c < 8; ++c) o[m % parts][c] += e * v[m][c];
  }
  for (std::size_t i = 0; i < parts; ++i) lse.push_back(top[i] + std::log(Z[i]));
  float total = 0;
  for (std::size_t i = 0; i < parts; ++i) total += merge.weight(lse, top, Z, i);
  for (std::size_t i = 0; i < parts; ++i)
    for (std::size_t c = 0; c < 8; ++c)
      out[c] += merge.weight(lse, top, Z, i) / total * o[i][c] / Z[i];
  return out;
}

/// A wrong merge is said as one, and is no rounding, whatever digits it has.
TEST(WholeRuns, WrongMergesAreNoRounding) {
  for (const char* act : {"", "act=bf16 weights=bf16"}) {
    const ExactRun run(kGrouped + act);
    for (const std::size_t parts : {2U, 4U})
      for (const Merge& merge : kMerges) {
        const std::string what = std::string(act) + " " + merge.name;
        Engine engine(run);
        engine.attention = [&](const auto& s, const auto& v) {
          return merged(s, v, s.size() > 8 ? parts : 1, merge);
        };
        for (const auto& names : {kLean, kHooks}) {
          const Said said = said_of(run, engine.trace(names));
          EXPECT_EQ(said.first, "decode.1.layer0.attn") << what;
          const std::string words =
              fmt::format("{} parts, slot m in part m mod {}: ", parts, parts);
          for (const Hypothesis& h : said.causes)
            EXPECT_TRUE(!h.explains || (h.fault == "merge of parts" && h.detail.starts_with(words)))
                << what << "\n"
                << text(said.causes);
          const bool f32 = std::string(act).empty();
          EXPECT_TRUE(!f32 || (!said.causes.empty() && said.causes[0].explains)) << what;
        }
      }
  }
}

/// Heads of wq and wo in another order are one convention only where every kv head has one query.
TEST(WholeRuns, HeadsThatMeetOtherKeysAreNoConvention) {
  const ExactRun run(kGrouped);
  Engine engine(run);
  const std::size_t order[] = {3, 6, 1, 4, 7, 2, 5, 0};
  for (const char* layer : {"layer0.", "layer1."}) {
    Floats &wq = engine.weights.at(std::string(layer) + "wq"),
           &wo = engine.weights.at(std::string(layer) + "wo");
    const Floats q = wq, o = wo;
    for (std::size_t i = 0; i < q.size(); ++i) {
      const std::size_t h = i / 8 % 8;
      wq[i] = q[i - h * 8 + order[h] * 8];
    }
    for (std::size_t i = 0; i < o.size(); ++i) {
      const std::size_t h = i / 256;
      wo[i] = o[i - h * 256 + order[h] * 256];
    }
  }
  for (const auto& names : {kHooks, with(kHooks, {"score"})}) {
    const Said said = said_of(run, engine.trace(names));
    EXPECT_EQ(said.first, "prefill.c0.layer0.q");
    ASSERT_FALSE(said.causes.empty());
    EXPECT_EQ(said.causes[0].fault, "head order") << text(said.causes);
    expect_none(said.causes, "convention");
  }
}

/// The all_to_all that gives each chip its heads again takes its chunks by zy, and not by yz.
TEST(WholeRuns, AWrongAllToAllIsNoConvention) {
  const std::string at = kGrouped.substr(kGrouped.find(' '));
  const ExactRun run("torus=2x2x2" + at);
  Engine engine(run);
  engine.part_of = [](std::size_t h) {
    const std::size_t block = h / 2;
    return (block % 2 * 2 + block / 2) * 2 + h % 2;
  };
  const Said said = said_of(run, engine.trace(kHooks, {{"q", "BLH_yzQ"}, {"attn", "BLH_yzQ"}}));
  EXPECT_EQ(said.first, "prefill.c0.layer0.attn");
  ASSERT_FALSE(said.causes.empty());
  EXPECT_TRUE(said.causes[0].explains) << text(said.causes);
  EXPECT_EQ(said.causes[0].fault, "axes in another order") << text(said.causes);
  expect_none(said.causes, "convention");
}

}  // namespace
}  // namespace shardproof::dump
