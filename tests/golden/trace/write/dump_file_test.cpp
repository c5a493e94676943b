// A dump written into a file is read as the same dump.
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "golden/trace/write/dump_file.h"
#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"

namespace shardproof::dump {
namespace {

StoredArray array_of(NumberFormat encoding, Shape shape, unsigned first) {
  StoredArray array{std::move(shape), encoding, {}};
  array.bytes.resize(static_cast<std::size_t>(element_count(array.shape)) *
                     static_cast<std::size_t>(bytes_of(encoding)));
  for (std::size_t i = 0; i < array.bytes.size(); ++i)
    array.bytes[i] = static_cast<std::byte>((first + 37 * i) % 256);
  return array;
}

Dump dump_of(const std::vector<std::pair<std::string, Value>>& values) {
  Dump dump;
  dump.attributes = {{"format", "shardproof trace"}, {"version", "1"}};
  for (const auto& [name, value] : values) {
    dump.values.emplace(name, value);
    dump.order.push_back(name);
  }
  return dump;
}

Value whole(Attributes attributes = {}) {
  return {.attributes = std::move(attributes),
          .chips = {},
          .whole = array_of(NumberFormat::f32, {2}, 1),
          .unread = ""};
}

Dump read_back(const Dump& dump) {
  const Folder folder;
  write_dump(dump, folder / "t.h5");
  return read_dump(folder / "t.h5");
}

void expect_same(const StoredArray& a, const StoredArray& b) {
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.encoding, b.encoding);
  EXPECT_TRUE(std::ranges::equal(a.elements(), b.elements()));
}

/// What the writer itself says is in the file and not in the dump.
Attributes without_own(Attributes attributes) {
  attributes.erase("encoding");
  attributes.erase(std::string(kListed));
  return attributes;
}

void expect_same(const Dump& written, const Dump& read) {
  EXPECT_EQ(written.attributes, read.attributes);
  EXPECT_EQ(in_order(written), in_order(read));
  ASSERT_EQ(written.values.size(), read.values.size());
  for (const auto& [name, value] : written.values) {
    const Value& other = read.values.at(name);
    EXPECT_EQ(without_own(value.attributes), without_own(other.attributes)) << name;
    ASSERT_EQ(value.chips.size(), other.chips.size()) << name;
    if (!value.in_shards()) expect_same(value.whole, other.whole);
    for (const auto& [chip, shard] : value.chips) expect_same(shard, other.chips.at(chip));
  }
}

TEST(DumpFile, ByEye) {
  Value shards{.attributes = {{"layout", "BE_x"}, {"meaning", "gate"}},
               .chips = {},
               .whole = {},
               .unread = ""};
  shards.chips[{0, 0, 0}] = array_of(NumberFormat::bf16, {2, 3}, 5);
  shards.chips[{1, 0, 2}] = array_of(NumberFormat::bf16, {2, 3}, 6);
  // The decode first: a file in alphabetical order would have it last.
  const Dump dump = dump_of({{"prefill.z", whole()},
                             {"decode.1.a", shards},
                             {"b", whole({{"order", "natural"}})},
                             {"a", whole({{"order", "3"}})}});
  const Dump read = read_back(dump);
  expect_same(dump, read);
  EXPECT_EQ(read.order, dump.order);
  EXPECT_EQ(read.values.at("decode.1.a").chips.at({1, 0, 2}).encoding, NumberFormat::bf16);
  expect_same(read, read_back(read_back(read)));
}

TEST(DumpFile, ElementsMayBeLent) {
  const std::vector<float> numbers{1.5F, -2.0F};
  Dump dump = dump_of({{"a", whole()}});
  StoredArray& array = dump.values.at("a").whole;
  array.bytes.clear();
  array.lent = std::as_bytes(std::span(numbers));
  EXPECT_EQ(array.size(), 2U);
  EXPECT_EQ(array.at(1), -2.0);
  const Dump read = read_back(dump);
  EXPECT_EQ(read.values.at("a").whole.at(0), 1.5);
  EXPECT_TRUE(read.values.at("a").whole.lent.empty());
}

RC_GTEST_PROP(DumpFile, HasEveryValue, ()) {
  constexpr std::array kEncodings{NumberFormat::f64,  NumberFormat::f32,  NumberFormat::f16,
                                  NumberFormat::bf16, NumberFormat::int8, NumberFormat::int32,
                                  NumberFormat::int64};
  const auto text = rc::gen::suchThat(rc::gen::string<std::string>(),
                                      [](const std::string& t) { return t.find('\0') == t.npos; });
  std::vector<std::pair<std::string, Value>> values;
  const auto names = *rc::gen::unique<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('a', 'z'))));
  for (const std::string& name : names) {
    if (name == "chips") continue;
    Value value{.attributes = {{"meaning", *text}}, .chips = {}, .whole = {}, .unread = ""};
    if (*rc::gen::arbitrary<bool>())
      value.attributes["order"] = *rc::gen::element<std::string>("any", "2", "-7", "2");
    const NumberFormat encoding = *rc::gen::elementOf(kEncodings);
    const Shape shape = *rc::gen::container<Shape>(rc::gen::inRange<std::int64_t>(0, 4));
    if (shape.size() > 4) continue;
    const unsigned chips = *rc::gen::inRange(0U, 3U);
    for (unsigned chip = 0; chip < chips; ++chip)
      value.chips[{0, static_cast<int>(chip), 11}] = array_of(encoding, shape, chip);
    if (chips == 0) value.whole = array_of(encoding, shape, *rc::gen::inRange(0U, 256U));
    values.emplace_back(name, value);
  }
  const Dump dump = dump_of(values);
  expect_same(dump, read_back(dump));
}

TEST(DumpFile, RefusesWhatAFileCannotHave) {
  const Folder folder;
  const auto refusal = [&](const Dump& dump) {
    return label_of([&] { write_dump(dump, folder / "t.h5"); });
  };
  for (const char* name : {"", "chips", ".", "a/b", "chips/0_0_0/a", "a\nb"})
    EXPECT_EQ(refusal(dump_of({{name, whole()}})), "dump_value") << name;
  Value unread = whole();
  unread.unread = "has elements of uint16";
  EXPECT_EQ(refusal(dump_of({{"a", unread}})), "dump_value");
  Value mixed{.attributes = {}, .chips = {}, .whole = {}, .unread = ""};
  mixed.chips[{0, 0, 0}] = array_of(NumberFormat::bf16, {1}, 0);
  mixed.chips[{0, 0, 1}] = array_of(NumberFormat::f32, {1}, 0);
  EXPECT_EQ(refusal(dump_of({{"a", mixed}})), "dump_value");
  EXPECT_EQ(refusal(dump_of({{"a", whole({{"", "x"}})}})), "dump_attribute");
  EXPECT_EQ(refusal(dump_of({{"a", whole({{"x", std::string("y\0z", 3)}})}})), "dump_attribute");
  EXPECT_EQ(label_of([&] { write_dump(dump_of({}), folder / "none" / "t.h5"); }), "trace_c1");
  EXPECT_EQ(label_of([&] { write_dump(dump_of({}), folder / "none" / "t.h5", "golden_write"); }),
            "golden_write");
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace shardproof::dump
