// The standard matrix by what it contains: the rows that golden/cases/cases.h promises, each sought
// by its keys. How many rows there are says nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "engine/run/plan.h"
#include "golden/cases/cases.h"
#include "golden/cases/strata.h"
#include "tests/golden/drawn.h"

namespace shardproof {
namespace {

/// Whether some row has these keys: "torus=4x2x3 K=1 act=bf16", each a key of the case line, of the
/// model or "strategy", which is prefill and decode alike. K=H is multihead, 1<K<H grouped. Rows
/// with padding are only those that are asked for, and those with prefixes; prefix=given is any.
class Row {
 public:
  explicit Row(const std::string& keys) {
    std::string_view rest = keys;
    while (!rest.empty()) {
      const auto one = rest.substr(0, std::min(rest.find(' '), rest.size()));
      const auto equals = one.find('=');
      if (one == "1<K<H")
        wanted_.emplace_back("K", "1<K<H");
      else
        wanted_.emplace_back(one.substr(0, equals), one.substr(equals + 1));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
  }
  bool operator()(const Case& c) const {
    const auto asks = [&](std::string_view key) {
      return std::any_of(wanted_.begin(), wanted_.end(),
                         [&](const auto& one) { return one.first.starts_with(key); });
    };
    if ((c.pad_heads != 0 || c.pad_vocab != 0) && !asks("pad_")) return false;
    if (c.prefix.given() && !asks("prefix")) return false;
    return std::all_of(wanted_.begin(), wanted_.end(),
                       [&](const auto& key) { return has(c, key.first, key.second); });
  }

 private:
  static bool has(const Case& c, const std::string& key, const std::string& value) {
    const ModelConfig& m = c.model;
    const Numerics& n = c.numerics;
    const auto is = [&](auto word) { return fmt::format("{}", word) == value; };
    if (key == "torus") return is(c.torus.to_string());
    if (key == "strategy") return c.prefill == c.decode && is(c.prefill.to_string());
    if (key == "prefill") return is(c.prefill.to_string());
    if (key == "decode") return is(c.decode.to_string());
    if (key == "model") return is(m.preset);
    if (key == "K" && value == "H") return m.K == m.H;
    if (key == "K" && value == "1<K<H") return 1 < m.K && m.K < m.H;
    if (key == "K") return is(m.K);
    if (key == "block") return is(to_string(m.block));
    if (key == "ffn") return is(to_string(m.ffn));
    if (key == "norm") return is(to_string(m.norm));
    if (key == "bias") return is(to_string(m.bias));
    if (key == "rope") return is(to_string(m.rope));
    if (key == "tied") return is(m.tied);
    if (key == "softmax") return is(to_string(m.softmax));
    if (key == "cache") return is(to_string(m.cache));
    if (key == "weights") return is(to_string(n.weights));
    if (key == "act") return is(to_string(n.act));
    if (key == "regime") return is(to_string(n.regime));
    if (key == "schedule") return is(to_string(n.schedule));
    if (key == "loop") return is(to_string(n.loop));
    if (key == "acc") return is(to_string(n.acc));
    if (key == "wire") return is(to_string(n.wire));
    if (key == "prefix" && value == "given") return c.prefix.given();
    if (key == "prefix") return is(c.prefix.to_string());
    if (key == "pad_heads") return is(c.pad_heads);
    if (key == "pad_vocab") return is(c.pad_vocab);
    if (key == "sample") return is(to_string(c.sampling.sample));
    if (key == "temperature") return is(c.sampling.temperature);
    if (key == "top_k") return is(c.sampling.top_k);
    if (key == "top_p") return is(c.sampling.top_p);
    ADD_FAILURE() << "no such key: " << key;
    return false;
  }

  std::vector<std::pair<std::string, std::string>> wanted_;
};

bool contains(const std::string& keys) {
  return std::any_of(matrix().begin(), matrix().end(), Row(keys));
}

const std::vector<std::string> kFirst{"ws1d:heads", "ws1d:batch", "ws2d:heads", "ws2d:batch",
                                      "wg-xyz:batch"};
const std::vector<std::string> kTori{"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"};
const char* const kPlain =
    " weights=f32 act=f32 regime=exact loop=none ffn=swiglu norm=rmsnorm bias=none rope=half";

void expect(const std::string& keys) { EXPECT_TRUE(contains(keys)) << keys; }

TEST(Matrix, HasTheFirstStrategiesAlikeOnEveryTorus) {
  for (const std::string& s : kFirst)
    for (const std::string& torus : kTori) {
      expect("strategy=" + s + " torus=" + torus + " K=1 block=parallel" + kPlain);
      expect("strategy=" + s + " torus=" + torus + " K=H block=parallel" + kPlain);
      expect("strategy=" + s + " torus=" + torus + " K=1 block=serial" + kPlain);
    }
}

TEST(Matrix, HandsOverBetweenEveryTwoOfThem) {
  for (const std::string& prefill : kFirst)
    for (const std::string& decode : kFirst)
      for (const char* heads : {"K=1", "K=H"})
        expect("prefill=" + prefill + " decode=" + decode + " torus=4x2x3 block=parallel " + heads +
               kPlain);
}

TEST(Matrix, HasThemIn64Chips) {
  for (const std::string& s : kFirst)
    expect("strategy=" + s + " torus=4x4x4 model=palm-mini block=parallel" + kPlain);
  for (const Strategy& s : all_strategies())
    expect("prefill=" + s.to_string() + " torus=4x4x4 model=palm-mini regime=exact");
}

TEST(Matrix, HasTheF32RegimeOfEveryFirstStrategy) {
  for (const std::string& s : kFirst) {
    for (const char* torus : {"4x2x3", "3x2x2", "1x5x2"})
      expect("strategy=" + s + " torus=" + torus +
             " regime=f32 block=parallel act=f32 weights=f32 loop=none acc=f32 wire=f32");
    expect("strategy=" + s +
           " torus=4x2x3 regime=f32 block=serial ffn=geglu norm=layernorm bias=all "
           "rope=interleaved tied=false");
    expect("strategy=" + s + " torus=3x2x2 regime=f32 1<K<H act=bf16 loop=none");
  }
  for (const char* schedule : {"group", "ring", "tree", "biring"})
    expect(std::string("regime=f32 schedule=") + schedule);
  for (const char* schedule : {"group", "ring", "tree"})
    for (const char* torus : {"4x2x3", "3x2x2", "1x5x2"})
      expect(fmt::format("regime=f32 schedule={} torus={} loop=none weights=f32 act=f32", schedule,
                         torus));
}

TEST(Matrix, HasTheModelFamilyInEveryFirstStrategy) {
  for (const std::string& s : kFirst) {
    for (const char* block : {"parallel", "serial"})
      for (const char* torus : {"4x2x3", "3x2x2"})
        expect("strategy=" + s + " torus=" + torus + " block=" + block +
               " regime=exact ffn=geglu norm=layernorm bias=all rope=interleaved tied=false");
    expect("strategy=" + s + " torus=4x2x3 K=H block=serial" + kPlain);
    expect("strategy=" + s + " torus=4x2x3 ffn=gelu rope=none");
    expect("strategy=" + s + " torus=3x2x2 ffn=gelu-erf norm=layernorm bias=qkv block=serial");
  }
}

TEST(Matrix, HasTheFamilyInBaseTwo) {
  for (const char* regime : {"exact", "f32", "field"}) {
    const std::string of = std::string("softmax=base2 regime=") + regime;
    for (const char* model : {"llama", "gptj", "falcon"}) expect(of + " model=" + model);
    expect(of + " bias=all tied=true");
    expect(of + " rope=alibi tied=false");
    for (const char* weights : {"f32", "int8"}) expect(of + " weights=" + weights);
  }
  expect("softmax=base2 weights=bf16 act=bf16 acc=bf16 wire=bf16 cache=bf16 schedule=ring");
  expect("softmax=base2 weights=int8 prefill=wg-xyz:natural decode=ws2d:batch torus=4x2x3");
}

TEST(Matrix, HasEveryStrategyWithEveryKindOfHeads) {
  for (const Strategy& s : all_strategies())
    for (const char* heads : {"K=1", "1<K<H", "K=H"})
      for (const char* torus : {"4x2x3", "2x2x2", "3x2x2", "1x4x2"})
        expect(fmt::format("prefill={} torus={} {} weights=f32 act=f32 regime=exact loop=none",
                           s.to_string(), torus, heads));
}

TEST(Matrix, HasEveryStrategyWithInt8Weights) {
  for (const Strategy& s : all_strategies()) {
    for (const char* heads : {"K=1", "1<K<H", "K=H"})
      for (const char* torus : {"4x2x3", "3x2x2"})
        expect(fmt::format("prefill={} torus={} {} weights=int8 loop=none", s.to_string(), torus,
                           heads));
    expect(fmt::format("prefill={} weights=int8 bias=all norm=layernorm", s.to_string()));
  }
  for (const char* act : {"f32", "bf16"})
    for (const char* regime : {"exact", "f32"})
      for (const char* block : {"parallel", "serial"})
        expect(fmt::format("weights=int8 act={} regime={} block={} loop=none model=palm-tiny", act,
                           regime, block));
  for (const char* schedule : {"group", "ring", "tree"})
    expect(fmt::format("weights=int8 regime=f32 schedule={} loop=none model=palm-tiny", schedule));
}

TEST(Matrix, HasTheOtherModelsInEveryStrategyAndBothRegimes) {
  for (const Strategy& s : all_strategies())
    for (const char* model : {"llama", "gptj", "falcon"}) {
      expect(fmt::format("prefill={} model={} torus=4x2x3 regime=exact", s.to_string(), model));
      expect(fmt::format("prefill={} model={} torus=3x2x2 regime=f32", s.to_string(), model));
    }
  for (const Strategy& s : all_strategies()) {
    expect(fmt::format("prefill={} rope=alibi torus=4x2x3 regime=exact 1<K<H", s.to_string()));
    expect(fmt::format("prefill={} rope=alibi torus=3x2x2 regime=f32 1<K<H", s.to_string()));
  }
  for (const char* model : {"llama", "gptj", "falcon"})
    for (const char* other : {"weights=f32", "weights=bf16", "weights=int8", "act=f32", "act=bf16",
                              "schedule=group", "schedule=ring", "schedule=tree"})
      expect(fmt::format("model={} regime=f32 {}", model, other));
}

TEST(Matrix, HasBf16AsItIsUsed) {
  const auto with_palm = [](const std::string& s, const char* torus, const std::string& rest) {
    return contains("strategy=" + s + " torus=" + torus + " " + rest);
  };
  // Each of five mixtures in some strategies, one of them in every one.
  const std::vector<std::string> mixtures{
      "cache=bf16 act=bf16 weights=bf16 regime=f32", "cache=bf16 act=f32 regime=exact loop=none",
      "cache=f32 act=bf16 wire=bf16 regime=exact", "acc=bf16 wire=f32 regime=f32 loop=none",
      "wire=bf16 acc=f32 regime=f32 loop=none"};
  for (const std::string& mixture : mixtures) {
    int strategies = 0;
    for (const Strategy& s : all_strategies())
      strategies += with_palm(s.to_string(), "4x2x3", mixture) ? 1 : 0;
    EXPECT_GT(strategies, 3) << mixture;
    EXPECT_TRUE(contains("torus=1x5x2 " + mixture)) << mixture;
  }
  for (const Strategy& s : all_strategies()) {
    if (!decodes(s) || !cases::strata::runs(s, Block::parallel)) continue;
    EXPECT_TRUE(std::any_of(mixtures.begin(), mixtures.end(), [&](const std::string& mixture) {
      return with_palm(s.to_string(), "4x2x3", "1<K<H " + mixture);
    })) << s.to_string();
  }
}

TEST(Matrix, LoopsEveryStrategyAndLongRings) {
  for (const char* loop : {"one-way", "both-full", "both-half"}) {
    for (const Strategy& s : all_strategies())
      expect(fmt::format("prefill={} regime=f32 loop={}", s.to_string(), loop));
    for (const std::string& s : kFirst)
      expect(fmt::format("strategy={} torus=5x2x3 regime=f32 loop={}", s, loop));
    for (const char* torus : {"4x2x3", "3x2x2", "4x1x2"})
      expect(fmt::format("torus={} regime=f32 loop={}", torus, loop));
    for (const char* other :
         {"wire=f32", "wire=bf16", "acc=f32", "acc=bf16", "weights=f32", "weights=bf16",
          "weights=int8", "act=f32", "act=bf16", "schedule=group", "schedule=ring", "schedule=tree",
          "schedule=biring", "block=parallel", "block=serial", "1<K<H", "K=H"})
      expect(fmt::format("regime=f32 loop={} {}", loop, other));
  }
}

TEST(Matrix, PadsHeadsAndIdsInEveryStrategy) {
  const std::string pads = "pad_heads=24 pad_vocab=264 ";
  for (const Strategy& s : all_strategies())
    for (const char* torus : {"4x2x3", "3x2x2"})
      expect(fmt::format("{}prefill={} torus={}", pads, s.to_string(), torus));
  for (const char* other : {"K=1",
                            "1<K<H",
                            "K=H",
                            "block=parallel",
                            "block=serial",
                            "regime=exact",
                            "regime=f32",
                            "regime=field",
                            "weights=f32",
                            "weights=bf16",
                            "weights=int8",
                            "act=f32",
                            "act=bf16",
                            "loop=none",
                            "loop=both-half",
                            "wire=bf16",
                            "schedule=ring",
                            "schedule=group",
                            "schedule=tree",
                            "model=llama",
                            "rope=alibi",
                            "tied=false",
                            "bias=all"})
    expect(pads + other);
  for (const Case& c : matrix()) {
    if (c.pad_heads == 0) continue;
    EXPECT_TRUE(c.pad_heads > c.model.H && c.pad_vocab > c.model.V) << print_case(c);
  }
}

TEST(Matrix, SharesPrefixesInEveryStrategy) {
  for (const Strategy& s : all_strategies())
    expect(fmt::format("prefix=given prefill={} torus=4x2x3", s.to_string()));
  for (const std::string& s : kFirst) {
    expect("prefix=1:1 torus=3x1x2 strategy=" + s);
    expect("prefix=3:24 torus=3x1x2 strategy=" + s);
    expect("prefix=5:5 torus=3x1x2 strategy=" + s);
  }
  for (const char* other :
       {"K=1",           "1<K<H",           "K=H",          "block=parallel", "block=serial",
        "regime=exact",  "regime=f32",      "regime=field", "weights=f32",    "weights=bf16",
        "weights=int8",  "act=f32",         "act=bf16",     "cache=bf16",     "schedule=ring",
        "schedule=tree", "schedule=biring", "model=llama",  "rope=alibi",     "softmax=base2"})
    expect(std::string("prefix=given ") + other);
  for (const char* phases :
       {"prefill=ws2d:heads decode=ws2d:batch", "prefill=wg-xyz:batch decode=ws1d:heads",
        "prefill=wg-xyz:natural decode=ws2d:batch", "prefill=ws1d:batch decode=wg-xyz:batch"})
    for (const char* prefix : {"5:3", "5:24"})
      expect(fmt::format("torus=4x2x3 prefix={} {}", prefix, phases));
  const auto some = [](const std::function<bool(const Case&)>& is) {
    return std::any_of(matrix().begin(), matrix().end(),
                       [&](const Case& c) { return c.prefix.given() && is(c); });
  };
  EXPECT_TRUE(some([](const Case& c) { return c.lengths.ragged; }));
  EXPECT_TRUE(some([](const Case& c) { return !c.lengths.cycle.empty(); }));
  EXPECT_TRUE(some([](const Case& c) { return c.chunk < c.prefix.length; }));
  EXPECT_TRUE(some([](const Case& c) { return c.batch % c.prefix.rows != 0; }));
}

// Where the caches of prefixes lie: on all chips, or in blocks, under tables that say so.
TEST(Matrix, HasPrefixesWholeAndInBlocks) {
  std::map<std::string, std::set<bool>> in_blocks;
  for (const Case& c : matrix()) {
    if (!c.prefix.given() || !(c.prefill == c.decode) || c.torus.to_string() != "4x2x3") continue;
    const Layout cache = make_plan(c).decode.prefix_cache;
    in_blocks[c.prefill.to_string()].insert(!cache.to_string().starts_with("NT"));
  }
  for (const char* table : {"ws2d:batch", "wg-xyz:batch"})
    EXPECT_EQ(in_blocks[table], std::set<bool>{true}) << table;
  for (const char* table : {"ws1d:heads", "ws1d:batch", "ws2d:heads"})
    EXPECT_EQ(in_blocks[table], std::set<bool>{false}) << table;
}

TEST(Matrix, SamplesAtRandomInEveryStrategy) {
  for (const Strategy& s : all_strategies())
    expect(fmt::format("prefill={} torus=4x2x3 sample=random", s.to_string()));
  for (const std::string& s : kFirst)
    for (const char* torus : {"1x1x1", "3x2x2", "1x4x2", "1x2x1"})
      expect(fmt::format("strategy={} torus={} sample=random", s, torus));
  for (const char* regime : {"exact", "f32"})
    for (const char* cut :
         {"top_k=0 top_p=1", "top_k=20", "top_k=1", "top_k=5 top_p=0.5", "top_p=0.9", "top_p=1e-09",
          "temperature=1", "temperature=0.1", "temperature=0.02"})
      expect(fmt::format("sample=random regime={} {}", regime, cut));
}

TEST(Matrix, DecodesInEveryRow) {
  for (const Case& c : matrix()) EXPECT_GE(c.gen, 3) << print_case(c);
}

}  // namespace
}  // namespace shardproof
