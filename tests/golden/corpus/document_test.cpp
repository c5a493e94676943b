#include "golden/corpus/document.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/golden/corpus/goldens.h"
#include "tests/weights/folder.h"

namespace shardproof::corpus {
namespace {

using dump::Dump;
using dump::StoredArray;

/// One array of each type, one without elements, one number without dims.
Dump some_golden() {
  Dump golden = empty_golden(Kind::layouts);
  golden.attributes["torus"] = "1x1x1";
  const std::vector<float> floats{
      1.5F,  0.0F, -0.0F, std::numeric_limits<float>::infinity(), std::bit_cast<float>(0x7fc00001U),
      1e-45F};
  const std::vector<std::int32_t> ints{1, -2, std::numeric_limits<std::int32_t>::min(), 7};
  const std::vector<std::int8_t> bytes{1, -128, 127};
  put(golden, "floats", {1, 2, 3}, std::span<const float>(floats), {{"layout", "BLE"}});
  put(golden, "ints", {4}, std::span<const std::int32_t>(ints), {{"layout", "B"}});
  put(golden, "bytes", {3, 1}, std::span<const std::int8_t>(bytes), {{"op", "a \"word\""}});
  put(golden, "one", {1}, std::span<const float>(floats.data(), 1), {});
  return golden;
}

StoredArray& whole(Dump& golden, const std::string& name) {
  return golden.values.find(name)->second.whole;
}

void set(StoredArray& stored, std::size_t element, float value) {
  std::memcpy(stored.bytes.data() + element * sizeof value, &value, sizeof value);
}

/// What is said of a golden after a change.
template <class Change>
std::string said_of_document(Change&& change) {
  Dump golden = some_golden();
  change(golden);
  return first_difference(some_golden(), golden).value_or("the same");
}

TEST(FirstDifference, OfNone) {
  EXPECT_EQ(said_of_document([](Dump&) {}), "the same");
}

TEST(FirstDifference, SeesAttributes) {
  EXPECT_EQ(said_of_document([](Dump& g) { g.attributes["torus"] = "1x1x2"; }),
            "the file: torus=\"1x1x2\", expected \"1x1x1\"");
  EXPECT_EQ(said_of_document([](Dump& g) { g.attributes.erase("torus"); }),
            "the file has no attribute torus, expected \"1x1x1\"");
  EXPECT_EQ(said_of_document([](Dump& g) { g.attributes["seed"] = "1"; }),
            "the file: seed=\"1\" is one attribute too many");
  EXPECT_EQ(
      said_of_document([](Dump& g) { g.values.find("ints")->second.attributes["layout"] = "L"; }),
      "ints: layout=\"L\", expected \"B\"");
  EXPECT_EQ(
      said_of_document([](Dump& g) { g.values.find("ints")->second.attributes.erase("layout"); }),
      "ints has no attribute layout, expected \"B\"");
  EXPECT_EQ(
      said_of_document([](Dump& g) { g.values.find("one")->second.attributes["layout"] = "B"; }),
      "one: layout=\"B\" is one attribute too many");
  EXPECT_EQ(
      said_of_document([](Dump& g) { g.values.find("ints")->second.attributes["order"] = "9"; }),
      "ints: order=\"9\", expected \"1\"");
}

TEST(FirstDifference, SeesArrays) {
  for (const std::string& name : some_golden().order)
    EXPECT_EQ(said_of_document([&](Dump& g) { erase(g, name); }), name + " is missing");
  EXPECT_EQ(said_of_document([](Dump& g) { put(g, "more", {0}, std::span<const float>(), {}); }),
            "more is one value too many");
  EXPECT_EQ(said_of_document([](Dump& g) {
              whole(g, "floats").shape = {1, 3, 2};
            }),
            "floats is [1,3,2], expected [1,2,3]");
  EXPECT_EQ(said_of_document([](Dump& g) { whole(g, "floats").encoding = NumberFormat::int32; }),
            "floats is of int32, expected f32");
  EXPECT_EQ(said_of_document([](Dump& g) {
              dump::Value& value = g.values.find("ints")->second;
              value.chips[{0, 0, 0}] = value.whole;
            }),
            "ints is stored as shards, expected whole");
}

/// A group, where nobody looks for values.
TEST(FirstDifference, SeesWhatIsNoArray) {
  EXPECT_EQ(said_of_document([](Dump& g) { g.ignored.push_back("more"); }),
            "more is not an array: a golden has nothing else");
}

TEST(FirstDifference, SeesEveryBitOfEveryElement) {
  for (const std::string& name : some_golden().order) {
    const Dump golden = some_golden();
    const StoredArray& stored = golden.values.find(name)->second.whole;
    for (std::size_t i = 0; i < stored.size(); ++i)
      for (int bit = 0; bit < 8 * static_cast<int>(bytes_of(stored.encoding)); ++bit) {
        const auto difference = first_difference(golden, flipped(golden, name, i, bit));
        ASSERT_TRUE(difference) << name << " " << i << " " << bit;
        EXPECT_TRUE(names(*difference, name)) << *difference;
      }
  }
}

TEST(FirstDifference, NamesTheElement) {
  EXPECT_EQ(said_of_document([](Dump& g) { set(whole(g, "floats"), 0, 2.5F); }),
            "floats [0,0,0] is 2.5, expected 1.5");
  EXPECT_EQ(said_of_document([](Dump& g) { set(whole(g, "floats"), 1, -0.0F); }),
            "floats [0,0,1] is -0, expected 0");
  EXPECT_EQ(said_of_document([](Dump& g) { set(whole(g, "floats"), 2, 0.0F); }),
            "floats [0,0,2] is 0, expected -0");
  EXPECT_EQ(said_of_document(
                [](Dump& g) { set(whole(g, "floats"), 4, std::bit_cast<float>(0x7fc00002U)); }),
            "floats [0,1,1] is nan, expected nan");
  EXPECT_EQ(said_of_document([](Dump& g) { set(whole(g, "floats"), 5, 0.0F); }),
            "floats [0,1,2] is 0, expected 1.40129846e-45");
  EXPECT_EQ(said_of_document([](Dump& g) { flip(whole(g, "bytes"), 1); }),
            "bytes [1,0] is -127, expected -128");
}

TEST(Save, GivesTheSameGolden) {
  const Folder folder;
  const Dump golden = some_golden();
  save(golden, folder / "g.h5");
  const Dump read = dump::read_dump(folder / "g.h5");
  EXPECT_EQ(first_difference(golden, read), std::nullopt);
  EXPECT_EQ(first_difference(read, golden), std::nullopt);
  EXPECT_EQ(dump::in_order(read), golden.order);
}

/// A corpus has sums: the same golden is the same file.
TEST(Save, GivesTheSameBytes) {
  const Folder folder;
  save(some_golden(), folder / "a.h5");
  save(some_golden(), folder / "b.h5");
  EXPECT_EQ(bytes_of(folder / "a.h5"), bytes_of(folder / "b.h5"));
}

TEST(Save, RefusesAPlaceThatIsNone) {
  const Folder folder;
  for (const fs::path& path : {folder / "none/g.h5", folder.path()}) try {
      save(some_golden(), path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.label(), "golden_write");
    }
}

TEST(KindOf, KnowsThreeAndNoOther) {
  for (const Kind kind : {Kind::layouts, Kind::collectives, Kind::model})
    EXPECT_EQ(kind_of(empty_golden(kind)), kind);
  for (const char* word : {"", "layout", "Model", "models", "weights"}) {
    Dump golden = some_golden();
    golden.attributes["golden"] = word;
    EXPECT_THROW(kind_of(golden), Error) << word;
    EXPECT_EQ(fault_of(golden).find("golden_kind"), 0U) << word;
  }
  Dump golden = some_golden();
  golden.attributes.erase("golden");
  EXPECT_EQ(fault_of(golden), "golden_kind: a trace without the attribute golden is not a golden");
}

}  // namespace
}  // namespace shardproof::corpus
