// Two traces of one model side by side: what rounding explains, who is wrong, and what is not
// known.
#include "golden/trace/pair/pair.h"

#include <gtest/gtest.h>

#include "tests/golden/trace/pair/pairs.h"

namespace shardproof::dump {
namespace {

const std::string kRun = kPairModel + " batch=2 prompt=4 gen=2 seed=3";

/// An engine in f32, and one in bf16 with the roundings of a library, on the same weights.
class Pairs : public testing::Test {
 protected:
  Pairs() : f32_(kRun + " weights=bf16"), bf16_(kRun + " weights=bf16 act=bf16") {
    Engine f32(f32_), bf16(bf16_);
    bf16.library = true;
    a = f32.trace(kAllNames);
    b = bf16.trace(kAllNames);
  }
  Pair compared() const { return pair_of(f32_, a, bf16_, b); }

  ExactRun f32_, bf16_;
  Dump a, b;
};

TEST_F(Pairs, OfATraceAndItselfAreTheSame) {
  const Pair pair = pair_of(f32_, a, a);
  EXPECT_EQ(pair.count(Likeness::same), std::ssize(pair.rows));
  EXPECT_TRUE(pair.differences.empty());
  EXPECT_EQ(pair.exit_code(), 0);
  for (const PositionOfLogits& one : pair.logits) EXPECT_EQ(one.most, 0);
}

TEST_F(Pairs, OfTwoRightEnginesAreApartByRounding) {
  const Pair pair = compared();
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  EXPECT_GT(pair.count(Likeness::rounding), 80);
  EXPECT_EQ(pair.count(Likeness::same) + pair.count(Likeness::rounding), std::ssize(pair.rows));
  EXPECT_FALSE(pair.first);
  ASSERT_EQ(pair.differences.size(), 1U);
  EXPECT_EQ(pair.differences[0].of, "numbers");
  const PairRow& out = pair_row(pair, "prefill.c0.layer1.out");
  EXPECT_EQ(out.coarser, NumberFormat::bf16);
  EXPECT_GT(out.apart.relative(), 1e-4);
  EXPECT_LT(out.apart.relative(), 0.1);
  EXPECT_GT(out.apart.units, 0.1);
  EXPECT_LT(out.apart.units, 20);
}

TEST_F(Pairs, OfAWrongValueNameItsSide) {
  for (const char* name :
       {"prefill.c0.layer0.q", "prefill.c0.layer1.attn", "decode.1.layer1.hidden",
        "decode.1.layer0.v_cache", "decode.1.logits"}) {
    for (const bool of_b : {false, true}) {
      Dump wrong = of_b ? b : a;
      shift(wrong, name, 3, 2.0);
      const Pair pair = of_b ? pair_of(f32_, a, bf16_, wrong) : pair_of(f32_, wrong, bf16_, b);
      EXPECT_EQ(first_of(pair), name);
      EXPECT_EQ(pair_row(pair, name).likeness, of_b ? Likeness::b_wrong : Likeness::a_wrong);
      EXPECT_EQ(pair.first_a.has_value(), !of_b) << name;
      EXPECT_EQ(pair.first_b.has_value(), of_b) << name;
      EXPECT_EQ(pair.count(Likeness::not_judged), 0) << open_rows(pair);
      EXPECT_EQ(pair.exit_code(), 1);
    }
  }
}

TEST_F(Pairs, OfWhatFollowsAWrongValueSayWhy) {
  Engine engine(f32_);
  for (float& gain : engine.weights["layer0.norm"]) gain *= 1.5F;
  a = engine.trace(kAllNames);
  const Pair pair = compared();
  const PairRow& q = pair_row(pair, "prefill.c0.layer0.q");
  EXPECT_EQ(q.likeness, Likeness::operands);
  EXPECT_EQ(q.why, "prefill.c0.layer0.norm is wrong in A");
  EXPECT_EQ(pair_row(pair, "decode.1.layer1.out").likeness, Likeness::operands);
  // Made of embed, which is right.
  EXPECT_EQ(pair_row(pair, "prefill.c0.embed").likeness, Likeness::same);
}

TEST_F(Pairs, OfFaultsInBothNameBoth) {
  shift(a, "decode.1.layer1.up", 1, 2.0);
  shift(b, "prefill.c0.layer0.v", 2, 2.0);
  const Pair pair = compared();
  EXPECT_EQ(first_of(pair), "prefill.c0.layer0.v");
  ASSERT_TRUE(pair.first_a && pair.first_b);
  EXPECT_EQ(pair.rows[*pair.first_a].title, "decode.1.layer1.up");
  EXPECT_EQ(pair.rows[*pair.first_b].title, "prefill.c0.layer0.v");
}

TEST_F(Pairs, WithAWrongValueThatOneHasAloneNameIt) {
  Engine engine(f32_);
  for (float& w : engine.weights["layer0.w_gate"]) w *= 1.5F;
  a = engine.trace(kAllNames);
  b.values.erase("prefill.c0.layer0.gate");
  std::erase(b.order, "prefill.c0.layer0.gate");
  const Pair pair = compared();
  EXPECT_EQ(first_of(pair), "prefill.c0.layer0.gate");
  EXPECT_EQ(pair_row(pair, "prefill.c0.layer0.hidden").likeness, Likeness::operands);
  EXPECT_EQ(pair.exit_code(), 1);
}

TEST_F(Pairs, OfGivenValuesThatDifferClaimNothingAfterThem) {
  for (Dump* const dump : {&a, &b}) dump->attributes["given"] = "layer0.attn_out";
  Pair pair = compared();
  EXPECT_EQ(pair_row(pair, "prefill.c0.layer0.attn_out").likeness, Likeness::not_judged);
  EXPECT_EQ(pair_row(pair, "prefill.c0.layer0.q").likeness, Likeness::rounding);
  const PairRow& mid = pair_row(pair, "prefill.c0.layer0.mid");
  EXPECT_EQ(mid.likeness, Likeness::operands);
  EXPECT_EQ(mid.why, "prefill.c0.layer0.attn_out is not judged");
  EXPECT_EQ(pair.exit_code(), 1);
  // What both lack passes on what its own operands differ by.
  Dump in_a = a, in_b = b;
  for (Dump* const dump : {&in_a, &in_b}) {
    dump->values.erase("prefill.c0.layer0.mid");
    std::erase(dump->order, "prefill.c0.layer0.mid");
  }
  const Pair without = pair_of(f32_, in_a, bf16_, in_b);
  EXPECT_NE(pair_row(without, "prefill.c0.layer0.norm2").likeness, Likeness::rounding);
  EXPECT_EQ(pair_row(without, "prefill.c0.layer0.norm2").why,
            "prefill.c0.layer0.attn_out is not judged");
  // The same bits are no reason.
  pair = pair_of(f32_, a, a);
  EXPECT_EQ(pair_row(pair, "prefill.c0.layer0.attn_out").likeness, Likeness::same);
}

TEST_F(Pairs, OfWhatOneTraceAloneHasClaimNothingAfterIt) {
  b.attributes["given"] = "layer0.attn_out";
  const Pair given = compared();
  const PairRow& row = pair_row(given, "prefill.c0.layer0.attn_out");
  EXPECT_EQ(row.likeness, Likeness::not_judged);
  EXPECT_EQ(row.why, "in B: given");
  EXPECT_EQ(pair_row(given, "prefill.c0.layer0.mid").likeness, Likeness::operands);
  b.attributes.erase("given");
  // A wrong value of B, which A lacks.
  Engine engine(bf16_);
  engine.library = true;
  for (float& w : engine.weights["layer0.w_gate"]) w *= 1.5F;
  b = engine.trace(kAllNames);
  a.values.erase("prefill.c0.layer0.gate");
  std::erase(a.order, "prefill.c0.layer0.gate");
  const Pair wrong = compared();
  EXPECT_EQ(first_of(wrong), "prefill.c0.layer0.gate");
  const PairRow& hidden = pair_row(wrong, "prefill.c0.layer0.hidden");
  EXPECT_EQ(hidden.likeness, Likeness::operands);
  EXPECT_EQ(hidden.why, "prefill.c0.layer0.gate is wrong in B");
}

TEST_F(Pairs, OfOtherPromptsOrWeightsSayItFirst) {
  Dump other = b;
  StoredArray& ids = other.values.find("prefill.c0.ids")->second.whole;
  poke(ids, 5, ids.at(5) + 1);
  Pair pair = pair_of(f32_, a, bf16_, other);
  ASSERT_EQ(pair.differences.size(), 2U);
  EXPECT_EQ(pair.differences[1].of, "prompts");
  EXPECT_TRUE(
      pair.differences[1].text.starts_with("1 of 8 tokens differ, the first in row 1 "
                                           "position 1: "))
      << pair.differences[1].text;
  EXPECT_EQ(pair.exit_code(), 1);

  const ExactRun rounded(kRun + " weights=f32");
  Engine engine(rounded);
  pair = pair_of(rounded, engine.trace(kAllNames), bf16_, b);
  EXPECT_EQ(pair.differences[0].of, "weights");
  EXPECT_EQ(pair.count(Likeness::rounding), 0) << open_rows(pair);
  EXPECT_EQ(pair_row(pair, "decode.1.logits").why, "the weights differ");
  EXPECT_EQ(pair.exit_code(), 1);
}

TEST_F(Pairs, OfTwoModelsAreRefused) {
  const ExactRun other("torus=1x1x1 model=llama,layers=1,E=16,F=24,H=4,K=2,Q=4,V=30 batch=2");
  Engine engine(other);
  try {
    pair_of(f32_, a, other, engine.trace(kHooks));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "compare_pair") << error.what();
  }
}

TEST_F(Pairs, OfReplicasThatDifferAreNotTheSame) {
  const ExactRun run(
      "torus=2x1x1 model=llama,layers=1,E=16,F=24,H=4,K=2,Q=4,V=30 batch=2 "
      "weights=bf16");
  Engine engine(run);
  const Dump right = engine.trace(kHooks, {{"q", "BLHQ"}});
  Dump wrong = right;
  StoredArray& q = wrong.values.find("prefill.c0.layer0.q")->second.whole;
  const auto last = static_cast<float>(q.at(q.size() - 1));  // of the second chip
  poke(q, q.size() - 1, static_cast<double>(std::nextafter(last, 9.0F)));
  const Pair pair = pair_of(run, right, wrong);
  EXPECT_EQ(pair_row(pair, "prefill.c0.layer0.q").likeness, Likeness::rounding);
  EXPECT_EQ(pair_of(run, right, right).count(Likeness::rounding), 0);
}

TEST_F(Pairs, OfLogitsHaveProbabilitiesAndWhatRunsMove) {
  const Pair pair = compared();
  ASSERT_EQ(pair.logits.size(), 4U);
  for (const PositionOfLogits& one : pair.logits) {
    EXPECT_GT(one.most, 0);
    EXPECT_GT(one.divergence, 0);
    EXPECT_LT(one.divergence, one.most);
    ASSERT_TRUE(one.explained());
    EXPECT_GT(*one.explained(), 0.1);
  }
  EXPECT_EQ(pair.a.wander.runs, 2);
  const Wander::OfLayer& layer = pair.b.wander.layers.at("prefill.c0.layer1.out");
  EXPECT_GT(layer.least, 1e-4);
  EXPECT_LE(layer.least, layer.most);
  EXPECT_LT(pair.a.wander.layers.at("prefill.c0.layer1.out").most, layer.least);
}

/// The first seed by which bf16 chooses another token than f32.
TEST(Partings, OfNearTiesAreNoFault) {
  for (int seed = 1; seed < 200; ++seed) {
    const std::string line = kPairModel + " batch=4 prompt=3 gen=3 weights=bf16 seed=";
    const ExactRun f32(line + std::to_string(seed)),
        bf16(line + std::to_string(seed) + " act=bf16");
    Engine in_f32(f32), in_bf16(bf16);
    in_bf16.library = true;
    const Dump a = in_f32.trace(kAllNames), b = in_bf16.trace(kAllNames);
    const auto tokens = [](const Dump& d, const char* pass) {
      return d.values.find(std::string(pass) + ".token")->second.whole.bytes;
    };
    if (tokens(a, "prefill.c0") == tokens(b, "prefill.c0")) continue;
    const Pair pair = pair_of(f32, a, bf16, b);
    EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
    ASSERT_FALSE(pair.partings.empty());
    const Parting& one = pair.partings[0];
    EXPECT_EQ(one.says, Parting::Says::near_tie);
    EXPECT_GE(one.margin_a, 0);
    EXPECT_GE(one.margin_b, 0);
    EXPECT_LE(one.margin_a + one.margin_b, one.apart * (1 + 0x1p-40));
    ASSERT_TRUE(one.moved);
    EXPECT_TRUE(pair_row(pair, "decode.1.layer0.q").other_tokens);
    EXPECT_FALSE(pair_row(pair, "prefill.c0.logits").other_tokens);

    // The same token, without the logits that it follows from, is a wrong one.
    Dump wrong = a;
    StoredArray& token = wrong.values.find("prefill.c0.token")->second.whole;
    const double other = std::fmod(token.at(0) + 1, 30);
    poke(token, 0, other);
    const Pair with_wrong = pair_of(f32, wrong, f32, a);
    EXPECT_EQ(with_wrong.exit_code(), 1);
    EXPECT_EQ(first_of(with_wrong), "prefill.c0.token");
    EXPECT_EQ(pair_row(with_wrong, "prefill.c0.token").likeness, Likeness::a_wrong);
    ASSERT_EQ(with_wrong.partings.size(), 1U);
    EXPECT_EQ(with_wrong.partings[0].says, Parting::Says::wrong);
    return;
  }
  FAIL() << "no seed parts";
}

}  // namespace
}  // namespace shardproof::dump
