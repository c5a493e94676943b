// The memo gives one answer to cases that ask the same, and to no others: every key that the oracle
// looks at is a part of what it remembers by.
#include "golden/memo/oracle_memo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weights/storage/generator.h"

namespace shardproof {
namespace {

constexpr const char* kMemoCase =
    "torus=1x2x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=4,V=12 prefill=ws2d:heads "
    "decode=ws2d:heads batch=2 prompt=4 chunk=4 gen=2 seed=5";

/// kMemoCase with another value of one key: what stands between " KEY=" and the next space.
Case with(const std::string& key, const std::string& value) {
  std::string line = kMemoCase;
  const auto at = (" " + line).find(" " + key + "=");
  if (at == std::string::npos) return parse_case(line + " " + key + "=" + value);
  const auto begin = at + key.size() + 1;
  return parse_case(line.replace(begin, line.find(' ', begin) - begin, value));
}

bool same_answer(const oracle::Answer& a, const oracle::Answer& b) {
  const auto same = [](const auto& x, const auto& y) {
    return std::ranges::equal(x, y, [](const auto& one, const auto& other) {
      return one.first == other.first && one.second.shape == other.second.shape &&
             one.second.data == other.second.data;
    });
  };
  return a.passes == b.passes && same(a.checkpoints, b.checkpoints) && same(a.tokens, b.tokens);
}

TEST(OracleMemo, AsksAnewForEveryKeyThatTheAnswerDependsOn) {
  const std::string model = "palm-tiny,layers=1,E=12,F=12,H=6,Q=4,V=12";
  std::vector<Case> others{with("prompt", "3"),     with("chunk", "1"),    with("chunk", "2"),
                           with("chunk", "3"),      with("gen", "1"),      with("gen", "3"),
                           with("batch", "3"),      with("seed", "6"),     with("weights", "bf16"),
                           with("weights", "int8"), with("act", "bf16"),   with("block", "serial"),
                           with("model", "llama"),  with("model", "gptj"), with("sample", "random"),
                           with("top_k", "3"),      with("top_p", "0.1"),  with("temperature", "9"),
                           with("prefix", "2:1"),   with("prefix", "1:1"), with("prefix", "2:2")};
  for (const char* dims : {"layers=2",
                           "E=24",
                           "F=24",
                           "H=12",
                           "K=2",
                           "Q=8",
                           "V=24",
                           "positions=9",
                           "theta=100",
                           "rotary=0.5",
                           "eps=0.5",
                           "tied=false",
                           "norm=layernorm",
                           "ffn=geglu",
                           "bias=all",
                           "rope=interleaved",
                           "rope=alibi",
                           "rope=none",
                           "embed_scale=2",
                           "logit_scale=2",
                           "cache=bf16",
                           "softmax=base2",
                           "unembed_bias=true"}) {
    const std::string key(dims, std::string_view(dims).find('='));
    std::string changed = model;  // a key stands once
    const auto at = changed.find("," + key + "=");
    if (at == std::string::npos)
      changed += std::string(",") + dims;
    else
      changed.replace(at + 1, changed.find(',', at + 1) - at - 1, dims);
    others.push_back(with("model", changed));
  }
  OracleMemo memo;
  for (const Case& other : others) {
    SCOPED_TRACE(print_case(other));
    const auto known = memo.get(parse_case(kMemoCase));
    const auto of_other = memo.get(other);
    ASSERT_NE(known, of_other);
    OracleMemo afresh;
    EXPECT_TRUE(same_answer(of_other->answer, afresh.get(other)->answer));
    EXPECT_EQ(memo.get(parse_case(kMemoCase)), known);
    EXPECT_EQ(memo.get(other), of_other);
  }
}

TEST(OracleMemo, AsksOnceForCasesThatRunAlike) {
  OracleMemo memo;
  const auto known = memo.get(parse_case(kMemoCase));
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"torus", "1x1x2"},
                                                        {"prefill", "wg-xyz:batch"},
                                                        {"decode", "ws1d:heads"},
                                                        {"regime", "f32"},
                                                        {"loop", "one-way"},
                                                        {"wire", "bf16"},
                                                        {"batch", "2"},
                                                        {"chunk", "4"}})
    EXPECT_EQ(memo.get(with(key, value)), known) << key;
}

TEST(OracleMemo, KnowsPrefixesByTheirLengthAndNumber) {
  OracleMemo memo;
  const auto one = memo.get(with("prefix", "2:1")), two = memo.get(with("prefix", "2:2"));
  EXPECT_NE(one, two);
  EXPECT_EQ(memo.get(with("prefix", "2:1")), one);
  EXPECT_EQ(memo.get(with("prefix", "2:2")), two);
  // Two rows, of four tokens each: with one prefix they begin alike, and nowhere else.
  const auto column = [](const OracleMemo::Known& known, std::size_t row) {
    return std::vector<std::int32_t>(
        known.prompt.data.begin() + static_cast<std::ptrdiff_t>(4 * row),
        known.prompt.data.begin() + static_cast<std::ptrdiff_t>(4 * row + 2));
  };
  EXPECT_EQ(column(*one, 0), column(*one, 1));
  EXPECT_NE(column(*two, 0), column(*two, 1));
  EXPECT_EQ(column(*one, 0), column(*two, 0));
  EXPECT_EQ(one->answer.checkpoints.at("prefix.c0.layer0.k_cache").shape, (Shape{1, 2, 1, 4}));
  EXPECT_EQ(two->answer.checkpoints.at("prefix.c0.layer0.k_cache").shape, (Shape{2, 2, 1, 4}));
}

TEST(OracleMemo, GivenWeightsAreAKeyToo) {
  const Case c = parse_case(kMemoCase);
  const Weights one = generate_weights(c.model, 6), other = generate_weights(c.model, 7);
  OracleMemo memo;
  const auto generated = memo.get(c);
  const auto of_one = memo.get(c, &one), of_other = memo.get(c, &other);
  EXPECT_FALSE(same_answer(generated->answer, of_one->answer));
  EXPECT_FALSE(same_answer(of_one->answer, of_other->answer));
  EXPECT_EQ(memo.get(c, &one), of_one);
  EXPECT_EQ(memo.get(c), generated);
}

}  // namespace
}  // namespace shardproof
