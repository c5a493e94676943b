#include "tools/report/comparison_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/report/judged_dump.h"

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

}  // namespace
}  // namespace shardproof::tools
