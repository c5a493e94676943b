#include "golden/corpus/detail/layouts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "golden/corpus/detail/stacked.h"
#include "tests/golden/corpus/goldens.h"
#include "tests/sanitized.h"

namespace shardproof::corpus {
namespace {

/// Three dims and their copies: 1 without axes, 3 axes in 3 dims, two in 9 places and two orders
/// in the same dim, and so on: 1 + 9 + 36 + 60.
constexpr std::int64_t kLayouts = 106;

std::int32_t element(const dump::StoredArray& stored, std::size_t i) {
  std::int32_t v = 0;
  std::memcpy(&v, stored.bytes.data() + i * sizeof v, sizeof v);
  return v;
}

TEST(LayoutsGolden, HasEveryLayoutOnce) {
  for (const char* torus : {"4x2x3", "3x1x2", "1x1x1", "1x5x2"}) {
    const dump::Dump golden = layouts_golden(Torus::parse(torus));
    EXPECT_EQ(std::set(golden.order.begin(), golden.order.end()).size(), kLayouts) << torus;
    const CheckResult checked = check(golden);
    EXPECT_EQ(checked.fault, "") << torus;
    EXPECT_EQ(checked.values, kLayouts) << torus;
    EXPECT_EQ(checked.kind, Kind::layouts) << torus;
  }
}

TEST(OrderedAxes, AreAllLists) {
  std::set<std::string> texts;
  for (const Axes& axes : ordered_axes()) texts.insert(axes.to_string());
  EXPECT_EQ(texts, (std::set<std::string>{"", "x", "y", "z", "xy", "yx", "xz", "zx", "yz", "zy",
                                          "xyz", "xzy", "yxz", "yzx", "zxy", "zyx"}));
}

/// By hand, of docs/spec.md: in E_zx chip (x,y,z) holds block z*4 + x of 12, of two elements.
TEST(LayoutsGolden, HoldsWhatTheNotationSays) {
  const dump::Dump golden = layouts_golden(Torus(4, 2, 3));
  const dump::StoredArray& stored = golden.values.find("BL_yE_zx")->second.whole;
  ASSERT_EQ(stored.shape, (Shape{4, 2, 3, 2, 2, 2}));
  std::size_t at = 0;
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 2; ++y)
      for (int z = 0; z < 3; ++z)
        for (int b = 0; b < 2; ++b)
          for (int l = 0; l < 2; ++l)
            for (int e = 0; e < 2; ++e)
              ASSERT_EQ(element(stored, at++), (b * 4 + (y * 2 + l)) * 24 + (z * 4 + x) * 2 + e);
}

/// Nobody can mix two of them up without being seen.
TEST(LayoutsGolden, NoTwoLayoutsAreTheSame) {
  const dump::Dump golden = layouts_golden(Torus(4, 2, 3));
  std::set<std::vector<std::int32_t>> seen;
  for (const auto& [name, value] : golden.values) {
    std::vector<std::int32_t> all(value.whole.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = element(value.whole, i);
    EXPECT_TRUE(seen.insert(all).second) << name;
  }
}

TEST(LayoutsGolden, EveryArrayChangedIsSeen) {
  const dump::Dump golden = layouts_golden(Torus(3, 1, 2));
  OneInN next(5, "layouts");
  for (const std::string& name : golden.order) {
    if (!next()) continue;
    const std::size_t size = golden.values.find(name)->second.whole.size();
    for (const std::size_t i : {std::size_t{0}, size / 2, size - 1}) {
      const CheckResult checked = check(flipped(golden, name, i));
      EXPECT_TRUE(names(checked.fault, name)) << checked.fault;
      EXPECT_EQ(checked.values, 0);
    }
  }
}

/// What is said of a golden after a change.
template <class Change>
std::string said_of_layouts(Change&& change) {
  dump::Dump golden = only(layouts_golden(Torus(2, 1, 3)), {"BLE", "BLE_xz"});
  change(golden);
  return fault_of(golden);
}

void rename(dump::Dump& golden, const std::string& from, const std::string& to) {
  auto node = golden.values.extract(golden.values.find(from));
  node.key() = to;
  golden.values.insert(std::move(node));
  std::replace(golden.order.begin(), golden.order.end(), from, to);
}

TEST(LayoutsGolden, HostileFilesAreFaults) {
  EXPECT_EQ(said_of_layouts([](dump::Dump&) {}), "");
  EXPECT_EQ(
      said_of_layouts([](dump::Dump& g) { g.attributes.erase("torus"); }).find("golden_torus"), 0U);
  for (const char* torus : {"", "2x1", "0x1x3", "2x1x3x1", "99999x99999x99999", "-2x1x3"})
    EXPECT_EQ(
        said_of_layouts([&](dump::Dump& g) { g.attributes["torus"] = torus; }).find("torus_c"), 0U)
        << torus;
  EXPECT_NE(said_of_layouts([](dump::Dump& g) { g.attributes["torus"] = "2x3x1"; }), "");
  EXPECT_NE(said_of_layouts([](dump::Dump& g) { g.attributes["torus"] = " 2x1x3"; }), "");
  // Refused before arrays of 4096 chips are made.
  EXPECT_EQ(said_of_layouts([](dump::Dump& g) {
              g.attributes["torus"] = "16x16x16";
            }).find("golden_layout"),
            0U);
  for (const char* name : {"gate", "B_wLE", "BLB", "BLE_xx", "", "BLE partialsum-y", "BLE_zx ",
                           "BL", "BLEF", "BLE_zx"})
    EXPECT_NE(said_of_layouts([&](dump::Dump& g) { rename(g, "BLE_xz", name); }), "") << name;
  EXPECT_NE(said_of_layouts([](dump::Dump& g) {
              g.values.find("BLE")->second.whole.shape = {6, 2, 2, 2};
            }),
            "");
  EXPECT_NE(said_of_layouts([](dump::Dump& g) {
              dump::Value& value = g.values.find("BLE")->second;
              value.chips[{0, 0, 0}] = value.whole;
              value.whole = {};
            }),
            "");
  EXPECT_EQ(said_of_layouts([](dump::Dump& g) { g = only(g, {}); }), "it holds no value");
}

}  // namespace
}  // namespace shardproof::corpus
