// `compare` of models that are texts: right traces are right in every regime, and the traces of
// mutants of the texts are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "golden/verify/verify.h"
#include "tests/golden/text/mutants.h"
#include "tests/golden/text/text_case.h"
#include "tests/golden/text/text_trace.h"
#include "tests/sanitized.h"

namespace shardproof {
namespace {

/// A model declares its own letters, those of roles of programs and of sampling among them.
TEST(TracesOfTexts, OfAnyLetterAreRight) {
  const std::string printed = print_model_text(small_text("llama-3"));
  ASSERT_NE(printed.find('Q'), std::string::npos);
  for (const char letter : std::string("ACJNRSTWXZ")) {
    ASSERT_EQ(printed.find(letter), std::string::npos) << letter;
    std::string text = printed;
    std::replace(text.begin(), text.end(), 'Q', letter);
    for (const char* keys : {"regime=f32", "regime=field", "regime=exact sample=random"})
      expect_right("letter " + std::string(1, letter),
                   case_with_text(parse_model_text(text),
                                  fmt::format("torus=2x1x1 prefill=ws1d:heads {}", keys)));
  }
}

TEST(TracesOfTexts, OfEveryRegimeAreRight) {
  OneInN some(3, "models");
  for (const char* name : {"llama-3", "gpt-2", "gemma-2", "cohere", "qwen3", "experts"}) {
    if (!some()) continue;
    const ModelText text = small_text(name);
    for (const char* keys :
         {"", "regime=f32 schedule=ring", "act=bf16 regime=f32 schedule=tree",
          "act=bf16 regime=f32 wire=bf16", "act=bf16", "regime=f32 wire=bf16 schedule=ring",
          "regime=f32 sample=random temperature=0.7 top_k=5", "weights=bf16 chunk=2"})
      for (const char* strategy : {"torus=2x1x2 prefill=ws2d:heads decode=wg-x:batch",
                                   "torus=1x2x1 prefill=wg-xyz:batch decode=ws2d:batch"})
        expect_right(name, case_with_text(text, fmt::format("prompt=4 {} {}", strategy, keys)));
    expect_right(name, case_of_text(name, "torus=4x2x3 prefill=ws1d:heads regime=f32"));
    expect_right(name, case_of_text(name, "torus=1x3x1 prefill=wg-xyz:batch"));
  }
}

/// Padding may hold anything, NaN too; a token, and a slot of one, may not.
TEST(TracesOfTexts, OfRowsOfUnequalLengthAreRight) {
  for (const char* name : {"llama-3", "gpt-2", "gemma-2"})
    for (const char* keys : {"", "regime=f32 schedule=ring", "act=bf16 regime=f32", "regime=field"})
      expect_right(
          name, case_with_text(small_text(name), fmt::format("torus=2x1x2 prefill=ws2d:heads "
                                                             "decode=wg-x:batch prompt=5 chunk=2 "
                                                             "lengths=5,1,3,2 batch=4 {}",
                                                             keys)));
}

TEST(TracesOfTexts, OfPaddedDimsAreRight) {
  for (const char* keys : {"", "regime=f32 schedule=ring", "act=bf16 regime=f32", "regime=field"})
    for (const char* name : {"llama-3", "gpt-2"})
      expect_right(name, case_with_text(small_text(name),
                                        fmt::format("torus=1x2x1 prefill=ws1d:heads decode=ws2d:"
                                                    "heads prompt=4 pad_heads=6 pad_vocab=14 {}",
                                                    keys)));
}

TEST(TracesOfTexts, OfInt8WeightsAreRight) {
  for (const char* name : {"llama-3", "qwen3"})
    for (const char* keys : {"", "regime=f32 schedule=ring", "act=bf16 regime=f32", "regime=field"})
      expect_right(name, case_with_text(small_text(name),
                                        fmt::format("torus=2x1x2 prefill=ws2d:heads "
                                                    "decode=wg-x:batch prompt=4 weights=int8 {}",
                                                    keys)));
}

/// A wrong element of any value, on any chip, in any pass: a number beyond its bounds, NaN,
/// infinity.
TEST(TracesOfTexts, AWrongElementIsTheFirstDivergence) {
  const OneInN some(19, "values");
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const char* text : {"gemma-2", "gpt-2"}) {
    const dump::Dump right = f32_trace(text, "schedule=ring");
    ASSERT_EQ(verdict_of(right).first, std::nullopt);
    int number = 0;
    for (const auto& [name, value] : right.values) {
      if (dump::find(value.attributes, "same_as") || name.ends_with("ids") ||
          name.ends_with("pos") || name.find("sample.") != name.npos)
        continue;
      if (++number % 4 != 0 || !some(number / 4)) continue;
      dump::Dump wrong = right;
      dump::Value& of = wrong.values.find(name)->second;
      auto chip = of.chips.begin();
      if (of.in_shards()) std::advance(chip, number / 4 % std::ssize(of.chips));
      dump::StoredArray& array = of.in_shards() ? chip->second : of.whole;
      if (array.encoding != NumberFormat::f32) continue;
      const std::size_t i = static_cast<std::size_t>(number) % array.size();
      const auto old = static_cast<float>(array.at(i));
      const float others[] = {old + 1.0F + std::abs(old), std::nanf(""), kInf};
      poke(array, i, others[number / 4 % 3]);
      const dump::Verdict verdict = verdict_of(wrong);
      ASSERT_TRUE(verdict.first) << text << " " << name << " " << others[number / 4 % 3];
      EXPECT_EQ(verdict.rows[*verdict.first].name, name) << others[number / 4 % 3];
    }
    EXPECT_GT(number, 150);
  }
}

TEST(TracesOfTexts, AreJudgedAtTheTokensOfRowsAlone) {
  const dump::Dump right = trace_of(make_typed_plan(
      case_with_text(small_text("llama-3"),
                     "torus=1x1x1 prefill=ws2d:batch regime=f32 prompt=4 lengths=4,2 batch=2")));
  ASSERT_EQ(verdict_of(right).first, std::nullopt);
  const auto first_with = [&](const std::string& name, std::size_t i) {
    dump::Dump wrong = right;
    poke(wrong.values.find(name)->second.whole, i, std::nanf(""));
    return first_of(verdict_of(wrong));
  };
  // [B, L, F]: the second row has two tokens; [B, M, K, Q]: and two slots.
  const std::string up = "prefill.c0.layer0.up", v_cache = "prefill.c0.layer0.v_cache";
  const std::size_t F = right.values.find(up)->second.whole.size() / 8;
  EXPECT_EQ(first_with(up, 6 * F), "");
  EXPECT_EQ(first_with(up, 6 * F - 1), up);
  EXPECT_EQ(first_with(up, 4 * F - 1), up);
  const std::size_t slot = right.values.find(v_cache)->second.whole.size() / 8;
  EXPECT_EQ(first_with(v_cache, 6 * slot), "");
  EXPECT_EQ(first_with(v_cache, 6 * slot - 1), v_cache);
}

/// A sum of codes, what it is scaled to, an element of the model's own heads; not one of padding.
TEST(TracesOfTexts, OfCodesAndPaddingAreJudgedToo) {
  const auto first_with = [](const char* keys, const char* name, std::size_t i) {
    dump::Dump dump = trace_of(make_typed_plan(
        case_with_text(small_text("llama-3"),
                       fmt::format("torus=1x1x1 prefill=ws2d:batch prompt=3 batch=2 {}", keys))));
    EXPECT_EQ(verdict_of(dump).first, std::nullopt);
    dump::Value& value = dump.values.at(name);
    dump::StoredArray& array = value.in_shards() ? value.chips.begin()->second : value.whole;
    poke(array, i, static_cast<float>(array.at(i)) * 1.5F + 1.0F);
    return first_of(verdict_of(dump));
  };
  for (const char* regime : {"regime=exact", "regime=f32"}) {
    const std::string int8 = fmt::format("weights=int8 {}", regime);
    for (const char* name :
         {"prefill.c0.layer0.q_1_codes", "prefill.c0.layer1.q_1", "decode.1.layer0.up"})
      EXPECT_EQ(first_with(int8.c_str(), name, 3), name) << regime;
    // [B, L, H, Q]: four heads of six.
    const std::string padded = fmt::format("pad_heads=6 {}", regime), q = "prefill.c0.layer0.q";
    EXPECT_EQ(first_with(padded.c_str(), q.c_str(), 15), q) << regime;
    EXPECT_EQ(first_with(padded.c_str(), q.c_str(), 16), "") << regime;
  }
}

/// The values that a user knows, the names of the text: what lies between them is derived.
TEST(TracesOfTexts, WithoutWhatLiesBetweenAreRight) {
  for (const char* text : {"llama-3", "gemma-2", "cohere"})
    for (const char* keys : {"schedule=ring", "act=bf16 schedule=tree", "act=bf16 wire=bf16"}) {
      dump::Dump dump = f32_trace(text, keys);
      const std::set<std::string> user{"norm",    "q",        "k",    "v",   "q_rot", "k_cache",
                                       "v_cache", "attn",     "gate", "up",  "out",   "logits",
                                       "token",   "attn_out", "mid",  "ids", "hidden"};
      std::erase_if(dump.values, [&](const auto& value) {
        const std::string& name = value.first;
        const bool weight = name.find("prefill") != 0 && name.find("decode") != 0;
        return !weight && !user.contains(name.substr(name.rfind('.') + 1));
      });
      std::erase_if(dump.order, [&](const std::string& n) { return !dump.values.contains(n); });
      const dump::Verdict verdict = verdict_of(dump);
      EXPECT_EQ(verdict.exit_code(bounds::Fit::unlikely), 0)
          << text << " " << keys << ": " << first_of(verdict);
      EXPECT_EQ(verdict.count(bounds::Fit::different), 0) << text << " " << keys;
      // Another weight is seen across the gap.
      dump::Value& q = dump.values.find("decode.1.layer1.q")->second;
      dump::StoredArray& array = q.in_shards() ? q.chips.begin()->second : q.whole;
      poke(array, 0, static_cast<float>(array.at(0)) * 1.25F + 0.5F);
      EXPECT_EQ(first_of(verdict_of(dump)), "decode.1.layer1.q") << text << " " << keys;
    }
}

/// A trace without tokens and ids of its later passes: what follows from them is not judged.
TEST(TracesOfTexts, WithoutIdsAreNotJudgedWrong) {
  dump::Dump dump = f32_trace("llama-3", "");
  std::erase_if(dump.values, [](const auto& value) {
    return value.first.ends_with(".ids") || value.first.ends_with("token") ||
           value.first.find("embed.") != std::string::npos;
  });
  std::erase_if(dump.order, [&](const std::string& n) { return !dump.values.contains(n); });
  for (const char* given : {"prefill.c0.layer0.norm", "decode.1.layer0.norm"})
    dump.values.find(given)->second.attributes["given"] = "true";
  dump.attributes["arithmetic"] = "f32";
  const dump::Verdict verdict = verdict_of(dump);
  EXPECT_EQ(verdict.count(bounds::Fit::different), 0) << first_of(verdict);
  EXPECT_GT(verdict.count(bounds::Fit::within), 100);
}

/// A layer does not have the values of lines for other layers.
TEST(TracesOfTexts, AValueOfAnotherLayersLineIsUnknown) {
  dump::Dump dump = f32_trace("gemma-2", "");
  ASSERT_FALSE(dump.values.contains("prefill.c0.layer0.dot_2"));
  dump.values["prefill.c0.layer0.dot_2"] = dump.values.at("prefill.c0.layer1.dot_2");
  dump.order.push_back("prefill.c0.layer0.dot_2");
  const dump::Verdict verdict = verdict_of(dump);
  ASSERT_EQ(verdict.unknown.size(), 1U);
  EXPECT_EQ(verdict.unknown[0].name, "prefill.c0.layer0.dot_2");
}

/// A trace of another writer may name any key; those that are not for its text are refused as such.
TEST(TracesOfTexts, OfKeysThatATextDoesNotTakeAreRefused) {
  std::string text = print_model_text(small_text("llama-3"));
  std::replace(text.begin(), text.end(), 'Q', 'T');
  dump::Dump dump = trace_of(make_typed_plan(
      case_with_text(parse_model_text(text), "torus=2x1x2 prefill=ws2d:batch regime=f32")));
  dump.attributes["case"] += " prefix=1:2";
  try {
    verdict_of(dump);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "case_model") << error.what();
  }
}

