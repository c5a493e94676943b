// Every key of a case line has a step that makes it simpler, so that what fails is shown by the
// shortest case.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/cases/cases.h"
#include "tests/sanitized.h"

namespace shardproof {
namespace {

/// Of one chip and the smallest dims; nothing of it can be left out.
const std::string kSimplest =
    "torus=1x1x1 model=palm-tiny,layers=1,E=1,F=1,H=1,Q=2,V=1 prefill=ws1d:heads decode=ws1d:heads "
    "batch=1 prompt=1 chunk=1 gen=1 seed=1";

/// The simplest case with other values of some keys: "H=6,K=2" of the model, or "act=bf16".
Case changed(const std::string& model, const std::string& keys) {
  std::string line = kSimplest;
  const auto replace = [&](const std::string& key, const std::string& value, char end) {
    const auto at = line.find((end == ' ' ? " " : ",") + key + "=");
    if (at == std::string::npos) {
      line.insert(end == ' ' ? line.size() : line.find(" prefill"),
                  (end == ' ' ? " " : ",") + key + "=" + value);
      return;
    }
    const auto from = at + key.size() + 2;
    line.replace(from, line.find_first_of(", ", from) - from, value);
  };
  for (const auto& [text, end] : {std::pair{model, ','}, std::pair{keys, ' '}}) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const auto one = rest.substr(0, std::min(rest.find(end), rest.size()));
      const auto equals = one.find('=');
      if (one.starts_with("torus"))
        line.replace(0, line.find(' '), one);
      else
        replace(std::string(one.substr(0, equals)), std::string(one.substr(equals + 1)), end);
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
  }
  return parse_case(line);
}

bool proposes(const Case& c, const Case& simpler) {
  const auto all = cases::simpler(c);
  return std::find(all.begin(), all.end(), simpler) != all.end();
}

TEST(Simpler, HasNothingForTheSimplest) {
  for (const Case& next : cases::simpler(parse_case(kSimplest))) ADD_FAILURE() << print_case(next);
}

TEST(Simpler, TakesBackEveryKeyAlone) {
  const Case simplest = parse_case(kSimplest);
  const auto expect = [&](const Case& c) { EXPECT_TRUE(proposes(c, simplest)) << print_case(c); };
  // E has its own below: its logit_scale follows.
  for (const char* model : {"layers=2",
                            "layers=3",
                            "F=3",
                            "V=3",
                            "Q=4",
                            "H=3",
                            "ffn=geglu",
                            "ffn=gelu",
                            "ffn=gelu-erf",
                            "norm=layernorm",
                            "bias=all",
                            "rope=alibi",
                            "rope=none",
                            "rope=interleaved",
                            "theta=100",
                            "tied=false",
                            "unembed_bias=true",
                            "eps=0.5",
                            "embed_scale=2",
                            "positions=9",
                            "softmax=base2",
                            "cache=f32",
                            "cache=bf16"})
    expect(changed(model, ""));
  for (const char* keys :
       {"torus=2x1x1", "torus=1x2x1", "torus=1x1x3", "block=serial", "weights=bf16", "weights=int8",
        "act=bf16", "regime=f32", "schedule=ring", "loop=one-way", "wire=bf16", "batch=3",
        "prompt=4 chunk=4", "gen=2", "seed=7", "pad_heads=3", "pad_vocab=3", "decode=ws2d:heads",
        "prefill=ws2d:heads"})
    expect(changed("", keys));
}

/// Two keys at a time, of which the second depends on the first.
TEST(Simpler, TakesBackKeysThatDependOnOthers) {
  const auto expect = [](const Case& c, const Case& simpler) {
    EXPECT_TRUE(proposes(c, simpler)) << print_case(c) << "\nto " << print_case(simpler);
  };
  expect(changed("E=3", ""), parse_case(kSimplest));
  expect(changed("H=6,K=2", ""), changed("H=6", ""));
  expect(changed("H=6,K=6", ""), changed("H=6", ""));
  expect(changed("H=6,K=6", ""), parse_case(kSimplest));
  expect(changed("Q=4,rotary=0.5", ""), changed("Q=4", ""));
  expect(changed("layers=3", ""), changed("layers=2", ""));
  expect(changed("", "gen=5"), changed("", "gen=2"));
  expect(changed("", "gen=5"), changed("", "gen=4"));
  expect(changed("", "regime=f32 schedule=ring"), changed("", "regime=f32"));
  expect(changed("", "regime=f32 acc=bf16"), changed("", "regime=f32"));
  expect(changed("", "regime=f32 wire=bf16"), changed("", "regime=f32"));
  expect(changed("", "regime=f32 loop=both-half"), changed("", "regime=f32"));
  expect(changed("", "prompt=4 chunk=4"), changed("", "prompt=3 chunk=3"));
  expect(changed("", "gen=2 decode_torus=1x2x1"), changed("", "gen=2"));
  expect(changed("", "gen=2 decode_torus=1x2x1"), changed("", "gen=2 decode_torus=1x1x1"));
  // What is padded may be the model's own instead.
  expect(changed("H=4,K=2", "pad_heads=6"), changed("H=6,K=3", ""));
  expect(changed("V=4", "pad_vocab=6"), changed("V=6", ""));
}

void expect(const char* keys, const char* simpler) {
  EXPECT_TRUE(proposes(changed("", keys), changed("", simpler))) << keys << " to " << simpler;
}

TEST(Simpler, ShortensChunks) {
  expect("prompt=7 chunk=5", "prompt=7 chunk=7");  // no chunks
  expect("prompt=7 chunk=5", "prompt=2 chunk=1");  // the shortest with two
  expect("prompt=7 chunk=5", "prompt=6 chunk=5");  // the last chunk as short as may be
  expect("prompt=7 chunk=5", "prompt=7 chunk=4");
  expect("prompt=7 chunk=5", "prompt=6 chunk=4");  // the last chunk as long as it is
  expect("prompt=7 chunk=2", "prompt=3 chunk=2");
  expect("prompt=7 chunk=2", "prompt=7 chunk=1");
  expect("prompt=7 chunk=2", "prompt=1 chunk=1");
}

TEST(Simpler, TakesPrefixesBack) {
  const char* const shared = "batch=4 prompt=5 chunk=5 prefix=3:3";
  expect(shared, "batch=4 prompt=5 chunk=5");
  expect(shared, "batch=4 prompt=5 chunk=5 prefix=3:1");
  expect(shared, "batch=4 prompt=5 chunk=5 prefix=3:2");
  expect(shared, "batch=4 prompt=5 chunk=5 prefix=1:3");
  expect(shared, "batch=4 prompt=5 chunk=5 prefix=2:3");
  // With less prompt or fewer rows there are less of them.
  expect(shared, "batch=1 prompt=5 chunk=5 prefix=3:1");
  expect(shared, "batch=4 prompt=4 chunk=4 prefix=3:3");
  expect("batch=4 prompt=4 chunk=4 prefix=3:3", "batch=4 prompt=3 chunk=3 prefix=2:3");
  expect(shared, "batch=4 prompt=1 chunk=1");
  expect("batch=4 prompt=5 chunk=5 lengths=5,4 prefix=3:3", "batch=4 prompt=5 chunk=5 prefix=3:3");
}

/// What fails by one property alone is shown with that property and nothing else.
TEST(Simpler, EndsAtTheShortestCaseThatFails) {
  const int most = fewer_if_sanitized(15, 2, "cases of each property");
  struct Failing {
    const char* what;
    bool (*fails)(const Case&);
    std::int64_t prompt, chunk;
  };
  for (const Failing& of :
       {Failing{"several chunks", [](const Case& c) { return c.chunk < c.prompt; }, 2, 1},
        Failing{"a shorter last chunk",
                [](const Case& c) { return c.chunk < c.prompt && c.prompt % c.chunk != 0; }, 3, 2},
        Failing{"five tokens", [](const Case& c) { return c.prompt >= 5; }, 5, 5}}) {
    int shrunk = 0;
    for (std::uint64_t i = 0; i < 15 && shrunk < most; ++i) {
      const Case drawn = cases::draw(3, i);
      if (!of.fails(drawn)) continue;
      const Case c = cases::shrink(drawn, of.fails);
      EXPECT_EQ(c.prompt, of.prompt) << of.what << ": " << print_case(c);
      EXPECT_EQ(c.chunk, of.chunk) << of.what << ": " << print_case(c);
      EXPECT_EQ(c.torus.chips(), 1) << print_case(c);
      EXPECT_EQ(c.gen, 1) << print_case(c);
      ++shrunk;
    }
    EXPECT_GT(shrunk, 0) << of.what;
  }
}

TEST(Simpler, EndsAtTheShortestPrefixThatFails) {
  const Case given = parse_case(
      "torus=2x1x3 model=palm-tiny,layers=1 prefill=ws2d:batch batch=12 prompt=7 lengths=6,7 "
      "prefix=4:5 chunk=3 gen=3");
  constexpr int kTries = 2000;
  const Case any = cases::shrink(
      given, [](const Case& c) { return c.prefix.given(); }, kTries);
  EXPECT_EQ(any.prefix, (SharedPrefix{1, 1})) << print_case(any);
  EXPECT_EQ(any.prompt, 2) << print_case(any);
  EXPECT_EQ(any.batch, 1) << print_case(any);
  const Case two = cases::shrink(
      given, [](const Case& c) { return c.prefix.length >= 2 && c.prefix.rows >= 2; }, kTries);
  EXPECT_EQ(two.prefix, (SharedPrefix{2, 2})) << print_case(two);
  EXPECT_EQ(two.prompt, 3) << print_case(two);
  EXPECT_TRUE(two.lengths == RowLengths()) << print_case(two);
}

}  // namespace
}  // namespace shardproof
