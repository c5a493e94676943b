#include "golden/corpus/detail/collectives.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "golden/corpus/detail/collective_samples.h"
#include "golden/corpus/detail/operand.h"
#include "golden/corpus/detail/stacked.h"
#include "tests/golden/corpus/goldens.h"
#include "tests/sanitized.h"

namespace shardproof::corpus {
namespace {

std::vector<float> numbers_of(const dump::Value& value) {
  std::vector<float> all(value.whole.size());
  std::memcpy(all.data(), value.whole.bytes.data(), value.whole.bytes.size());
  return all;
}

/// By hand. With moved axes m and the ordered rests r of the others: 3 lists of one axis, each with
/// 5 rests; 6 of two with 2; 6 of three with 1: 33 pairs. As sets the sums are 3*5 + 3*2 + 1 = 22.
/// Beside these other axes stay partial sums: for one moved axis 3 sets, for two 1: 15; as sets 12.
TEST(CollectiveSamples, NumberOfEachOp) {
  std::map<std::string, int> count;
  for (const CollectiveSample& sample : collective_samples()) ++count[sample.op];
  EXPECT_EQ(count["slice"], 33);
  EXPECT_EQ(count["all_gather"], 33 + 15);
  EXPECT_EQ(count["reduce_scatter"], 33 + 15);
  EXPECT_EQ(count["all_reduce"], 22 + 12);
  // To another order: of two axes 6, of three 6*5.
  EXPECT_EQ(count["permute_axes"], 6 + 30);
  // Those, and in the same order: one axis with 1 + 2*2 + 2*2 + 2 places of the other two, two axes
  // with 3 of the third, three axes; and where one other axis stays a partial sum, 3*2 + 6.
  EXPECT_EQ(count["all_to_all"], 6 + 30 + 3 * 11 + 6 * 3 + 6 + 12);
  EXPECT_EQ(count.size(), 6U);
}

TEST(CollectivesGolden, IsEqualOnEveryTorus) {
  for (const char* torus : {"4x2x3", "3x1x2", "1x1x1", "1x5x2"}) {
    const dump::Dump golden = collectives_golden(Torus::parse(torus));
    const CheckResult checked = check(golden);
    EXPECT_EQ(checked.fault, "") << torus;
    EXPECT_EQ(checked.kind, Kind::collectives);
    EXPECT_EQ(checked.values, 2 * std::ssize(collective_samples())) << torus;
  }
}

/// Anything that somebody may do in place of the right thing shows.
TEST(CollectivesGolden, EverySampleTellsFaultsApart) {
  const Torus torus(4, 2, 3);
  const dump::Dump golden = collectives_golden(torus);
  OneInN next(5, "collectives");
  for (const std::string& name : results_of(golden)) {
    if (!next()) continue;
    const dump::Value& value = golden.values.find(name)->second;
    const std::string given = name + std::string(kOperandSuffix);
    const Operand operand = read_operand(given, golden.values.find(given)->second, torus);
    const Layout result = Layout::parse(value.attributes.find("layout")->second);
    const Counts right = counts_keeping(result.partial(), operand.layout, torus);
    const std::vector<float> shards = numbers_of(value);
    ASSERT_EQ(result_of(operand, result, torus, right), shards) << name;
    EXPECT_NE(numbers_of(golden.values.find(given)->second), shards) << name << ": not moved";
    // Every dim's axes in every other order.
    int orders = 1;
    for (std::size_t d = 0; d < result.rank(); ++d)
      for (const Axes& axes : ordered_axes())
        if (axes.sorted() == result.dims()[d].axes.sorted() && !(axes == result.dims()[d].axes)) {
          ++orders;
          EXPECT_NE(result_of(operand, result.with_axes(d, axes), torus, right), shards)
              << name << ": " << axes.to_string();
        }
    const int size = std::max(result.dims()[0].axes.size(), result.dims()[1].axes.size());
    EXPECT_GE(orders, size == 3 ? 6 : size == 2 ? 2 : 1) << name;
    // Each partial sum missing, and twice.
    for (std::size_t part = 0; part < operand.parts.size(); ++part)
      for (const int count : {0, 2}) {
        const Counts wrong = [&](int chip, std::size_t p) {
          return right(chip, p) * (p == part ? count : 1);
        };
        EXPECT_NE(result_of(operand, result, torus, wrong), shards)
            << name << ": part " << part << " " << count << " times";
      }
    // Sums over other axes of those that there are.
    for (const Axes& left : ordered_axes()) {
      if (!(left == left.sorted()) || !operand.layout.partial().has_all(left) ||
          left == result.partial() || result.used().has_any(left))
        continue;
      const Counts wrong = counts_keeping(left, operand.layout, torus);
      EXPECT_NE(result_of(operand, result, torus, wrong), shards)
          << name << ": without " << left.to_string();
    }
  }
}

/// One collective of its own, so that a check takes no time.
TEST(CollectivesGolden, EveryArrayChangedIsSeen) {
  const dump::Dump golden = collectives_golden(Torus(4, 2, 3));
  OneInN next(5, "collectives");
  for (const std::string& name : results_of(golden)) {
    if (!next()) continue;
    const dump::Dump own = only_collective(golden, name);
    ASSERT_EQ(check(own).fault, "") << name;
    for (const std::string& changed : own.order) {
      const std::size_t size = own.values.find(changed)->second.whole.size();
      for (const std::size_t i : {std::size_t{0}, size / 2, size - 1})
        for (const int bit : {0, 20, 31}) {  // of a fraction, of a whole number, the sign
          const CheckResult checked = check(flipped(own, changed, i, bit));
          EXPECT_TRUE(names(checked.fault, name)) << changed << ": " << checked.fault;
        }
    }
  }
}

/// Also where a golden has all of them: one in eleven, as each check makes all anew.
TEST(CollectivesGolden, EveryResultChangedAmongAllIsNamed) {
  const dump::Dump golden = collectives_golden(Torus(1, 2, 1));
  for (std::size_t i = 0; i < golden.order.size(); i += kSanitized ? 61 : 11) {  // odd: both sorts
    const std::string& name = golden.order[i];
    const std::string result = name.substr(0, name.find(kOperandSuffix));
    const CheckResult checked = check(flipped(golden, name, 1, 22));
    EXPECT_TRUE(names(checked.fault, result)) << name << ": " << checked.fault;
  }
}

/// What is said of a changed all_reduce: of BE partialsum-x, of which BE is the sum.
template <class Change>
std::string said_of_collective(Change&& change) {
  static const dump::Dump all = collectives_golden(Torus(2, 1, 3));
  dump::Dump golden = only_collective(all, "all_reduce.0");
  change(golden, golden.values.find("all_reduce.0")->second,
         golden.values.find("all_reduce.0.operand")->second);
  return fault_of(golden);
}

using dump::Dump;
using dump::Value;

TEST(CollectivesGolden, HostileFilesAreFaults) {
  EXPECT_EQ(said_of_collective([](Dump&, Value&, Value&) {}), "");
  EXPECT_EQ(said_of_collective([](Dump& g, Value&, Value&) {
              g.attributes.erase("torus");
            }).find("golden_torus"),
            0U);
  for (const char* torus : {"", "2x1", "0x1x3", "99999x99999x99999"})
    EXPECT_EQ(said_of_collective([&](Dump& g, Value&, Value&) {
                g.attributes["torus"] = torus;
              }).find("torus_c"),
              0U)
        << torus;
  EXPECT_EQ(said_of_collective([](Dump& g, Value&, Value&) {
              g.attributes["torus"] = "16x16x16";
            }).find("golden_operand"),
            0U);
  for (const char* op :
       {"", "all_gather", "add(t, t)", "norm(t)", "all_reduce(t, y)",
        "all_reduce(t, x)\nall_reduce(t, x)", "all_reduce(t, x)\noutput t", "all_reduce(u, x)",
        "all_gather(t, E, x)", "reduce_scatter(t, E, x)", "all_reduce(t, x) ", "\n", "nan"})
    EXPECT_NE(said_of_collective([&](Dump&, Value& r, Value&) { r.attributes["op"] = op; }), "")
        << op;
  for (const char* layout : {"", "BE_x", "B_xE", "BF", "EB", "BLE", "B", "BE partialsum-x",
                             "BE partialsum-y", "BE partialsum-xz", "BE partialsum-xyz", "BE_xx"})
    EXPECT_NE(said_of_collective([&](Dump&, Value& r, Value&) { r.attributes["layout"] = layout; }),
              "")
        << layout;
  for (const char* layout : {"", "BE", "BE_x", "BE partialsum-xz", "BLE partialsum-x",
                             "BF partialsum-x", "BE partialsum-xx"})
    EXPECT_NE(said_of_collective([&](Dump&, Value&, Value& t) { t.attributes["layout"] = layout; }),
              "")
        << layout;
  for (const char* name : {"op", "layout"})
    EXPECT_NE(said_of_collective([&](Dump&, Value& r, Value&) { r.attributes.erase(name); }), "")
        << name;
  EXPECT_NE(said_of_collective([](Dump&, Value&, Value& t) { t.attributes.erase("layout"); }), "");
  EXPECT_NE(said_of_collective([](Dump& g, Value&, Value&) { erase(g, "all_reduce.0.operand"); }),
            "");
  EXPECT_NE(said_of_collective([](Dump& g, Value&, Value&) { erase(g, "all_reduce.0"); }), "");
  EXPECT_NE(said_of_collective([](Dump&, Value& r, Value&) { r.chips[{0, 0, 0}] = r.whole; }), "");
  EXPECT_NE(said_of_collective([](Dump&, Value&, Value& t) { t.chips[{0, 0, 0}] = t.whole; }), "");
  EXPECT_NE(said_of_collective([](Dump&, Value&, Value& t) { t.whole = {}; }), "");
  EXPECT_NE(said_of_collective([](Dump&, Value& r, Value&) { r.whole = {}; }), "");
  EXPECT_EQ(said_of_collective([](Dump& g, Value&, Value&) { g = only(g, {}); }),
            "it holds no value");
}

/// A small operand that 4096 chips would gather: 64 KiB that claim to become 1 GiB.
TEST(CollectivesGolden, AResultThatIsNotThereIsNotMade) {
  const Torus torus(16, 16, 16);
  Dump golden = empty_golden(Kind::collectives);
  golden.attributes["torus"] = torus.to_string();
  const std::vector<float> given(std::size_t{4096} * 16, 1.0F);
  put(golden, "r.operand", {16, 16, 16, 1, 16}, std::span<const float>(given),
      {{"layout", "BE_xyz"}});
  put(golden, "r", {1}, std::span<const float>(given.data(), 1),
      {{"layout", "BE"}, {"op", "all_gather(t, E, xyz)"}});
  EXPECT_EQ(fault_of(golden), "golden_operand: r is [1], of BE expected [16,16,16,1,65536]");
}

}  // namespace
}  // namespace shardproof::corpus