/// What does not exist is 0, unless the trace says that it may be anything.
TEST(TracesOfTexts, MaskedSlotsMayHoldAnything) {
  dump::Dump dump = f32_trace("llama-3", "");
  dump::Value& score = dump.values.find("prefill.c0.layer0.score")->second;
  ASSERT_FALSE(score.in_shards());
  // [B, L, K, G, M]: the first query sees slot 0 alone.
  poke(score.whole, 1, -1e9F);
  EXPECT_EQ(first_of(verdict_of(dump)), "prefill.c0.layer0.score");
  dump.attributes["masked"] = "any";
  EXPECT_EQ(verdict_of(dump).exit_code(bounds::Fit::unlikely), 0);
  // Nor is it part of a later sum.
  poke(dump.values.find("prefill.c0.layer0.share")->second.whole, 1, 7.0F);
  EXPECT_EQ(verdict_of(dump).exit_code(bounds::Fit::unlikely), 0);
  poke(score.whole, 0, -1e9F);
  EXPECT_EQ(first_of(verdict_of(dump)), "prefill.c0.layer0.score");
}

/// A trace is judged by its own text, which its file need not be there for; by that of --case, if
/// given: of the same extents, or it is refused.
TEST(TracesOfTexts, AreJudgedByTheTextThatIsAsked) {
  const ModelText text = text_model(case_of_text("gpt-2", "").model)->text();
  const Case c = case_with_text(text, "torus=1x1x2 prefill=ws2d:batch regime=f32");
  const dump::Dump dump = trace_of(make_typed_plan(c));
  EXPECT_FALSE(std::filesystem::exists(text.name + ".model"));
  EXPECT_EQ(verdict_of(dump).first, std::nullopt);
  EXPECT_FALSE(dump::read_claim(dump.attributes, std::nullopt).other_text);
  const auto claim_of = [&](const std::string& model) {
    std::string line = print_case(c);
    const auto at = line.find("model=") + 6;
    return dump::read_claim(dump.attributes, line.replace(at, line.find(' ', at) - at, model));
  };
  EXPECT_FALSE(claim_of(text_file("gpt-2")).other_text);
  EXPECT_TRUE(claim_of(text_file("gpt-2") + ",eps=1e-3").other_text);
  for (const std::string& model : {text_file("llama-3"), text_file("gpt-2") + ",F=96",
                                   text_file("gpt-2") + ",layers=1", std::string("palm-tiny")})
    try {
      claim_of(model);
      FAIL() << model;
    } catch (const Error& error) {
      EXPECT_EQ(error.label(), "compare_case") << model;
    }
}

