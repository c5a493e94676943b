// Replay over the oracle's own values: an exact run is within, in whatever arithmetic is declared,
// what the dump lacks is replayed, and what that leaves too wide is loose.
#include "golden/bounds/value/replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/golden/oracle_run.h"
#include "tests/weights/expect_error.h"
#include "weights/model/registry.h"

namespace shardproof::bounds {
namespace {

/// An answer of the oracle as somebody's dump.
class Dumped : public OracleRun {
 public:
  explicit Dumped(const std::string& keys)
      : OracleRun("batch=2 prompt=4 chunk=3 gen=3 seed=2 " + keys) {
    for (auto& [id, value] : values()) dump[id] = value;
    if (plan.source_case.numerics.act == NumberFormat::bf16) declared.values = NumberFormat::bf16;
  }

  ValueVerdict judge(const std::string& id) {
    return Replay(changed_ ? *changed_ : weights(), plan.passes, ids, dump, declared).judge(id);
  }
  Replay replay() const { return {weights(), plan.passes, ids, dump, declared}; }
  /// Every value is within, or of the given fit.
  void expect_within(const std::string& what, Fit most) {
    for (const auto& [id, value] : dump) {
      const ValueVerdict j = judge(id);
      EXPECT_LE(j.fit, most) << what << " " << id << " " << j.actual << " in [" << j.expected.low
                             << ", " << j.expected.high << "]";
    }
  }
  void expect_within(const std::string& what) {
    // Of bf16 every way of rounding is open, which is more than a hundredth of small values.
    expect_within(what, declared.values == NumberFormat::bf16 ? Fit::near : Fit::within);
  }
  void without(const std::set<std::string>& names) {
    std::erase_if(dump, [&](const auto& entry) {
      return names.contains(entry.first.substr(entry.first.rfind('.') + 1));
    });
  }

  /// From now on one element of a weight is another than in the run.
  template <class To>
  void change(const std::string& weight, std::size_t i, To&& to) {
    std::map<std::string, Tensor> tensors = weights().tensors();
    float& v = tensors.at(weight).data.at(i);
    v = to(v);
    changed_.emplace(weights().config(), std::move(tensors), weights().stored_type());
  }

  Replay::Dump dump;
  DeclaredArithmetic declared;

