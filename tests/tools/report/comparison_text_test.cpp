#include "tools/report/comparison_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/tools/report/judged_dump.h"
#include "tools/report/sentence.h"

namespace shardproof::tools {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// What is said of a run in which these columns of `gate` are wrong in every row.
std::string with_wrong_columns(const std::vector<std::size_t>& columns) {
  const JudgedDump dumps;
  std::vector<dump::Written> values = dumps.run().values();
  dump::Written& gate = dump::named(values, "decode.1.layer1.gate");
  const auto F = static_cast<std::size_t>(gate.shape.back());
  for (std::size_t row = 0; row < gate.numbers.size() / F; ++row)
    for (const std::size_t column : columns) gate.numbers[row * F + column] += 1;
  return comparison_text(dumps.judged(dumps.run().trace(values, "f32")), true);
}

TEST(ComparisonText, NamesTheIndicesThatAreWrong) {
  EXPECT_TRUE(has(with_wrong_columns({3, 4, 5}), "\n  wrong is exactly F 3 to 5\n"));
  EXPECT_TRUE(has(with_wrong_columns({3, 5, 6}), "\n  wrong is exactly F 3, 5 to 6\n"));
  EXPECT_TRUE(has(with_wrong_columns({0, 11}), "\n  wrong is exactly F 0, 11\n"));
  EXPECT_FALSE(has(with_wrong_columns({}), "first divergence"));
}

constexpr const char* kGate = "decode.1.layer1.gate";

/// All values whole, but for gate, of which each chip has a shard.
dump::Dump with_gate_in_shards(const JudgedDump& dumps) {
  std::vector<dump::Written> values = dumps.run().values();
  const dump::Written gate = dump::named(values, kGate);
  std::erase_if(values, [&](const dump::Written& w) { return w.name == gate.name; });
  dump::Dump dump = dumps.run().trace(values, "f32");
  dumps.run().add(dump, gate, "BLF_z", 2);
  return dump;
}

TEST(ComparisonText, MarksAValueThatIsNotWhole) {
  const JudgedDump dumps;
  dump::Dump dump = with_gate_in_shards(dumps);
  dump::Value& value = dump.values.find(kGate)->second;
  EXPECT_FALSE(has(comparison_text(dumps.judged(dump), false), "+ not every element is there\n"));
  for (const int x : {0, 1}) value.chips.erase({x, 0, 2});
  const std::string text = comparison_text(dumps.judged(dump), false);
  EXPECT_TRUE(has(text, "+ not every element is there\n")) << text;
  EXPECT_TRUE(has(text, " +\n"));
  EXPECT_TRUE(has(comparison_text(dumps.judged(dump), true), "decode.1.layer1.gate"));
}

TEST(ComparisonText, SaysWhereReplicasDiffer) {
  const JudgedDump dumps;
  dump::Dump dump = with_gate_in_shards(dumps);
  dump::Value& value = dump.values.find(kGate)->second;
  EXPECT_FALSE(has(comparison_text(dumps.judged(dump), false), "* its replicas differ\n"));
  dump::StoredArray& shard = value.chips.at({1, 0, 2});
  dump::poke(shard, 0, shard.at(0) + 1);
  EXPECT_TRUE(has(comparison_text(dumps.judged(dump), false), "* its replicas differ\n"));
}

/// Ids and logits alone, the last step's in shards on two chips, with its numbers changed.
Comparison with_logits_alone(const std::function<void(std::vector<double>&)>& change) {
  const dump::ExactRun run(
      "torus=1x1x2 prefill=ws1d decode=ws1d batch=2 prompt=5 gen=3 seed=5 "
      "model=palm-tiny,layers=6,E=32,F=48,H=4,K=2,Q=8,V=24");
  std::vector<dump::Written> values = run.values();
  std::erase_if(values, [](const dump::Written& w) {
    return !w.name.ends_with(".ids") && !w.name.ends_with(".logits");
  });
  dump::Written logits = dump::named(values, "decode.2.logits");
  std::erase_if(values, [&](const dump::Written& w) { return w.name == logits.name; });
  change(logits.numbers);
  logits.shape = {2, 1, 24};
  dump::Dump dump = run.trace(values, "f32");
  run.add(dump, logits, "BLV_z", 2);
  return compare(dump,
                 {.file = "mine.npz", .line = {}, .weights_file = "", .golden = "", .given = {}});
}

// A value whose operands are not there has no bound that a number could be outside of.
TEST(ComparisonText, CountsWhatIsNoNumberWhereOperandsAreMissing) {
  for (const double number : {std::nan(""), HUGE_VAL}) {
    const Comparison of =
        with_logits_alone([&](std::vector<double>& v) { v.front() = number, v.at(1) = number; });
    EXPECT_EQ(sentence(of), "rank 0, decode.2.logits: 2 of 48 elements are NaN or infinite");
    const std::string text = comparison_text(of, false);
    EXPECT_TRUE(has(text, "\n  BV_z, 1 of 2 chips, 2 of 48 elements are NaN or infinite\n"))
        << text;
    EXPECT_TRUE(has(text, " unlikely              48 2 NaN or infinite\n")) << text;
  }
  const Comparison far = with_logits_alone([](std::vector<double>& v) {
    for (double& each : v) each = dump::f32(each * 2);
  });
  EXPECT_EQ(sentence(far), "decode.2.logits: it is further from exact than rounding takes it");
  EXPECT_TRUE(has(comparison_text(far, false),
                  "\n  BV_z, it is further from exact than rounding takes it\n"));
}

// What follows from a given value that is NaN is no number either, and has no bound.
TEST(ComparisonText, CountsWhatIsNoNumberAfterAGivenValue) {
  const dump::ExactRun run(
      "torus=1x1x1 batch=2 prompt=4 gen=1 seed=3 block=serial "
      "model=llama,layers=2,E=16,F=24,H=4,K=2,Q=4,V=30");
  const std::string given = "prefill.c0.layer0.ffn_out";
  std::vector<dump::Written> values = run.values();
  bool after = false;
  std::erase_if(values, [](const dump::Written& w) {
    const std::string name = w.name.substr(w.name.rfind('.') + 1);
    return std::set<std::string>{"out", "score", "max", "exp", "denom"}.contains(name);
  });
  for (dump::Written& w : values) {
    after = after || w.name == given;
    if (after && !w.name.ends_with(".token")) w.numbers.assign(w.numbers.size(), std::nan(""));
  }
  const Comparison of =
      compare(run.trace(values, "f32"),
              {.file = "mine.npz", .line = {}, .weights_file = "", .golden = "", .given = {given}});
  EXPECT_EQ(sentence(of), "prefill.c0.layer1.norm: 128 of 128 elements are NaN or infinite")
      << comparison_text(of, true);
}

}  // namespace
}  // namespace shardproof::tools