/// Returns the verdict on the trace of a case's run by the programs of another text, judged by the
/// case's own; nullopt if no run of it ends: steps of other types, or a number that is not finite.
std::optional<dump::Verdict> verdict_on_run_of(const Case& c, const ModelText& other) {
  std::optional<dump::Dump> trace;
  try {
    trace = trace_of(make_typed_plan(plan_of_other_text(c, other)));
  } catch (const Error&) {
    return std::nullopt;
  }
  return verdict_of(*trace);
}

/// Of 1,493 mutants one in so many is tried, by default more than 400 in each regime.
/// SHARDPROOF_MUTANT_STRIDE says another number; 1 is every one.
int mutant_stride() {
  const char* const given = std::getenv("SHARDPROOF_MUTANT_STRIDE");
  const int stride = given == nullptr ? 3 : std::stoi(given);
  if (stride < 1) throw std::invalid_argument("SHARDPROOF_MUTANT_STRIDE");
  return stride;
}

/// Every named value is judged, so that a mutant's own line differs even where later ones do not:
/// the list of those that are the same function is empty in either regime.
void differ_by_their_line(const char* regime) {
  int number = 0, judged = 0;
  const int stride = mutant_stride();
  const OneInN some(9, "mutants");
  for (const char* name : {"llama-3", "gpt-2", "gemma-2", "cohere", "qwen3"}) {
    const ModelText text = small_text(name);
    Case c = case_with_text(
        text,
        fmt::format("torus=1x2x1 prefill=ws1d:heads decode=ws2d:batch prompt=6 batch=2 regime={}",
                    regime));
    c.gen = 2;  // a prefill and one decode step
    for (const Mutant& mutant : mutants_of(text)) {
      if (++number % stride != 0 || !some(number / stride)) continue;
      const auto verdict = verdict_on_run_of(c, mutant.text);
      if (!verdict) continue;
      ++judged;
      const std::string what = fmt::format("{}: {}", name, mutant.what);
      EXPECT_EQ(verdict->exit_code(bounds::Fit::unlikely), 1) << what;
      if (!verdict->first) continue;
      // Of a line of several ops the flat form has several, "norm_2".
      const std::string first = first_of(*verdict), line = "." + mutant.line;
      EXPECT_TRUE(first.ends_with(line) || first.find(line + "_") != std::string::npos)
          << what << " but first " << first;
    }
  }
  if (some.all()) {
    EXPECT_GE(judged, 1200 / stride);
  }
}

