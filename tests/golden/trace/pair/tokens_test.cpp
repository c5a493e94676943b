// Tokens of two traces: what may differ, and for which reason.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/golden/trace/pair/pairs.h"

namespace shardproof::dump {
namespace {

const std::string kTokens = kPairModel + " batch=2 prompt=3 gen=3 weights=bf16 seed=4";

/// Takes values of this last word out of a trace.
void erase(Dump& dump, const std::string& word) {
  std::erase_if(dump.values, [&](const auto& value) { return last_word(value.first) == word; });
  std::erase_if(dump.order, [&](const std::string& name) { return last_word(name) == word; });
}

/// Ids that differ in a decode step without a token that could have chosen them explain nothing.
TEST(TokensOfPair, ThatDifferWithoutAReasonExplainNothing) {
  const ExactRun run(kTokens);
  Engine engine(run);
  Dump a = engine.trace(kAllNames), b = a;
  for (Dump* const d : {&a, &b}) erase(*d, "token");
  // What follows from the other id, too.
  StoredArray& ids = b.values.find("decode.2.ids")->second.whole;
  poke(ids, 1, std::fmod(ids.at(1) + 1, 30));
  const Tensor table = *run.weights().at("embed");
  StoredArray& embed = b.values.find("decode.2.embed")->second.whole;
  const auto id = static_cast<std::size_t>(ids.at(1));
  for (std::size_t e = 0; e < 16; ++e)
    poke(embed, 16 + e, static_cast<double>(table.data[id * 16 + e]));
  const Pair pair = pair_of(run, a, b);
  EXPECT_EQ(pair_row(pair, "decode.2.ids").likeness, Likeness::not_judged);
  const PairRow& row = pair_row(pair, "decode.2.embed");
  EXPECT_EQ(row.likeness, Likeness::operands);
  EXPECT_EQ(row.why, "tokens of decode.2 differ");
  EXPECT_EQ(pair_row(pair, "decode.1.layer1.out").likeness, Likeness::same);
  EXPECT_EQ(pair.exit_code(), 1);
}

/// One row's token is wrong: the other row, a right one, is not called so.
TEST(TokensOfPair, AreHeldAgainstTheirOwnRow) {
  const ExactRun run(kTokens);
  Engine engine(run);
  const Dump right = engine.trace(kAllNames);
  Dump wrong = right;
  StoredArray& token = wrong.values.find("decode.2.token")->second.whole;
  poke(token, 1, std::fmod(token.at(1) + 1, 30));
  const Pair pair = pair_of(run, right, wrong);
  ASSERT_EQ(pair.partings.size(), 1U);
  EXPECT_EQ(pair.partings[0].row, 1);
  EXPECT_EQ(pair.partings[0].says, Parting::Says::wrong);
  EXPECT_LT(pair.partings[0].margin_b, 0);
  EXPECT_GE(pair.partings[0].margin_a, 0);
}

}  // namespace
}  // namespace shardproof::dump
