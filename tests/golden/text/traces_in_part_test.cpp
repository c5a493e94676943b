// `compare` of traces that lack some of a text's values, or have them in other formats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "tests/golden/text/text_case.h"
#include "tests/golden/text/text_trace.h"

namespace shardproof {
namespace {

/// Leaves the weights, and those values of the run whose last name is kept.
void keep(dump::Dump& dump, const std::function<bool(const std::string& name)>& kept) {
  std::erase_if(dump.values, [&](const auto& value) {
    const std::string& name = value.first;
    return name.find('.') != name.npos &&
           (name.starts_with("prefill") || name.starts_with("decode")) &&
           !kept(name.substr(name.rfind('.') + 1));
  });
  std::erase_if(dump.values, [&](const auto& value) {
    const std::string* const other = dump::find(value.second.attributes, "same_as");
    return other != nullptr && !dump.values.contains(*other);
  });
  std::erase_if(dump.order, [&](const std::string& n) { return !dump.values.contains(n); });
}

/// Returns an f32 array in bf16, which has its numbers.
dump::StoredArray in_bf16(const dump::StoredArray& array) {
  dump::StoredArray narrow{array.shape, NumberFormat::bf16, {}};
  // The upper half of each, little-endian.
  for (std::size_t i = 0; i < array.bytes.size(); i += 4)
    narrow.bytes.insert(narrow.bytes.end(), {array.bytes[i + 2], array.bytes[i + 3]});
  return narrow;
}

/// Logits alone are held against runs of the text in the trace's arithmetic.
TEST(TracesInPart, OfLogitsAloneAreHeldAgainstReruns) {
  for (const char* text : {"llama-3", "gemma-2"})
    for (const char* keys : {"", "act=bf16", "lengths=5,3", "weights=int8"}) {
      dump::Dump dump = f32_trace(text, keys);
      const std::set<std::string> few{"embed", "logits", "ids"};
      keep(dump, [&](const std::string& name) { return few.contains(name); });
      const dump::Verdict right = verdict_of(dump);
      EXPECT_EQ(right.exit_code(bounds::Fit::unlikely), 0) << text << " " << keys;
      // No token of the trace is of the last pass.
      std::string last;
      for (const auto& [name, value] : dump.values)
        if (name.starts_with("decode") && name.ends_with("logits")) last = std::max(last, name);
      ASSERT_NE(last, "");
      dump::StoredArray& logits = dump.values.at(last).whole;
      for (std::size_t i = 0; i < logits.size(); ++i)
        poke(logits, i, static_cast<float>((7 * i) % 13) / 16.0F - 0.375F);
      const dump::Verdict wrong = verdict_of(dump);
      EXPECT_EQ(wrong.count(bounds::Fit::different), 0) << text << " " << keys;
      ASSERT_TRUE(wrong.first) << text << " " << keys;
      EXPECT_EQ(wrong.rows[*wrong.first].name, last) << text << " " << keys;
      EXPECT_EQ(wrong.rows[*wrong.first].fit, bounds::Fit::unlikely) << text << " " << keys;
      EXPECT_EQ(wrong.exit_code(bounds::Fit::unlikely), 1) << text << " " << keys;
    }
}

/// Where one token's other choice of experts takes a right run far away, no distance is unlikely;
/// nor is it judged.
TEST(TracesInPart, OfChosenExpertsAreNotCalledUnlikely) {
  dump::Dump dump = f32_trace("experts", "act=bf16");
  const std::set<std::string> few{"embed", "logits", "ids"};
  keep(dump, [&](const std::string& name) { return few.contains(name); });
  for (auto& [name, value] : dump.values)
    if (name.ends_with("logits"))
      for (std::size_t i = 0; i < value.whole.size(); ++i)
        poke(value.whole, i, static_cast<float>((7 * i) % 13) - 6.0F);
  const dump::Verdict verdict = verdict_of(dump);
  EXPECT_EQ(verdict.count(bounds::Fit::unlikely), 0);
  EXPECT_TRUE(verdict.lacks_operands());
  EXPECT_EQ(verdict.exit_code(bounds::Fit::unlikely), 1);
}

/// Beside a wrong value no runs weigh what lacks operands: it is not judged, and that is said.
TEST(TracesInPart, OfLogitsBesideAWrongValueLackOperands) {
  dump::Dump dump = f32_trace("gemma-2", "");
  const std::set<std::string> few{"embed", "logits", "ids"};
  keep(dump, [&](const std::string& name) { return few.contains(name); });
  EXPECT_FALSE(verdict_of(dump).lacks_operands());
  for (auto& [name, value] : dump.values)
    if (name.ends_with(".embed")) poke(value.whole, 0, 100.0F);
  const dump::Verdict verdict = verdict_of(dump);
  EXPECT_GT(verdict.count(bounds::Fit::different), 0);
  EXPECT_TRUE(verdict.lacks_operands());
}

/// A mark and a small integer are the same in 16 bits.
TEST(TracesInPart, OfMarksIn16BitsAreRight) {
  const std::set<std::string> whole{"see", "near", "far", "see_near", "chosen", "open"};
  for (const char* text : {"llama-3", "gemma-2", "experts"}) {
    dump::Dump dump = f32_trace(text, "");
    int changed = 0;
    for (auto& [name, value] : dump.values) {
      if (!whole.contains(name.substr(name.rfind('.') + 1)) || value.in_shards()) continue;
      value.whole = in_bf16(value.whole);
      ++changed;
    }
    EXPECT_GT(changed, 0);
    const dump::Verdict verdict = verdict_of(dump);
    EXPECT_EQ(verdict.exit_code(bounds::Fit::unlikely), 0) << text << ": " << first_of(verdict);
    EXPECT_EQ(verdict.count(bounds::Fit::not_judged),
              verdict_of(f32_trace(text, "")).count(bounds::Fit::not_judged))
        << text;
  }
}

/// Where the trace leaves open which marks are right, a number between them is wrong all the same.
TEST(TracesInPart, AMarkIsZeroOrOne) {
  dump::Dump dump = f32_trace("experts", "");
  const std::set<std::string> left_out{"prob", "load", "fair", "wanted", "group", "left", "best"};
  keep(dump, [&](const std::string& name) { return !left_out.contains(name); });
  dump.attributes["ulp"] = "1000000";  // of each function: the marks may be any
  const std::string chosen = "prefill.c0.layer1.chosen";
  const auto first_with = [&](float mark) {
    dump::Dump other = dump;
    poke(other.values.at(chosen).whole, 0, mark);
    return first_of(verdict_of(other));
  };
  for (const float mark : {0.0F, 1.0F}) EXPECT_NE(first_with(mark), chosen) << mark;
  EXPECT_EQ(first_with(0.3F), chosen);
}

/// Chips' partial sums that add up to the right total, but are each another's.
TEST(TracesInPart, OfPartialSumsAreJudgedChipByChip) {
  for (const char* regime : {"regime=f32", "regime=exact"}) {
    const dump::Dump right = trace_of(make_typed_plan(case_with_text(
        small_text("llama-3"),
        fmt::format("torus=2x2x1 prefill=ws2d:heads decode=ws2d:heads prompt=3 {}", regime))));
    EXPECT_EQ(verdict_of(right).exit_code(bounds::Fit::unlikely), 0) << regime;
    int summed = 0;
    for (const auto& [name, value] : right.values) {
      const std::string* const layout = dump::find(value.attributes, "layout");
      if (!value.in_shards() || layout == nullptr || layout->find("partialsum-") == layout->npos ||
          name.find("layer0") == name.npos || dump::find(value.attributes, "meaning") == nullptr)
        continue;
      const std::string line = name.substr(name.rfind('.') + 1);
      if (line != "q_1" && line != "gate_1" && line != "ffn_out_1") continue;
      ++summed;
      dump::Dump wrong = right;
      auto& chips = wrong.values.find(name)->second.chips;
      // Along x, or where they are partial over y, along y.
      std::swap(chips.at({0, 0, 0}),
                line == "ffn_out_1" ? chips.at({0, 1, 0}) : chips.at({1, 0, 0}));
      EXPECT_EQ(first_of(verdict_of(wrong)), name) << regime;
    }
    EXPECT_GT(summed, 0) << regime;
  }
}

}  // namespace
}  // namespace shardproof