/// The value of another expert, or a mark too few, is the first divergence.
TEST(TracesOfTexts, AWrongChoiceOfExpertsIsTheFirstDivergence) {
  for (const char* regime : {"regime=exact", "regime=f32"}) {
    const ModelText text = small_text("experts");
    const Case c =
        case_with_text(text, fmt::format("torus=2x1x2 prefill=ws2d:batch prompt=5 {}", regime));
    for (const auto& [old_line, new_line, line] : std::vector<std::array<std::string, 3>>{
             {"top(best, X, experts)", "top(best, X, groups)", "chosen"},
             {"top(best, X, experts)", "top(prob, X, experts)", "chosen"},
             {"top(group, N, groups)", "top(group, N, experts)", "open"},
             {"sum(e_weighed, X, stored)", "sum(e_out, X, stored)", "moe_out"},
             {"picked : BLX where chosen = prob", "picked : BLX = prob", "picked"},
             {"mean(picked, X)", "mean(prob, X)", "typical"},
             {"score : BLKGM where near =", "score : BLKGM =", "score"}}) {
      std::string other = print_model_text(text);
      const auto at = other.find(old_line);
      ASSERT_NE(at, std::string::npos) << old_line;
      other.replace(at, old_line.size(), new_line);
      const dump::Verdict verdict =
          verdict_of(trace_of(make_typed_plan(plan_of_other_text(c, parse_model_text(other)))));
      EXPECT_TRUE(first_of(verdict).ends_with("." + line))
          << regime << " " << new_line << ": " << first_of(verdict);
    }
  }
}

TEST(MutantsOfTexts, DifferByTheirLine) { differ_by_their_line("exact"); }
TEST(MutantsOfTexts, DifferByTheirLineInTheField) { differ_by_their_line("field"); }

}  // namespace
}  // namespace shardproof