 private:
  std::optional<Weights> changed_;
};

const std::string kModel = "model=palm-tiny,layers=2,E=32,F=48,H=4,K=2,Q=8,V=24";

TEST(Replay, OfTheOracleIsWithin) {
  for (const std::string keys :
       {"", ",norm=layernorm,bias=all", ",ffn=geglu", ",ffn=gelu", ",ffn=gelu-erf", ",rope=alibi",
        ",rope=interleaved,rotary=0.5", ",rope=none", ",tied=false,unembed_bias=true",
        ",embed_scale=1.7", " block=serial", " act=bf16", " weights=bf16 act=bf16", ",cache=bf16",
        " weights=int8", " weights=int8 act=bf16", " weights=int8 block=serial",
        ",norm=layernorm,bias=all weights=int8"}) {
    Dumped d(kModel + keys);
    EXPECT_GT(d.dump.size(), 100U) << keys;
    d.expect_within(keys);
    if (keys.find("int8") == std::string::npos) continue;
    // Of codes as they are stored, also with what the matrices' products are made of replayed.
    d.without({"norm", "norm2", "attn", "gate", "up", "hidden"});
    d.expect_within(keys + ", replayed", Fit::unlikely);
  }
}

// Another arithmetic that is assumed is the one that is computed with, of products too.
TEST(Replay, AssumesAnotherArithmetic) {
  Dumped d(kModel);
  const std::string id = checkpoint_id("decode.1", 1, "q");
  Replay replay = d.replay();
  d.declared.sums = NumberFormat::bf16;
  replay.assume(d.declared);
  const IntervalTensor assumed = replay.expected(id), declared = d.replay().expected(id);
  EXPECT_EQ(assumed.center, declared.center);
  EXPECT_EQ(assumed.radius, declared.radius);
}

// What a sum is before its bias: of contractions alone.
TEST(Replay, RawSumsAreThoseOfContractions) {
  Dumped d(kModel + ",bias=all");
  Replay replay = d.replay();
  for (const char* name : {"norm", "q_rot", "max", "exp", "hidden", "out"})
    EXPECT_FALSE(replay.expected_raw(checkpoint_id("decode.1", 1, name)).has_value()) << name;
  for (const char* name : {"q", "score", "denom", "attn", "gate", "block_out"}) {
    const std::string id = checkpoint_id("decode.1", 1, name);
    const std::optional<IntervalTensor> raw = replay.expected_raw(id);
    ASSERT_TRUE(raw.has_value()) << name;
    const bool follows = std::string(name) != "denom";
    EXPECT_EQ(raw->center != replay.expected(id).center, follows) << name;
  }
}

// Each way of rounding by itself is what follows where the file pins that one.
TEST(Replay, VariantsAreThePinnedWays) {
  for (const char* keys : {",bias=all", ",ffn=geglu", " weights=int8"}) {
    Dumped d(kModel + keys);
    d.declared.values = NumberFormat::bf16;
    for (const auto& [name, formula] :
         std::vector<std::pair<std::string, std::string_view>>{{"norm", "norm"},
                                                               {"q", "sum"},
                                                               {"v", "sum"},
                                                               {"attn", "attn"},
                                                               {"gate", "sum"},
                                                               {"block_out", "sum"},
                                                               {"out", "out"}}) {
      const std::string id = checkpoint_id("decode.1", 1, name);
      Replay replay = d.replay();
      const std::vector<Replay::Variant> variants = replay.variants(id);
      const auto ways = ways_of(formula, d.declared);
      ASSERT_EQ(variants.size(), ways.size()) << id;
      for (std::size_t w = 0; w < variants.size(); ++w) {
        std::string places;
        for (const RoundingPlace& place : rounding_places())
          if (place.formula == formula && ways[w].rounds(place.key) == Rounds::each)
            places += (places.empty() ? "" : "+") + std::string(place.key);
        Dumped pinned(kModel + keys);
        pinned.declared = d.declared;
        pinned.declared.rounding = std::string(formula) + ":" + places;
        const IntervalTensor expected = pinned.replay().expected(id);
        EXPECT_EQ(variants[w].value.center, expected.center) << id << " " << variants[w].words;
        EXPECT_EQ(variants[w].value.radius, expected.radius) << id << " " << variants[w].words;
      }
    }
  }
}

// attn of q and the caches alone, with each probability rounded to bf16: the plain sum lies inside,
// and so does none that leaves out a key.
TEST(Replay, RoundedProbabilitiesOfFusedAttention) {
  Dumped d(kModel);
  d.declared.values = NumberFormat::bf16;
  d.declared.rounding = "attn:probs";
  d.without({"score", "max", "exp", "denom", "probs"});
  const auto value = [&](const char* name) -> const IntervalTensor& {
    return d.dump.at(checkpoint_id("decode.1", 1, name));
  };
  const IntervalTensor &q = value("q_rot"), &k = value("k_cache"), &v = value("v_cache");
  Replay replay = d.replay();
  const IntervalTensor expected = replay.expected(checkpoint_id("decode.1", 1, "attn"));
  const std::size_t B = 2, H = 4, K = 2, Q = 8, M = k.size() / (B * K * Q);
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t h = 0; h < H; ++h) {
      std::vector<double> p(M);
      double sum = 0.0;
      for (std::size_t j = 0; j < M; ++j) {
        double score = 0.0;
        for (std::size_t c = 0; c < Q; ++c)
          score += q.center[(b * H + h) * Q + c] * k.center[((b * M + j) * K + h * K / H) * Q + c];
        sum += p[j] = std::exp(score / std::sqrt(static_cast<double>(Q)));
      }
      for (double& one : p) one = nearest(one / sum, NumberFormat::bf16);
      for (std::size_t c = 0; c < Q; ++c) {
        const std::size_t at = (b * H + h) * Q + c;
        const auto mean_without = [&](std::size_t left_out) {
          double mean = 0.0;
          for (std::size_t j = 0; j < M; ++j)
            if (j != left_out) mean += p[j] * v.center[((b * M + j) * K + h * K / H) * Q + c];
          return mean;
        };
        const auto off = [&](double mean) { return std::abs(mean - expected.center[at]); };
        EXPECT_LE(off(mean_without(M)), expected.radius[at]) << b << " " << h << " " << c;
        for (const std::size_t j : {std::size_t{0}, M - 1})
          if (std::abs(mean_without(j) - mean_without(M)) > 3 * expected.radius[at]) {
            EXPECT_GT(off(mean_without(j)), expected.radius[at]) << b << " " << h << " " << c;
          }
      }
    }
}

TEST(Replay, FindsAWrongValueAndBlamesNoLaterOne) {
  Dumped d(kModel);
  for (const char* name : {"embed", "norm", "q", "k_rot", "v_cache", "score", "max", "exp", "denom",
                           "attn", "gate", "up", "hidden", "block_out", "out", "logits"}) {
    const std::string id = checkpoint_id("decode.1", 1, name);
    double& v = d.dump.at(id).center.at(1);
    const double was = v;
    v = v * 1.01 + 0.01;
    const ValueVerdict j = d.judge(id);
    EXPECT_EQ(j.fit, Fit::different) << id;
    EXPECT_EQ(j.actual, v);
    EXPECT_EQ(j.index.back(), 1) << id;
    EXPECT_TRUE(j.expected.low <= was && was <= j.expected.high);
    EXPECT_EQ(d.judge(checkpoint_id("decode.2", 1, "gate")).fit, Fit::within);
    v = NAN;
    EXPECT_EQ(d.judge(id).fit, Fit::different) << id;
    v = was;
  }
}

TEST(Replay, CarriesOverWhatTheDumpLacks) {
  Dumped d(kModel);
  const ValueVerdict forced = d.judge("decode.1.layer1.attn");
  d.without({"score", "max", "exp", "denom", "q", "q_rot"});
  const ValueVerdict replayed = d.judge("decode.1.layer1.attn");
  EXPECT_EQ(replayed.fit, Fit::within);
  EXPECT_GT(replayed.reach, forced.reach);
  // A wrong operand of a value that is absent is seen in the next one that is there.
  d.dump.at("decode.1.layer1.norm").center[3] += 0.5;
  EXPECT_EQ(d.judge("decode.1.layer1.attn").fit, Fit::different);
}

// A cache of bf16 holds rounded values whether it is in the dump or not.
TEST(Replay, CachesOfBf16ThatTheDumpLacksAreRounded) {
  for (const std::set<std::string>& absent : std::vector<std::set<std::string>>{
           {"k_cache"}, {"v_cache"}, {"k_cache", "v_cache"}, {"k_cache", "k_rot", "v"}}) {
    Dumped d(kModel + ",cache=bf16");
    d.without(absent);
    d.expect_within("without " + *absent.begin(), Fit::unlikely);
  }
}

TEST(Replay, WiderThanAHundredthIsLoose) {
  Dumped d(kModel + " act=bf16");
  const std::string id = "decode.1.layer1.block_out";
  EXPECT_EQ(d.judge(id).fit, Fit::within);
  d.without({"gate", "up", "hidden", "norm"});
  const ValueVerdict j = d.judge(id);
  EXPECT_EQ(j.fit, Fit::loose);
  EXPECT_GT(j.reach, 0.01);
  // The name of what it cannot say: a value outside of even that is different.
  for (double& v : d.dump.at(id).center) v += 100.0;
  EXPECT_EQ(d.judge(id).fit, Fit::different);
}

/// One code more in one place: of a value of every matrix that is kept so, seen on its own column.
TEST(Replay, SeesOneCodeOffByOne) {
  const std::map<std::string, std::string> values{
      {"wq", "q"},    {"wk", "k"},         {"wv", "v"},           {"w_gate", "gate"},
      {"w_up", "up"}, {"wo", "block_out"}, {"w_out", "block_out"}};
  for (const auto& [matrix, value] : values)
    for (const bool replayed : {false, true}) {
      Dumped d(kModel + " weights=int8");
      const std::string id = "decode.1.layer1." + value;
      ASSERT_EQ(d.judge(id).fit, Fit::within);
      d.change("layer1." + matrix, 5, [](float code) { return code < 127 ? code + 1 : code - 1; });
      // Its operands as dumped, or what they are made of.
      if (replayed) d.without({"norm", "attn", "hidden"});
      EXPECT_EQ(d.judge(id).fit, Fit::different) << matrix << " " << replayed;
      EXPECT_EQ(d.judge("decode.1.layer0." + value).fit, Fit::within) << matrix;
    }
  // A scale that is off by one unit in its last place of bf16, too.
  Dumped d(kModel + " weights=int8");
  d.change("layer1.w_gate_scale", 0, [](float scale) { return scale * (1 + 0x1p-8F); });
  EXPECT_EQ(d.judge("decode.1.layer1.gate").fit, Fit::different);
}

TEST(Replay, AValueOfBf16HasItsDigits) {
  Dumped d(kModel + " act=bf16");
  const std::string id = "decode.1.layer1.block_out";
  d.without({"gate", "up", "hidden", "norm"});
  ASSERT_EQ(d.judge(id).fit, Fit::loose);
  // Far inside of a wide interval, but no bf16.
  double& v = d.dump.at(id).center.at(3);
  v *= 1 + 0x1p-20;
  ASSERT_EQ(d.judge(id).fit, Fit::different);
  EXPECT_EQ(d.judge(id).index.back(), 3);
}

TEST(Replay, NothingIsWithinThatIsNotFinite) {
  Dumped d(kModel);
  // The sum of these two overflows, as f32.
  for (const char* name : {"decode.1.layer0.out", "decode.1.layer1.block_out"})
    d.dump.at(name).center.at(2) = static_cast<double>(3e38F);
  double& sum = d.dump.at("decode.1.layer1.out").center.at(2);
  sum = INFINITY;
  EXPECT_EQ(d.judge("decode.1.layer1.out").fit, Fit::not_judged);
  sum = static_cast<double>(3e38F);
  EXPECT_EQ(d.judge("decode.1.layer1.out").fit, Fit::different);
  // Of an operand that is none, nothing follows; what it is itself shows on it alone.
  d.dump.at("decode.1.layer0.denom").center.at(0) = 0.0;
  EXPECT_EQ(d.judge("decode.1.layer0.denom").fit, Fit::different);
  EXPECT_EQ(d.judge("decode.1.layer0.attn").fit, Fit::not_judged);
}

// Centers count as exact where a derivation that rounds nothing has the same ones, and whatever is
// declared to round, of the trace, on the wire or of one other value, they do not.
TEST(Replay, CentersAreExactWhereNothingRounds) {
  DeclaredArithmetic coarse, on_wire;
  coarse.values = NumberFormat::bf16;
  on_wire.wire = NumberFormat::bf16, on_wire.wire_roundings = 3;
  for (const std::string keys : {"", ",bias=all", " weights=int8"})
    for (const int rounds : {0, 1, 2, 3, 4}) {
      Dumped d(kModel + keys);
      if (rounds == 1) d.declared = coarse;
      if (rounds == 2) d.declared = on_wire;
      Replay replay = d.replay();
      if (rounds == 3) replay.declare("decode.1.layer0.norm", coarse);
      if (rounds == 4) replay.declare("decode.1.layer0.norm", on_wire);
      bool differ = false;
      for (const std::string name : {"q", "k", "v", "gate", "up", "attn_out", "ffn_out"}) {
        const std::string id = "decode.1.layer1." + name;
        const IntervalTensor declared = replay.expected(id);
        replay.make_exactly(true);
        const IntervalTensor exact = replay.expected(id);
        replay.make_exactly(false);
        EXPECT_EQ(replay.has_exact_centers(id), rounds == 0) << id << keys << rounds;
        if (rounds == 0) {
          EXPECT_EQ(declared.center, exact.center) << id << keys;
        }
        differ = differ || declared.center != exact.center;
      }
      // Own declarations are not looked up by what a value is made of.
      if (rounds == 1 && !keys.empty()) {
        EXPECT_TRUE(differ) << keys;
      }
    }
}

TEST(Replay, RefusesWhatItCannotJudge) {
  Dumped d(kModel);
  EXPECT_EQ(label_of([&] { d.judge("decode.1.layer1.nonsense"); }), "bounds_c1");
  EXPECT_EQ(label_of([&] { d.judge("decode.9.layer1.gate"); }), "bounds_c1");
  d.dump["decode.1.layer0.gate"].shape = {1};
  EXPECT_EQ(label_of([&] { d.judge("decode.1.layer0.hidden"); }), "bounds_c1");
  EXPECT_EQ(label_of([&] { d.judge("decode.1.layer0.gate"); }), "bounds_c1");
  d.dump.erase("decode.1.layer0.up");
  EXPECT_EQ(label_of([&] { d.judge("decode.1.layer0.up"); }), "bounds_c1");
}

// What sums of matrices are kept as is another thing than those of attention and norms.
TEST(Replay, SumsOfMatricesAreDeclaredByThemselves) {
  Dumped d(kModel);
  d.declared.matrix_sums = NumberFormat::bf16;
  const std::set<std::string> products{"q",  "k",        "v",       "gate",
                                       "up", "attn_out", "ffn_out", "block_out"};
  for (const char* const name :
       {"q", "k", "v", "gate", "up", "attn_out", "ffn_out", "block_out", "norm", "score", "denom",
        "attn", "hidden", "out", "logits", "embed", "no value"})
    EXPECT_EQ(is_matrix_product(name), products.contains(name)) << name;
  for (const std::string name : {"q", "norm", "attn"})
    EXPECT_EQ(d.replay().declared({"prefill.c0", 0, name}).sums,
              products.contains(name) ? NumberFormat::bf16 : NumberFormat::f32);
}

}  // namespace
}  // namespace shardproof::bounds
