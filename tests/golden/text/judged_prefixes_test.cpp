// `compare` of models that are texts whose rows continue shared prefixes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "golden/verify/verify.h"
#include "tests/golden/text/text_case.h"
#include "tests/golden/text/text_trace.h"

namespace shardproof {
namespace {

TEST(PrefixesOfTexts, OfRowsThatContinuePrefixesAreRight) {
  for (const char* name : {"llama-3", "gpt-2", "gemma-2"})
    for (const char* keys : {"regime=f32 schedule=ring", "act=bf16 regime=f32 wire=bf16",
                             "lengths=6,5,6,4", "", "regime=field", "weights=int8 regime=f32"})
      expect_right(name, case_with_text(small_text(name),
                                        fmt::format("torus=2x1x2 prefill=ws2d:batch decode=dp "
                                                    "batch=4 prompt=6 prefix=3:2 chunk=2 {}",
                                                    keys)));
}

/// A text whose caches have their letters in another order, and one that reads a view of a cache.
ModelText with_other_caches() {
  std::string text = print_model_text(small_text("llama-3"));
  for (const auto& [old_text, new_text] : std::vector<std::pair<std::string, std::string>>{
           {"k_rot : BLKQ = store(add(", "k_rot : BKLQ = store(add("},
           {"k_cache : BMKQ", "k_cache : BKMQ"},
           {"BLKGQ,BMKQ->BLKGM; q_group, k_cache", "BLKGQ,BKMQ->BLKGM; q_group, k_cache"},
           {"v_cache : BMKQ = append(v, pos)\n",
            "v_cache : BMKQ = append(v, pos)\nv_seen : BMKQ = store(mul(v_cache, 2))\n"},
           {"share, v_cache", "share, v_seen"}}) {
    const auto at = text.find(old_text);
    if (at == text.npos) throw std::logic_error(old_text);
    text.replace(at, old_text.size(), new_text);
  }
  return parse_model_text(text);
}

TEST(PrefixesOfTexts, OfPrefixesInCachesOfAnyOrderAreRight) {
  for (const char* keys : {"regime=f32", "", "regime=field", "lengths=6,5,6,4"}) {
    const Case c = case_with_text(
        with_other_caches(),
        fmt::format("torus=2x1x2 prefill=ws2d:batch batch=4 prompt=6 prefix=3:2 {}", keys));
    OracleMemo memo;
    const Judgement judgement = verify_case(c, memo);
    EXPECT_EQ(judgement.verdict, Verdict::equal) << keys << "\n" << judgement.reason();
    expect_right("caches in another order", c);
  }
}

/// What reads a cache needs that of the prefixes, too.
TEST(PrefixesOfTexts, OperandsHaveTheCachesOfPrefixes) {
  const dump::Dump dump = f32_trace("llama-3", "batch=4 prefix=3:2 chunk=2");
  const dump::Claim claim = dump::read_claim(dump.attributes, std::nullopt);
  const Weights weights =
      oracle::as_stored(generated_weights(claim.source_case), NumberFormat::f32);
  const dump::Values values = dump::read_values(dump, claim, weights);
  dump::Reference reference(values, claim, weights);
  for (const auto& [value, cache] : {std::pair{"dot_1", "k_cache"}, {"mean_1", "v_cache"}}) {
    const auto operands = reference.replay().operands(fmt::format("prefill.c0.layer1.{}", value));
    const std::set<std::string> all(operands.begin(), operands.end());
    EXPECT_TRUE(all.contains(fmt::format("prefill.c0.layer1.{}", cache))) << value;
    EXPECT_TRUE(all.contains(fmt::format("prefix.c1.layer1.{}", cache))) << value;
  }
}

/// A joined value is of a pass whose rows continue prefixes.
TEST(PrefixesOfTexts, OfJoinedCachesWithoutPrefixesAreUnknown) {
  for (const char* keys : {"regime=f32", "regime=exact", "regime=field"}) {
    dump::Dump dump = trace_of(make_typed_plan(case_with_text(
        small_text("llama-3"), fmt::format("torus=1x1x2 prefill=ws2d:batch {}", keys))));
    dump.values["prefill.c0.layer0.kw"] = dump.values.at("prefill.c0.layer0.k_cache");
    dump.values.at("prefill.c0.layer0.kw").attributes["meaning"] = "joined k_cache";
    dump.order.push_back("prefill.c0.layer0.kw");
    const dump::Verdict verdict = verdict_of(dump);
    ASSERT_EQ(verdict.unknown.size(), 1U);
    EXPECT_EQ(verdict.unknown[0].name, "prefill.c0.layer0.kw");
  }
}

/// One element of any cache, of its own slots or joined, in a pass over prefixes, the prefill or a
/// decode step: a number beyond its bounds, NaN, infinity.
TEST(PrefixesOfTexts, AWrongElementOfACacheIsSeen) {
  constexpr float kOthers[] = {7.0F, std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity()};
  for (const char* decode : {"ws2d:heads", "dp"}) {
    const dump::Dump right =
        f32_trace("llama-3", fmt::format("batch=4 prefix=3:2 chunk=1 decode={}", decode).c_str());
    int joined = 0;
    std::set<std::string> passes;
    std::size_t number = 0;
    for (const auto& [name, value] : right.values) {
      const auto meaning = value.attributes.find("meaning");
      if (!name.ends_with("_cache") && !name.ends_with("_cache_all")) continue;
      dump::Dump wrong = right;
      dump::StoredArray& array = wrong.values.find(name)->second.whole;
      if (array.size() == 0) continue;
      joined += meaning != value.attributes.end() && meaning->second.starts_with("joined") ? 1 : 0;
      passes.insert(name.substr(0, name.find('.')));
      // The first, one in the middle, the last.
      const std::size_t i = number % 3 * (array.size() - 1) / 2;
      const float other = kOthers[number / 3 % 3];
      poke(array, i, other);
      EXPECT_NE(verdict_of(wrong).exit_code(bounds::Fit::unlikely), 0)
          << name << " " << i << " " << other;
      ++number;
    }
    EXPECT_GT(joined, 0);
    EXPECT_EQ(passes, (std::set<std::string>{"decode", "prefill", "prefix"}));
    EXPECT_GT(number, 20U);
  }
}

/// Gemma-2 whose local layers have a third cache, so that layers hand over other caches.
ModelText with_a_third_cache() {
  std::string text = print_model_text(small_text("gemma-2"));
  const auto put = [&](const std::string& old_text, const std::string& new_text) {
    const auto at = text.find(old_text);
    if (at == text.npos) throw std::logic_error(old_text);
    text.replace(at, old_text.size(), new_text);
  };
  put("v_cache : BMKQ = append(v, pos)\n",
      "v_cache : BMKQ = append(v, pos)\nw_cache : BMKQ = append(store(mul(v, 0.5)), pos) if local\n"
      "seen : BMKQ = store(add(v_cache, w_cache)) if local\n"
      "seen : BMKQ = store(mul(v_cache, 2)) unless local\n");
  put("share, v_cache", "share, seen");
  return parse_model_text(text);
}

/// Each kind of layers moves its own caches, of the prefixes and of the rows, whichever is first.
TEST(PrefixesOfTexts, LayersHandOverTheirOwnCaches) {
  for (const char* local : {"10", "01"})
    for (const char* keys : {"regime=exact", "regime=f32", "regime=field"}) {
      ModelText text = with_a_third_cache();
      text.small.at("local").value = local;
      const Case c =
          case_with_text(text, fmt::format("torus=2x1x2 decode_torus=1x2x1 "
                                           "prefill=ws2d:batch decode=ws1d:heads batch=4 "
                                           "prompt=6 prefix=3:2 {}",
                                           keys));
      OracleMemo memo;
      const Judgement judgement = verify_case(c, memo);
      EXPECT_EQ(judgement.verdict, Verdict::equal) << c << "\n" << judgement.reason();
      Case on_one = c;  // as a trace is
      on_one.decode_torus.reset();
      expect_right(local, on_one);
    }
}

}  // namespace
}  // namespace shardproof
