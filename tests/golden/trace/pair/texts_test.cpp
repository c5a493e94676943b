// Two traces of models that are texts: other layouts, strategies and storage types are rounding; a
// fault in A, in B, or in both is named.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "golden/trace/pair/places.h"
#include "tests/golden/text/mutants.h"
#include "tests/golden/text/text_trace.h"
#include "tests/golden/trace/pair/pairs.h"
#include "tests/sanitized.h"

namespace shardproof::dump {
namespace {

const std::string kLayouts = "torus=2x1x2 prefill=ws2d:heads decode=wg-x:batch schedule=ring ",
                  kOthers = "torus=1x2x1 prefill=wg-xyz:batch decode=ws2d:batch schedule=tree ";
const std::string kFloats = "batch=4 prompt=4 regime=f32 ";

Case case_of(const std::string& name, const std::string& keys) {
  return case_with_text(small_text(name), keys);
}

/// Compares traces of texts, each judged by the weights of its own case.
Pair pair_of_texts(const Dump& a, const Dump& b, bool same = false, int runs = 2) {
  const auto claimed = [](const Dump& dump) {
    Claim claim = read_claim(dump.attributes, std::nullopt);
    const Case& c = claim.source_case;
    auto weights = std::make_shared<const Weights>(
        oracle::as_stored(generated_weights(c), c.numerics.weights));
    return ClaimedTrace{dump, std::move(claim), std::move(weights)};
  };
  return compare_pair(claimed(a), claimed(b), {.same = same, .runs = runs});
}

/// The array of a value, or the first chip's shard of it.
StoredArray& array_of(Dump& dump, const std::string& name) {
  Value& value = dump.values.find(name)->second;
  return value.in_shards() ? value.chips.begin()->second : value.whole;
}

/// The names of a run's values in f32, but for weights and those of sampling.
std::vector<std::string> floats_of(const Dump& dump) {
  std::vector<std::string> names;
  for (const auto& [name, value] : dump.values) {
    const StoredArray& array = value.in_shards() ? value.chips.begin()->second : value.whole;
    if (find(value.attributes, "same_as") == nullptr && array.encoding == NumberFormat::f32 &&
        place_of_pass(name.substr(0, name.find('.', name.find('.') + 1))) >= 0 &&
        !name.ends_with("pos") && name.find("sample.") == name.npos)
      names.push_back(name);
  }
  return names;
}

/// Makes an element of some value another number, and returns the value's name.
std::string spoil(Dump& dump, std::mt19937_64& random) {
  const std::vector<std::string> names = floats_of(dump);
  const std::string name = names[random() % names.size()];
  StoredArray& array = array_of(dump, name);
  const std::size_t i = random() % array.size();
  const auto old = static_cast<float>(array.at(i));
  shardproof::poke(array, i, old + 1.0F + std::abs(old));
  return name;
}

/// The trace of some rows of a case's prompt.
Dump trace_of_rows(Case c, const std::vector<std::int64_t>& rows) {
  const Weights weights = oracle::as_stored(generated_weights(c), c.numerics.weights);
  const IntTensor all = generate_prompt(c.model, c.seed, c.batch, c.prompt, c.prefix);
  IntTensor prompt;
  std::string numbers;
  for (const std::int64_t row : rows) {
    const auto first = all.data.begin() + row * c.prompt;
    prompt.data.insert(prompt.data.end(), first, first + c.prompt);
    numbers += (numbers.empty() ? "" : ",") + std::to_string(row);
  }
  c.batch = std::ssize(rows);
  prompt.shape = {c.batch, c.prompt};
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / fmt::format("rows{}.h5", ::getpid());
  const TypedPlan typed = make_typed_plan(c);
  {
    Threads threads(1);
    Trace trace(typed, path);
    run_inference(typed.plan, weights, prompt, threads, &trace);
    trace.write("complete");
  }
  Dump dump = read_dump(path);
  std::filesystem::remove(path);
  dump.attributes["rows"] = numbers;
  return dump;
}

std::string name_of(const Row* row) { return row == nullptr ? "" : row->name; }

/// A text under two layouts, B in bf16 if asked.
class TextPairs : public testing::TestWithParam<std::string> {
 protected:
  Dump a_trace(const std::string& more = "") const {
    return trace_of(make_typed_plan(case_of(GetParam(), kLayouts + kFloats + more)));
  }
  Dump b_trace(const std::string& more = "") const {
    return trace_of(make_typed_plan(case_of(GetParam(), kOthers + kFloats + more)));
  }
};

TEST_P(TextPairs, UnderTwoLayoutsAreApartByRounding) {
  const Pair pair = pair_of_texts(a_trace(), b_trace());
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  EXPECT_TRUE(pair.differences.empty());
  EXPECT_GT(pair.count(Likeness::rounding), 20);
  EXPECT_FALSE(pair.logits.empty());
}

TEST_P(TextPairs, InF32AndBf16AreApartByRounding) {
  const Pair pair = pair_of_texts(a_trace(), b_trace("act=bf16 wire=bf16"));
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  ASSERT_EQ(pair.differences.size(), 1U);
  EXPECT_EQ(pair.differences[0].of, "numbers");
  EXPECT_GT(pair.count(Likeness::rounding), 20);
}

/// The ids of prompts, and weights, that differ are said before any value.
TEST_P(TextPairs, OfOtherPromptsOrWeightsSayItFirst) {
  const Dump a = a_trace();
  Dump other = b_trace();
  StoredArray& ids = array_of(other, "prefill.c0.ids");
  const std::int32_t id = ids.at(5) == 0 ? 1 : 0;
  std::memcpy(ids.bytes.data() + 5 * sizeof id, &id, sizeof id);
  Pair pair = pair_of_texts(a, other);
  ASSERT_EQ(pair.differences.size(), 1U);
  EXPECT_EQ(pair.differences[0].of, "prompts");
  EXPECT_EQ(pair.exit_code(), 1);

  pair = pair_of_texts(a, b_trace("weights=bf16"));
  ASSERT_FALSE(pair.differences.empty());
  EXPECT_EQ(pair.differences[0].of, "weights");
  EXPECT_TRUE(pair.differences[0].text.starts_with("stored as f32 in A, bf16 in B; "))
      << pair.differences[0].text;
  EXPECT_EQ(pair.count(Likeness::rounding), 0);
  EXPECT_EQ(pair.wrong(false), nullptr);
  EXPECT_EQ(pair.wrong(true), nullptr);
  EXPECT_EQ(pair.exit_code(), 1);
}

/// One element of any value, in A, in B, or of one in A and another in B.
TEST_P(TextPairs, NameAWrongElementAndItsSide) {
  const Dump right[] = {a_trace(), b_trace("act=bf16 wire=bf16")};
  for (int seed = 0; seed < fewer_if_sanitized(6, 3, "seeds"); ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    Dump dumps[] = {right[0], right[1]};
    std::string wrong[2];
    for (const int side : {0, 1})
      if (((seed % 3 + 1) >> side & 1) != 0) wrong[side] = spoil(dumps[side], random);
    const Pair pair = pair_of_texts(dumps[0], dumps[1], false, 0);
    EXPECT_EQ(name_of(pair.wrong(false)), wrong[0]) << seed;
    EXPECT_EQ(name_of(pair.wrong(true)), wrong[1]) << seed;
    EXPECT_TRUE(pair.first) << seed;
    EXPECT_EQ(pair.exit_code(), 1);
  }
}

/// The prompt whole and in chunks, rows in another order, a row alone: right, and with one wrong
/// element.
TEST_P(TextPairs, HoldRelations) {
  const std::string plain = "torus=1x1x1 prefill=ws2d:batch " + kFloats;
  const Dump whole = trace_of(make_typed_plan(case_of(GetParam(), plain)));
  const Dump others[] = {trace_of(make_typed_plan(case_of(GetParam(), plain + "chunk=2"))),
                         trace_of_rows(case_of(GetParam(), plain), {2, 0, 3, 1}),
                         trace_of_rows(case_of(GetParam(), plain), {3}), b_trace()};
  int number = 0;
  for (const Dump& other : others)
    for (const bool turned : {false, true}) {
      const auto compared = [&](const Dump& dump) {
        return turned ? pair_of_texts(dump, whole, true, 0) : pair_of_texts(whole, dump, true, 0);
      };
      const Pair pair = compared(other);
      EXPECT_EQ(pair.exit_code(), 0) << number << open_rows(pair);
      EXPECT_TRUE(pair.differences.empty()) << number;
      EXPECT_GT(pair.count(Likeness::same) + pair.count(Likeness::rounding), 40) << number;
      if (++number % 4 > 1) continue;
      std::mt19937_64 random(static_cast<std::uint64_t>(number));
      Dump wrong = other;
      const std::string name = spoil(wrong, random);
      const Pair parted = compared(wrong);
      EXPECT_EQ(name_of(parted.wrong(!turned)), name) << number;
      EXPECT_EQ(name_of(parted.wrong(turned)), "") << number;
      EXPECT_EQ(parted.exit_code(), 1) << number;
    }
}

/// In the exact regime the bits of stored values are one, and of partial sums nothing is claimed.
TEST_P(TextPairs, HoldRelationsToTheBit) {
  const std::string plain = "torus=1x1x1 prefill=ws2d:batch batch=4 prompt=4 ";
  const Dump whole = trace_of(make_typed_plan(case_of(GetParam(), plain))),
             chunked = trace_of(make_typed_plan(case_of(GetParam(), plain + "chunk=2")));
  Pair pair = pair_of_texts(whole, chunked, true, 0);
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  EXPECT_EQ(pair.count(Likeness::rounding), 0);
  // Of a sum this trace has what is rounded of it alone.
  Dump rounded = chunked;
  std::erase_if(rounded.values, [](const auto& value) {
    const std::string* const layout = find(value.second.attributes, "layout");
    return layout != nullptr && layout->find("partialsum") != layout->npos;
  });
  std::erase_if(rounded.order, [&](const auto& name) { return !rounded.values.contains(name); });
  pair = pair_of_texts(whole, rounded, true, 0);
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  EXPECT_GT(pair.count(Likeness::rounding), 0);
}

/// A run of another text than the case says: each trace's first wrong value is the one that it has
/// alone, and what follows is of operands that differ.
TEST_P(TextPairs, NameAnotherLineOfATextAndItsSide) {
  const Case of_a = case_of(GetParam(), kLayouts + kFloats),
             of_b = case_of(GetParam(), kOthers + kFloats);
  const Dump right_a = a_trace(), right_b = b_trace();
  const std::vector<Mutant> mutants = mutants_of(small_text(GetParam()));
  const auto wrong = [&](std::size_t i, bool b) -> std::optional<Dump> {
    const ModelText& text = mutants[i % mutants.size()].text;
    try {
      Dump dump = trace_of(make_typed_plan(plan_of_other_text(b ? of_b : of_a, text)));
      if (verdict_of(dump).first) return dump;
    } catch (const Error&) {  // no run of it ends
    }
    return std::nullopt;
  };
  bool any = false;
  for (std::size_t i = 7; i < mutants.size() && !any; i += 31) {
    const std::optional<Dump> a = wrong(i, false), b = wrong(i + 13, true);
    if (!a || !b) continue;
    any = true;
    const std::string what = mutants[i].what + " / " + mutants[(i + 13) % mutants.size()].what;
    const std::string first_a = shardproof::first_of(verdict_of(*a)),
                      first_b = shardproof::first_of(verdict_of(*b));
    for (const int sides : {1, 2, 3}) {
      const bool in_a = (sides & 1) != 0, in_b = (sides & 2) != 0;
      const Pair pair = pair_of_texts(in_a ? *a : right_a, in_b ? *b : right_b, false, 0);
      EXPECT_EQ(pair.wrong(false) == nullptr ? "" : pair.wrong(false)->title, in_a ? first_a : "")
          << what;
      EXPECT_EQ(pair.wrong(true) == nullptr ? "" : pair.wrong(true)->title, in_b ? first_b : "")
          << what;
      EXPECT_GT(pair.count(Likeness::operands), 10) << what;
      EXPECT_EQ(pair.count(Likeness::not_judged), 0) << what << open_rows(pair);
      EXPECT_EQ(pair.exit_code(), 1);
    }
  }
  EXPECT_TRUE(any);
}

std::vector<std::string> texts() {
  if (kSanitized) return {"gemma-2"};
  return {"llama-3", "gpt-2", "gemma-2", "experts"};
}
INSTANTIATE_TEST_SUITE_P(Texts, TextPairs, testing::ValuesIn(texts()));

}  // namespace
}  // namespace shardproof::dump
