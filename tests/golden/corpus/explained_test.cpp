#include "golden/corpus/detail/explained.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "golden/corpus/detail/operand.h"
#include "tests/golden/corpus/shards.h"
#include "tests/sanitized.h"

namespace shardproof::corpus {
namespace {

/// The explanations of results that hold these numbers instead.
template <class Number>
std::vector<diagnosis::Hypothesis> diagnosis_of(const Dump& own, const std::string& name,
                                                const std::vector<Number>& all) {
  const GoldenComparison found = judge_against(own, in_shards(own, {all.begin(), all.end()}, name));
  EXPECT_EQ(found.verdict.exit_code(), 1) << name;
  for (const diagnosis::Hypothesis& one : found.diagnosis) EXPECT_TRUE(one.explains);
  return found.diagnosis;
}

bool has(const std::vector<diagnosis::Hypothesis>& found, const std::string& fault,
         const std::string& detail) {
  return std::any_of(found.begin(), found.end(), [&](const diagnosis::Hypothesis& one) {
    return one.fault == fault && one.detail == detail;
  });
}

TEST(Explained, AxesInAnotherOrder) {
  OneInN next(7, "pairs of layouts");
  const auto sorted = [](const Layout& layout) {
    std::vector<Axes> all;
    for (const Layout::Dim& dim : layout.dims()) all.push_back(dim.axes.sorted());
    return all;
  };
  int pairs = 0;
  for (const std::string& name : all_layouts().order)
    for (const std::string& other : all_layouts().order) {
      if (name == other || sorted(Layout::parse(name)) != sorted(Layout::parse(other))) continue;
      ++pairs;
      if (!next()) continue;
      const auto found =
          diagnosis_of(only(all_layouts(), {name}), name, numbers(all_layouts(), other));
      ASSERT_EQ(found.size(), 1U) << name << " " << other;
      EXPECT_EQ(found[0].fault, "axes in another order");
      EXPECT_EQ(found[0].detail, "it holds " + other + ", not " + name);
    }
  // Of two axes of one dim, 9 pairs and 9 with the third elsewhere, twice 2; three axes, 3 times
  // 6*5.
  EXPECT_EQ(pairs, 9 * 2 + 18 * 2 + 3 * 30);
}

/// Every collective of partial sums, done wrong in every way that has a name: on few chips, as
/// each of them can be the one whose partial sum is missing.
TEST(Explained, Sums) {
  OneInN next(5, "collectives");
  const Torus torus(2, 2, 2);
  const Dump all = collectives_golden(torus);
  std::map<std::string, int> seen;
  for (const std::string& name : results_of(all)) {
    const Dump own = only_collective(all, name);
    const std::string given = name + std::string(kOperandSuffix);
    const Operand operand = read_operand(given, own.values.find(given)->second, torus);
    if (!operand.layout.is_partial() || !next()) continue;
    const Layout result =
        Layout::parse(own.values.find(name)->second.attributes.find("layout")->second);
    const Counts right = counts_keeping(result.partial(), operand.layout, torus);
    const auto diagnosis = [&](const Counts& counts) {
      return diagnosis_of(own, name, result_of(operand, result, torus, counts));
    };
    for (std::size_t part = 0; part < operand.parts.size(); ++part) {
      std::string place;
      for (int chip = torus.chips(); chip-- > 0;)
        if (judged_part(operand.layout, torus, chip) == part) {
          place.clear();
          for (const Axis axis : operand.layout.partial())
            place += (place.empty() ? "" : ", ") + std::string(1, to_char(axis)) + "=" +
                     std::to_string(torus.coordinate(chip, axis));
        }
      for (const int count : {0, 2}) {
        const auto found = diagnosis(
            [&](int chip, std::size_t p) { return right(chip, p) * (p == part ? count : 1); });
        const std::string fault = count == 0 ? "partial sum missing" : "partial sum twice";
        EXPECT_TRUE(has(found, fault, "that of the chips with " + place))
            << name << ": " << fault << " " << place;
        ++seen[fault];
      }
    }
    for (const Axes& left : ordered_axes()) {
      if (!(left == left.sorted()) || !operand.layout.partial().has_all(left) ||
          left == result.partial())
        continue;
      // By hand: what agrees with the chip on these axes.
      const auto found = diagnosis([&](int chip, std::size_t part) {
        for (const int member : judged_group(operand.layout, torus, chip))
          if (judged_part(operand.layout, torus, member) == part)
            return std::all_of(left.begin(), left.end(),
                               [&](Axis axis) {
                                 return torus.coordinate(member, axis) ==
                                        torus.coordinate(chip, axis);
                               })
                       ? 1
                       : 0;
        return 0;
      });
      const Axes summed = operand.layout.partial().without(left);
      if (summed.empty()) {
        EXPECT_TRUE(has(found, "reduction missing", "each chip holds its own partial sum")) << name;
        ++seen["reduction missing"];
      } else {
        EXPECT_TRUE(
            has(found, "reduction over another axis", "it is the sum over " + summed.to_string()))
            << name << ": " << summed.to_string();
        ++seen["reduction over another axis"];
      }
    }
  }
  EXPECT_GE(seen.size(), 4U);
}

/// permute_axes and all_to_all of as many axes: the operand fits in place of the result.
TEST(Explained, NotMoved) {
  int fit = 0;
  OneInN next(5, "collectives");
  for (const std::string& name : results_of(all_collectives())) {
    const Dump own = only_collective(all_collectives(), name);
    const std::string given = name + std::string(kOperandSuffix);
    if (local_shape_of(own, name) != local_shape_of(own, given) || !next()) continue;
    const auto found = diagnosis_of(own, name, numbers(own, given));
    // Where another layout of the result is the operand's, that says it.
    const Layout result = Layout::parse(own.values.find(name)->second.attributes.at("layout"));
    const Layout operand = Layout::parse(own.values.find(given)->second.attributes.at("layout"));
    EXPECT_TRUE(has(found, "collective missing", "it holds its operand") ||
                has(found, "reduction missing", "each chip holds its own partial sum") ||
                has(found, "axes in another order",
                    "it holds " + operand.to_string() + ", not " + result.to_string()))
        << name;
    ++fit;
  }
  EXPECT_GT(fit, 0);
}

/// An axis of one chip is in no explanation.
TEST(Explained, NamesNoAxisOfOneChip) {
  const Dump golden = collectives_golden(Torus(3, 1, 2));
  int seen = 0;
  for (const std::string& name : results_of(golden)) {
    const Dump own = only_collective(golden, name);
    const std::string given = name + std::string(kOperandSuffix);
    if (local_shape_of(own, name) != local_shape_of(own, given)) continue;
    const Layout operand = Layout::parse(own.values.find(given)->second.attributes.at("layout"));
    const GoldenComparison against = judge_against(own, in_shards(own, numbers(own, given), name));
    if (!against.verdict.first) continue;  // here the collective changes nothing
    const auto& found = against.diagnosis;
    ASSERT_FALSE(found.empty()) << name;
    for (const diagnosis::Hypothesis& h : found)
      EXPECT_EQ(h.axes.find('y'), std::string::npos) << name << ": " << h.fault << " " << h.detail;
    if (operand.is_partial()) {
      EXPECT_EQ(found[0].fault, "reduction missing") << name;
      ++seen;
    }
  }
  EXPECT_GT(seen, 0);
}

/// With one chip's shard missing the others can still tell.
TEST(Explained, OfWhatIsThere) {
  const Dump own = only(all_layouts(), {"BLE_xyz"});
  Dump file = in_shards(own, numbers(all_layouts(), "BLE_zyx"), "BLE_xyz");
  file.values["BLE_xyz"].chips.erase({0, 1, 0});
  const GoldenComparison found = judge_against(own, file);
  ASSERT_EQ(found.diagnosis.size(), 1U);
  EXPECT_EQ(found.diagnosis[0].detail, "it holds BLE_zyx, not BLE_xyz");
}

}  // namespace
}  // namespace shardproof::corpus
