// Traces of the field regime: what our runs write is judged equal, and one wrong word is not.
#include "golden/trace/verdict/field_verdict.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/run/inference.h"
#include "golden/memo/oracle_memo.h"
#include "golden/trace/write/field_words.h"
#include "golden/trace/write/trace.h"
#include "tests/golden/trace/written.h"
#include "tests/sanitized.h"

namespace shardproof::dump {
namespace {

namespace fs = std::filesystem;

Dump trace_of(const std::string& line) {
  const TypedPlan typed = make_typed_plan(parse_case(line));
  const RunPlan& plan = typed.plan;
  FieldSetting setting;
  setting.seed = plan.source_case.seed;
  OracleMemo memo;
  const auto known = memo.of_field(plan, setting);
  const fs::path path = fs::path(testing::TempDir()) / fmt::format("field{}.h5", ::getpid());
  {
    Trace trace(typed, path);
    Threads threads(1);
    run_inference(plan, Weights(plan.source_case.model, {}), known->ids, threads, &trace, {}, {},
                  nullptr, std::make_shared<const Field>(setting));
    trace.write("complete");
  }
  Dump dump = read_dump(path);
  fs::remove(path);
  return dump;
}

Verdict verdict_of(const Dump& dump) {
  Values values;
  const Claim claim = read_claim(dump.attributes, std::nullopt);
  EXPECT_TRUE(claim.in_field);
  return judge_in_field(dump, claim, values);
}

std::string label_of(const Dump& dump) {
  try {
    verdict_of(dump);
  } catch (const Error& error) {
    return error.label();
  }
  return "";
}

constexpr const char* kModel =
    "model=palm-tiny,layers=1,E=12,F=24,H=6,Q=4,V=12 gen=2 regime=field ";

TEST(FieldTraces, OfOurRunsAreEqual) {
  OneInN some(3, "cases");
  for (const char* keys :
       {"torus=1x3x1 prefill=ws1d", "torus=2x1x3 prefill=ws2d:heads decode=wg-x:batch",
        "torus=1x2x1 prefill=wg-xyz:batch weights=int8 act=bf16",
        "torus=2x1x1 prefill=ws2d:batch "
        "prompt=4 lengths=ragged",
        "torus=1x1x2 prefill=ws1d pad_vocab=16 pad_heads=8", "torus=1x2x2 prefill=ws2d:few-heads",
        "torus=1x2x1 prefill=ws2d:heads prefix=1:2 prompt=5 chunk=2"}) {
    if (!some()) continue;
    const Verdict verdict = verdict_of(trace_of(std::string(kModel) + keys));
    EXPECT_EQ(verdict.exit_code(), 0) << keys;
    EXPECT_EQ(verdict.count(Fit::equal), std::ssize(verdict.rows)) << keys;
    EXPECT_EQ(verdict.compared, verdict.whole) << keys;
    EXPECT_TRUE(verdict.unknown.empty()) << keys;
  }
}

/// A wrong word of any value, weights and ids included, on any chip.
TEST(FieldTraces, AWrongWordIsTheFirstDivergence) {
  const Dump right = trace_of(std::string(kModel) + "torus=2x1x3 prefill=ws2d:heads");
  const OneInN some(7, "values");
  int number = 0;
  for (const auto& [name, value] : right.values) {
    if (find(value.attributes, "same_as") || !some(++number)) continue;
    Dump wrong = right;
    Value& of = wrong.values.find(name)->second;
    auto chip = of.chips.begin();
    if (of.in_shards()) std::advance(chip, number % std::ssize(of.chips));
    StoredArray& array = of.in_shards() ? chip->second : of.whole;
    // Low, high, and unused words; a bit, all of a word, never written.
    const std::size_t i = static_cast<std::size_t>(number) % array.size();
    std::int32_t word = 0;
    std::memcpy(&word, own_bytes(array).data() + 4 * i, 4);
    word = number % 3 == 0 ? -1 : word ^ (number % 3 == 1 ? 1 : 1 << 20);
    std::memcpy(own_bytes(array).data() + 4 * i, &word, 4);
    const Verdict verdict = verdict_of(wrong);
    ASSERT_TRUE(verdict.first) << name;
    EXPECT_EQ(verdict.rows[*verdict.first].name, name);
    EXPECT_EQ(verdict.exit_code(), 1) << name;
  }
  EXPECT_GT(number, 60);
}

TEST(FieldTraces, WhatDoesNotFitIsSaid) {
  const Dump right = trace_of(std::string(kModel) + "torus=1x2x1 prefill=ws1d");
  Dump dump = right;
  dump.attributes.erase("field");
  EXPECT_EQ(label_of(dump), "compare_case");
  for (const char* text :
       {"", "seed=1", "seed=1 bits=61 lanes=4 draw=0", "seed=x bits=61 lanes=3 draw=0",
        "seed=1 bits=61 lanes=3 draw=2", "seed=1 bits=62 lanes=3 draw=0",
        "seed=1 bits=61 lanes=0 draw=0", "seed=1 bits=3 lanes=3 draw=0",
        "seed=1 bits=61 lanes=1 draw=0", "seed=1 bits=61 lanes=3 more=0"}) {
    dump.attributes["field"] = text;
    EXPECT_EQ(label_of(dump), "dump_attribute") << text;
  }
  // Other numbers than the trace's: every value is another.
  dump.attributes["field"] = "seed=2 bits=61 lanes=3 draw=0";
  EXPECT_GT(verdict_of(dump).count(Fit::different), 20);
  // A missing shard, an array that is too short, one of floats.
  const auto misfits_of = [&](const std::function<void(Value&)>& change) {
    Dump other = right;
    Value& value = other.values.find("prefill.c0.layer0.q")->second;
    change(value);
    const Verdict verdict = verdict_of(other);
    EXPECT_EQ(verdict.exit_code(), verdict.misfits > 0 ? 1 : 0);
    return verdict.misfits;
  };
  EXPECT_EQ(misfits_of([](Value&) {}), 0);
  EXPECT_EQ(misfits_of([](Value& v) { v.whole.bytes.resize(v.whole.bytes.size() - 4); }), 1);
  EXPECT_EQ(misfits_of([](Value& v) { v.whole.encoding = NumberFormat::f32; }), 1);
  EXPECT_EQ(misfits_of([](Value& v) { v.attributes.erase("layout"); }), 1);
  EXPECT_EQ(misfits_of([](Value& v) { v.attributes["layout"] = "BL"; }), 1);
  for (const char* shape : {"9999999999 9999999999 9999999999", "-1", "0 0 0 0", ""})
    EXPECT_EQ(misfits_of([&](Value& v) { v.attributes["shape"] = shape; }), 0) << shape;
  Dump blocks = right;
  for (auto& [name, value] : blocks.values)
    if (name.ends_with("sample.cv")) value.attributes["shape"] = "1 5";
  EXPECT_GT(verdict_of(blocks).misfits, 0);
}

TEST(FieldWords, HoldEveryNumber) {
  for (const int lanes : {1, 2, 3}) {
    FieldSetting setting;
    setting.lanes = lanes;
    std::vector<FieldElement> numbers;
    for (const std::uint64_t v : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 31) - 1,
                                  std::uint64_t{1} << 31, (std::uint64_t{1} << 61) - 2}) {
      FieldElement number{};
      for (int lane = 0; lane < lanes; ++lane)
        number.lane[static_cast<std::size_t>(lane)] = v >> lane;
      numbers.push_back(number);
    }
    numbers.push_back(Field::unwritten());
    const std::vector<std::int32_t> words = to_words(numbers, setting);
    EXPECT_EQ(std::ssize(words), std::ssize(numbers) * words_of(setting));
    EXPECT_EQ(from_words(words, setting), numbers);
    EXPECT_EQ(parse_field(field_text(setting)), setting);
  }
}

}  // namespace
}  // namespace shardproof::dump
