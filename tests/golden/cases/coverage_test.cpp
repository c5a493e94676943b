// Coverage demands every value of every key: a draw that never yields one of them falls short.
#include "golden/cases/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "golden/cases/cases.h"
#include "golden/cases/key_values.h"
#include "golden/cases/strata.h"
#include "tests/golden/drawn.h"

namespace shardproof {
namespace {

bool has(const Case& c, const std::string& value) {
  const auto all = cases::key_values_of(c);
  return std::find(all.begin(), all.end(), value) != all.end();
}

TEST(Coverage, DemandsEveryValueOfEveryKey) {
  for (const std::string& value : cases::all_key_values()) {
    cases::Coverage without;
    const auto mostly_with =
        std::count_if(drawn().begin(), drawn().end(), [&](const Case& c) { return has(c, value); });
    EXPECT_GT(mostly_with, 0) << value;
    std::int64_t added = 0;
    // The others again and again, so that they are enough.
    while (added < cases::Coverage::kAllValues)
      for (const Case& c : drawn())
        if (!has(c, value)) without.add(c), ++added;
    const auto missing = without.missing_values();
    EXPECT_TRUE(std::find(missing.begin(), missing.end(), value) != missing.end()) << value;
    EXPECT_NE(without.shortfall(), "") << value;
  }
}

TEST(Coverage, SaysWhichValueIsMissing) {
  cases::Coverage all, without;
  for (const Case& c : drawn()) all.add(c);
  EXPECT_EQ(all.shortfall(), "") << all.to_string();
  EXPECT_TRUE(all.missing_values().empty());
  for (Case c : drawn()) {
    if (c.model.bias == Bias::qkv) c.model.bias = Bias::all;
    without.add(c);
  }
  EXPECT_EQ(without.shortfall(), "too little is covered: no case has bias=qkv");
}

TEST(Coverage, DemandsNoValueOfFewerCases) {
  cases::Coverage few;
  for (std::int64_t i = 0; i < cases::Coverage::kAllValues; ++i) {
    EXPECT_EQ(few.shortfall().find("no case has"), std::string::npos) << i;
    Case c = drawn()[static_cast<std::size_t>(i)];
    if (c.model.bias == Bias::qkv) c.model.bias = Bias::all;
    few.add(c);
  }
  EXPECT_NE(few.shortfall().find("no case has"), std::string::npos);
}

// ---- the values

/// The first word of a value: the key, where it is one.
TEST(KeyValues, NameEveryKeyOfACaseLine) {
  const std::string all = fmt::format(" {} ", fmt::join(cases::all_key_values(), " "));
  std::set<std::string> keys(case_keys().begin(), case_keys().end());
  for (const ModelKey& key : model_keys()) keys.insert(key.name);
  // Extents that follow from strategy and torus, E's scale, and what makes the numbers.
  for (const char* other : {"E", "F", "H", "V", "logit_scale", "seed"})
    EXPECT_EQ(keys.erase(other), 1U) << other;
  keys.erase("numerics");  // which stands for others
  // Tests of their own draw a second torus, golden/split_test.cpp.
  EXPECT_EQ(keys.erase("decode_torus"), 1U);
  for (const std::string& key : keys) {
    bool named = false;
    for (const char* after : {"=", ">", "<", "<="})
      named |= all.find(" " + key + after) != std::string::npos;
    named |= all.find("another " + key + " ") != std::string::npos;
    named |= key == "torus" && all.find(" torus of one chip ") != std::string::npos;
    named |= key == "prefill" && all.find("decode=prefill") != std::string::npos;
    EXPECT_TRUE(named) << key;
  }
}

TEST(KeyValues, HaveEveryWordOfAModelKey) {
  const auto& all = cases::all_key_values();
  for (const ModelKey& key : model_keys()) {
    if (key.name == "cache" || key.values.find("finite") != std::string::npos ||
        key.values.find(", ") == std::string::npos || key.values.starts_with("above") ||
        key.name == "K")
      continue;  // numbers; a cache that no word says
    std::string_view words = key.values;
    while (!words.empty()) {
      const auto end = std::min(words.find(", "), words.size());
      const std::string value = fmt::format("{}={}", key.name, words.substr(0, end));
      EXPECT_TRUE(std::find(all.begin(), all.end(), value) != all.end()) << value;
      words.remove_prefix(std::min(end + 2, words.size()));
    }
  }
}

TEST(KeyValues, AreAllAskedFor) {
  // What drawn cases have is on the list, every word of it.
  const std::set<std::string> all(cases::all_key_values().begin(), cases::all_key_values().end());
  EXPECT_EQ(all.size(), cases::all_key_values().size()) << "one is there twice";
  std::set<std::string> had;
  for (const Case& c : drawn())
    for (const std::string& value : cases::key_values_of(c)) had.insert(value);
  EXPECT_EQ(had, all);
}

std::set<std::string> values_of(const char* line) {
  const auto all = cases::key_values_of(parse_case(line));
  return {all.begin(), all.end()};
}

TEST(KeyValues, AreThoseOfTheCase) {
  const auto some = values_of(
      "torus=1x2x3 model=palm-tiny,layers=1,K=6,rotary=0.5,theta=100,eps=0.5,cache=bf16 "
      "prefill=wg-xyz:batch decode=ws2d:batch block=serial batch=6 prompt=5 chunk=2 gen=2 "
      "act=bf16");
  for (const char* value :
       {"torus with an axis of 1", "model=palm-tiny", "layers=1", "Q>4", "1<K<H", "block=serial",
        "rope=half, rotary<1", "another theta", "another eps", "cache=bf16", "act=bf16",
        "weights=f32", "regime=exact", "hand-over", "batch>1", "prompt>1",
        "chunk<prompt, the last one shorter", "gen=2"})
    EXPECT_TRUE(some.contains(value)) << value;
  for (const char* value :
       {"torus of one chip", "K=1", "K=H", "rope=half, rotary=1", "schedule=group", "chunk<prompt",
        "chunk=prompt", "gen=1", "gen>2", "decode=prefill"})
    EXPECT_FALSE(some.contains(value)) << value;
  for (const auto& [torus, of] :
       std::vector<std::pair<std::string, std::string>>{{"1x1x1", "torus of one chip"},
                                                        {"1x1x4", "torus with an axis of 1"},
                                                        {"2x2x2", "torus with equal axes"},
                                                        {"2x3x2", "torus with two equal axes"},
                                                        {"4x2x3", "torus with different axes"}})
    EXPECT_TRUE(values_of(("torus=" + torus).c_str()).contains(of)) << torus;
}

// ---- shares

TEST(KeyValues, SayWhatRowsShare) {
  const std::string of = "torus=1x1x1 batch=4 prompt=6 ";
  for (const auto& [keys, values] : std::vector<std::pair<std::string, std::set<std::string>>>{
           {"", {"no prefix"}},
           {"prefix=1:4", {"prefix=1:N", "prefix=P:N, N=B", "prefix=P:N, chunk>=P"}},
           {"prefix=3:1 chunk=2", {"prefix=P:N, P>1", "prefix=P:N, N=1", "prefix=P:N, chunk<P"}},
           {"prefix=3:2 chunk=3",
            {"prefix=P:N, P>1", "prefix=P:N, B/N rows each", "prefix=P:N, chunk>=P"}},
           {"prefix=2:3 lengths=3,6",
            {"prefix=P:N, P>1", "prefix=P:N, some of more rows", "prefix=P:N, chunk>=P",
             "prefix=P:N, padding behind"}}}) {
    std::set<std::string> said;
    for (const std::string& value : values_of((of + keys).c_str()))
      if (value.find("prefix") != std::string::npos && value != "decode=prefill")
        said.insert(value);
    EXPECT_EQ(said, values) << keys;
  }
}

/// A coverage of drawn cases that are all changed.
template <class Change>
std::string shortfall(Change&& change) {
  cases::Coverage coverage;
  for (std::size_t i = 0; i < 200; ++i) {
    Case c = drawn()[i];
    change(c);
    coverage.add(c);
  }
  return coverage.shortfall();
}

TEST(Coverage, AnAxisOf1IsNeitherOddNorEven) {
  // 20 % must have an odd axis of 3 or more: axes of 1 do not count as such. Axes of 12 chips.
  const std::string odd = "an odd axis of 3 or more";
  for (const Torus& torus : {Torus(1, 4, 4), Torus(1, 1, 12), Torus(4, 1, 4), Torus(4, 6, 1)})
    EXPECT_NE(shortfall([&](Case& c) { c.torus = torus; }).find(odd), std::string::npos)
        << torus.to_string();
  for (const Torus& torus : {Torus(1, 3, 4), Torus(5, 1, 4), Torus(2, 1, 7), Torus(4, 4, 3)})
    EXPECT_EQ(shortfall([&](Case& c) { c.torus = torus; }).find(odd), std::string::npos)
        << torus.to_string();
}

TEST(Coverage, DemandsItsShares) {
  EXPECT_NE(cases::Coverage().shortfall(), "");
  EXPECT_EQ(shortfall([](Case&) {}), "");
  for (const auto& [what, change] : std::vector<std::pair<std::string, void (*)(Case&)>>{
           {"12 chips or more", [](Case& c) { c.torus = Torus(2, 1, 3); }},
           {"axes not all equal", [](Case& c) { c.torus = Torus(2, 2, 2); }},
           {"acc bf16", [](Case& c) { c.numerics.acc = NumberFormat::f32; }},
           {"wire bf16", [](Case& c) { c.numerics.wire = NumberFormat::f32; }},
           {"cache bf16", [](Case& c) { c.model.cache = std::nullopt; }},
           {"gen 3 or more", [](Case& c) { c.gen = 2; }},
           {"serial blocks", [](Case& c) { c.model.block = Block::parallel; }},
           {"layernorm", [](Case& c) { c.model.norm = Norm::rmsnorm; }},
           {"geglu or gelu", [](Case& c) { c.model.ffn = Ffn::swiglu; }},
           {"biases", [](Case& c) { c.model.bias = Bias::none; }},
           {"interleaved rope", [](Case& c) { c.model.rope = Rope::half; }},
           {"untied table", [](Case& c) { c.model.tied = true; }},
           {"alibi",
            [](Case& c) {
              if (c.model.rope == Rope::alibi) c.model.rope = Rope::none;
            }},
           {"bias of the logits", [](Case& c) { c.model.unembed_bias = false; }},
           {"shared prefixes", [](Case& c) { c.prefix = {}; }},
           {"softmax of base 2", [](Case& c) { c.model.softmax = Softmax::base_e; }},
           {"another preset", [](Case& c) { c.model.preset = ModelConfig().preset; }},
           {"regime f32", [](Case& c) { c.numerics.regime = Regime::exact; }},
           {"cache f32",
            [](Case& c) {
              if (c.model.cache == NumberFormat::f32) c.model.cache = NumberFormat::bf16;
            }},
           {"the median case", [](Case& c) { c.batch *= 1000; }}})
    EXPECT_NE(shortfall(change).find(what), std::string::npos) << what << ": " << shortfall(change);
  for (Schedule schedule : {Schedule::group, Schedule::ring, Schedule::tree, Schedule::biring})
    EXPECT_NE(shortfall([&](Case& c) {
                if (c.numerics.schedule == schedule)
                  c.numerics.schedule =
                      schedule == Schedule::ring ? Schedule::tree : Schedule::ring;
              }).find(fmt::format("schedule {}", to_string(schedule))),
              std::string::npos);
}

}  // namespace
}  // namespace shardproof
