#include "golden/corpus/golden_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/golden/corpus/shards.h"
#include "tests/sanitized.h"

namespace shardproof::corpus {
namespace {

using dump::Fit;
/// Stacked with the dims of the mesh "z y x".
Dump stacked_zyx(const Dump& golden, const std::vector<double>& all, const std::string& name) {
  Dump file = empty_file();
  file.attributes["mesh"] = "z y x";
  const Shape local = local_shape_of(golden, name);
  const auto block = static_cast<std::ptrdiff_t>(element_count(local));
  std::vector<double> turned;
  for (int z = 0; z < 3; ++z)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 4; ++x) {
        const auto first = all.begin() + ((x * 2 + y) * 3 + z) * block;
        turned.insert(turned.end(), first, first + block);
      }
  Shape shape{3, 2, 4};
  shape.insert(shape.end(), local.begin(), local.end());
  Value value;
  value.whole = as_f64(shape, turned);
  add(file, name, std::move(value));
  return file;
}

std::string refusal_against(const Dump& golden, const Dump& file) {
  try {
    judge_against(golden, file);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(GoldenComparison, AGoldenIsEqualToItself) {
  for (const Dump* golden : {&all_layouts(), &all_collectives()}) {
    const GoldenComparison found = judge_against(*golden, *golden);
    EXPECT_EQ(found.verdict.rows.size(), golden->order.size());
    EXPECT_EQ(found.verdict.count(Fit::equal), std::ssize(golden->order));
    EXPECT_EQ(found.verdict.whole, std::ssize(results_of(*golden)));
    EXPECT_EQ(found.verdict.compared, found.verdict.whole);
    EXPECT_EQ(found.verdict.exit_code(), 0);
    EXPECT_TRUE(found.verdict.unknown.empty());
    EXPECT_TRUE(found.diagnosis.empty());
  }
}

TEST(GoldenComparison, ResultsInAnyFormAreEqual) {
  OneInN next(10, "values");
  for (const Dump* golden : {&all_layouts(), &all_collectives()})
    for (const std::string& name : results_of(*golden)) {
      if (!next()) continue;
      const Dump own =
          golden == &all_layouts() ? only(*golden, {name}) : only_collective(*golden, name);
      const std::vector<double> all = numbers(own, name);
      for (const Dump& file : {in_shards(own, all, name), stacked_zyx(own, all, name)}) {
        const GoldenComparison found = judge_against(own, file);
        EXPECT_EQ(found.verdict.exit_code(), 0) << name;
        EXPECT_EQ(found.verdict.compared, 1) << name;
        EXPECT_EQ(found.verdict.whole, 1) << name;
        ASSERT_EQ(found.verdict.rows.size(), 1U);
        EXPECT_EQ(found.verdict.rows[0].elements, std::ssize(all)) << name;
        EXPECT_FALSE(found.verdict.rows[0].incomplete) << name;
      }
    }
}

TEST(GoldenComparison, MeshWithNames) {
  const Dump own = only(all_layouts(), {"BL_yE_zx"});
  Dump file = stacked_zyx(own, numbers(own, "BL_yE_zx"), "BL_yE_zx");
  file.attributes["mesh"] = "data=z seq=y model=x";
  EXPECT_EQ(judge_against(own, file).verdict.exit_code(), 0);
  file.values["BL_yE_zx"].attributes["spec"] = R"([null, "seq", ["data", "model"]])";
  EXPECT_EQ(judge_against(own, file).verdict.exit_code(), 0);
  file.values["BL_yE_zx"].attributes["spec"] = R"([null, "seq", ["model", "data"]])";
  EXPECT_EQ(refusal_against(own, file),
            "dump_layout: BL_yE_zx: BL_yE_xz, the golden's is BL_yE_zx");
  file.attributes["mesh"] = "data=w";
  EXPECT_NE(refusal_against(own, file).find("dump_mesh"), std::string::npos);
}

/// One element on one chip, in each form: no other way to be different is smaller.
TEST(GoldenComparison, OneWrongElementIsNamed) {
  const std::string name = "BL_yE_zx";
  const Dump own = only(all_layouts(), {name});
  const std::vector<double> right = numbers(own, name);
  for (std::size_t i = 0; i < right.size(); i += kSanitized ? 17 : 1) {
    std::vector<double> all = right;
    all[i] += 0.5;
    for (const Dump& file : {in_shards(own, all, name), stacked_zyx(own, all, name)}) {
      const GoldenComparison found = judge_against(own, file);
      const dump::Row& row = found.verdict.rows[0];
      EXPECT_EQ(found.verdict.exit_code(), 1);
      EXPECT_EQ(row.fit, Fit::different);
      EXPECT_EQ(row.wrong, 1);
      EXPECT_EQ(row.wrong_parts.size(), 1U);
      ASSERT_TRUE(row.first && row.worst);
      EXPECT_EQ(row.first->chip, static_cast<int>(i / 8));
      EXPECT_EQ(row.worst->chip, row.first->chip);
      // The elements are their own numbers, of [2,4,24].
      const auto number = static_cast<std::int64_t>(right[i]);
      EXPECT_EQ(row.first->index, (Shape{number / 96, number / 24 % 4, number % 24}));
      EXPECT_EQ(row.first->actual, right[i] + 0.5);
      EXPECT_EQ(row.first->low, right[i]);
      EXPECT_EQ(found.verdict.first, std::size_t{0});
      EXPECT_TRUE(found.diagnosis.empty());
    }
  }
}

TEST(GoldenComparison, FirstAndWorst) {
  const std::string name = "BLE";
  const Dump own = only(all_layouts(), {name});
  std::vector<double> all = numbers(own, name);
  all[9] = 3.0;     // chip 1, expected 1
  all[90] = 100.0;  // chip 11, expected 2
  all[99] = 4.0;    // chip 12, expected 3
  const dump::Row row = judge_against(own, in_shards(own, all, name)).verdict.rows[0];
  EXPECT_EQ(row.wrong, 3);
  EXPECT_EQ(row.wrong_parts.size(), 3U);
  EXPECT_EQ(row.first->chip, 1);
  EXPECT_EQ(row.worst->chip, 11);
  EXPECT_EQ(row.worst->index, (Shape{0, 1, 0}));
}

TEST(GoldenComparison, BitsAreCompared) {
  const std::string name = "BLE";
  const Dump own = only(all_layouts(), {name});
  for (const double v : {-0.0, 5e-324, std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::infinity(), 1.0}) {
    std::vector<double> all = numbers(own, name);
    ASSERT_EQ(all[16], 0.0);
    all[16] = v;
    const GoldenComparison found = judge_against(own, in_shards(own, all, name));
    EXPECT_EQ(found.verdict.exit_code(), 1) << v;
    EXPECT_EQ(found.verdict.rows[0].wrong, 1) << v;
    EXPECT_EQ(found.verdict.rows[0].first->chip, 2) << v;
  }
}

TEST(GoldenComparison, NotANumberIsTheWorst) {
  const std::string name = "BLE";
  const Dump own = only(all_layouts(), {name});
  std::vector<double> all = numbers(own, name);
  all[8] = 1e300;
  all[16] = std::numeric_limits<double>::quiet_NaN();
  const dump::Row row = judge_against(own, in_shards(own, all, name)).verdict.rows[0];
  EXPECT_EQ(row.first->chip, 1);
  EXPECT_EQ(row.worst->chip, 2);
}

TEST(GoldenComparison, MissingChipsAreIncomplete) {
  const std::string name = "BLE_xyz";
  const Dump own = only(all_layouts(), {name});
  for (const std::array<int, 3>& chip :
       {std::array{0, 0, 0}, std::array{1, 0, 2}, std::array{3, 1, 2}}) {
    Dump file = in_shards(own, numbers(own, name), name);
    file.values[name].chips.erase(chip);
    const GoldenComparison found = judge_against(own, file);
    EXPECT_TRUE(found.verdict.rows[0].incomplete);
    EXPECT_EQ(found.verdict.rows[0].fit, Fit::equal) << "as far as it is there";
    EXPECT_EQ(found.verdict.compared, 0);
    // A wrong one is different all the same.
    file.values[name].chips[{2, 0, 0}].bytes[0] ^= std::byte{1};
    EXPECT_EQ(judge_against(own, file).verdict.exit_code(), 1);
  }
}

TEST(GoldenComparison, NamesThatTheGoldenHasNot) {
  const Dump own = only(all_layouts(), {"BLE", "BLE_x"});
  Dump file = in_shards(own, numbers(own, "BLE"), "BLE");
  Value same = file.values["BLE"];
  add(file, "gate", same);
  same.attributes["same_as"] = "BLE";
  add(file, "BLE_x", same);
  const GoldenComparison found = judge_against(own, file);
  ASSERT_EQ(found.verdict.unknown.size(), 2U);
  EXPECT_EQ(found.verdict.unknown[0].name, "BLE_x");
  EXPECT_EQ(found.verdict.unknown[0].why, "same_as is not read here");
  EXPECT_EQ(found.verdict.unknown[1].name, "gate");
  EXPECT_EQ(found.verdict.unknown[1].why, "no value of the golden");
  EXPECT_EQ(found.verdict.compared, 1);
  EXPECT_EQ(found.verdict.whole, 2);
  EXPECT_EQ(found.verdict.exit_code(), 0);
}

TEST(GoldenComparison, NothingComparedProvesNothing) {
  EXPECT_EQ(judge_against(all_layouts(), empty_file()).verdict.exit_code(), 1);
  // Operands alone are what was given.
  const Dump own = only_collective(all_collectives(), "all_gather.0");
  Dump file = empty_file();
  add(file, "all_gather.0.operand", own.values.find("all_gather.0.operand")->second);
  const GoldenComparison found = judge_against(own, file);
  EXPECT_EQ(found.verdict.rows.size(), 1U);
  EXPECT_EQ(found.verdict.compared, 0);
  EXPECT_EQ(found.verdict.exit_code(), 1);
}

TEST(GoldenComparison, AWrongOperandIsDifferent) {
  const Dump own = only_collective(all_collectives(), "all_gather.0");
  Dump file = own;
  flip(file.values.find("all_gather.0.operand")->second.whole, 3);
  const GoldenComparison found = judge_against(own, file);
  EXPECT_EQ(found.verdict.exit_code(), 1);
  EXPECT_EQ(found.verdict.count(Fit::different), 1);
  EXPECT_EQ(found.verdict.rows[*found.verdict.first].name, "all_gather.0.operand");
}

TEST(GoldenComparison, RefusesOtherLayoutsAndShapes) {
  const std::string name = "BL_yE_zx";
  const Dump own = only(all_layouts(), {name});
  const std::vector<double> all = numbers(own, name);
  Dump file = in_shards(own, all, name);
  file.values[name].attributes["layout"] = name;
  EXPECT_EQ(refusal_against(own, file), "nothing");
  file.values[name].attributes["layout"] = "BL_yE_xz";
  EXPECT_EQ(refusal_against(own, file),
            "dump_layout: BL_yE_zx: BL_yE_xz, the golden's is BL_yE_zx");
  file.values[name].attributes["layout"] = "BLE_";
  EXPECT_EQ(refusal_against(own, file).find("layout_c0"), 0U);
  // Other shards, also of as many elements; a whole tensor; a chip that there is not.
  Value other;
  other.chips[{0, 0, 0}] = as_f64({2, 4, 1}, std::vector<double>(8, 0.0));
  file = empty_file();
  add(file, name, other);
  EXPECT_EQ(refusal_against(own, file),
            "dump_layout: BL_yE_zx: shards [2,4,1], the golden has shards [2,2,2]");
  Value whole;
  whole.whole = as_f64({2, 4, 24}, std::vector<double>(192, 0.0));
  file = empty_file();
  add(file, name, whole);
  EXPECT_EQ(refusal_against(own, file),
            "dump_layout: BL_yE_zx: a whole array [2,4,24], the golden has shards [2,2,2]");
  // Also one as large as a shard.
  whole.whole = as_f64({2, 2, 2}, std::vector<double>(8, 0.0));
  file = empty_file();
  add(file, name, whole);
  EXPECT_EQ(refusal_against(own, file).find("dump_layout"), 0U);
  file = in_shards(own, all, name);
  file.values[name].chips[{4, 0, 0}] = file.values[name].chips[{0, 0, 0}];
  EXPECT_EQ(refusal_against(own, file).find("dump_layout"), 0U);
}

TEST(GoldenComparison, RefusesADamagedGolden) {
  const std::string name = "BL_yE_zx";
  const Dump own = only(all_layouts(), {name});
  const Dump file = in_shards(own, numbers(own, name), name);
  EXPECT_EQ(refusal_against(flipped(own, name, 5), file)
                .find("golden_value: the golden is damaged: " + name),
            0U);
  Dump no_torus = own;
  no_torus.attributes.erase("torus");
  EXPECT_EQ(refusal_against(no_torus, file).find("golden_torus"), 0U);
}

/// A value that says to be something else is none of the golden's.
TEST(GoldenComparison, NoOtherMeaningIsTaken) {
  const Dump own = only(all_layouts(), {"BLE_x"});
  for (const char* said :
       {"same_as", "summand_of", "fused", "along", "padded", "meaning", "partial"}) {
    Dump file = in_shards(own, numbers(own, "BLE_x"), "BLE_x");
    for (auto& [name, value] : file.values) value.attributes[said] = "x";
    const GoldenComparison found = judge_against(own, file);
    EXPECT_EQ(found.verdict.unknown.size(), 1U) << said;
    EXPECT_EQ(found.verdict.exit_code(), 1) << said;
  }
}

TEST(GoldenComparison, IsOfTheGoldensTorus) {
  const Dump own = only(all_layouts(), {"BLE_x"});
  for (const auto& [name, text] : {std::pair{"torus", "3x1x2"}, {"case", "torus=3x1x2"}}) {
    Dump file = in_shards(own, numbers(own, "BLE_x"), "BLE_x");
    file.attributes[name] = text;
    EXPECT_EQ(refusal_against(own, file).find("compare_case"), 0U) << name;
    file.attributes[name] =
        (name == std::string("case") ? "torus=" : "") + own.attributes.at("torus");
    EXPECT_EQ(judge_against(own, file).verdict.exit_code(), 0) << name;
  }
}

/// Copies that are said to be identical stand in a file once; without that word they are missing.
TEST(GoldenComparison, IdenticalReplicasStandOnce) {
  const Dump own = only(all_layouts(), {"BLE_x"});
  Dump file = in_shards(own, numbers(own, "BLE_x"), "BLE_x");
  std::erase_if(file.values["BLE_x"].chips,
                [](const auto& chip) { return chip.first[1] != 0 || chip.first[2] != 0; });
  EXPECT_EQ(judge_against(own, file).verdict.exit_code(), 1);
  file.values["BLE_x"].attributes["replicas"] = "identical";
  const GoldenComparison found = judge_against(own, file);
  EXPECT_EQ(found.verdict.exit_code(), 0);
  EXPECT_EQ(found.verdict.compared, 1);
}

}  // namespace
}  // namespace shardproof::corpus
