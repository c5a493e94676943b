// NumPy archives: every type of element, and what is refused.
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "golden/trace/read/dump.h"
#include "tests/golden/trace/read/npz_file.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

Dump read(const std::string& archive) {
  const Folder folder;
  write_text(folder / "a.npz", archive);
  return read_dump(folder / "a.npz");
}
Dump read(const ZipFile& archive) { return read(archive.bytes()); }

std::string refused(const ZipFile& archive) {
  return label_of([&] { read(archive); });
}
std::string why(const ZipFile& archive) {
  return message_of([&] { read(archive); });
}

/// Three elements as a value v.
template <class T>
ZipFile three(const char* descr, const std::vector<T>& elements,
              const std::string& json = kLeastJson) {
  return described(json).add("v.npy", npy(descr, "(3,)", bytes_of_numbers(elements)));
}

TEST(Npz, LeavesOtherElementsUnreadIfAskedTo) {
  const Folder folder;
  write_text(folder / "a.npz",
             three<std::uint16_t>("<u2", {1, 2, 3})
                 .add("w.npy", npy("<f4", "(3,)", bytes_of_numbers(std::vector<float>{1, 2, 3})))
                 .bytes());
  const Dump dump = read_dump(folder / "a.npz", Unread::left);
  EXPECT_EQ(dump.order, (std::vector<std::string>{"v", "w"}));
  EXPECT_NE(dump.values.at("v").unread.find("has elements of uint16"), std::string::npos)
      << dump.values.at("v").unread;
  EXPECT_EQ(dump.values.at("v").whole.size(), 0U);
  EXPECT_EQ(dump.values.at("w").unread, "");
  EXPECT_EQ(numbers(dump.values.at("w").whole), (std::vector<double>{1, 2, 3}));
}

TEST(Npz, NamesAFileOfTorch) {
  const std::string of_archive =
      why(ZipFile().add("archive/data.pkl", "pickle").add("archive/data/0", "1234"));
  EXPECT_NE(of_archive.find("dump_open"), std::string::npos) << of_archive;
  for (const char* part : {"is a PyTorch file", "numpy.savez(", ".float().cpu().numpy()"})
    EXPECT_NE(of_archive.find(part), std::string::npos) << of_archive;
  const std::string before_archives(
      "\x80\x02\x8a\x0al\xfc\x9c"
      "F\xf9 j\xa8P\x19.",
      15);
  const std::string of_pickle = message_of([&] { read(before_archives); });
  EXPECT_NE(of_pickle.find("is a PyTorch file"), std::string::npos) << of_pickle;
  // A trace may hold a member of that name.
  EXPECT_EQ(refused(described(kLeastJson).add("data.pkl", "x")), "");
}

TEST(Npz, RefusesOtherElements) {
  const std::vector<double> wide(6, 0.0);
  for (const char* descr : {"<c16", "<f16", "<U2", "|S8", "|O", "<M8[s]", "|V4", "|V8", "<f3",
                            "<i3", "|V2", "<u2", "|b2"})
    EXPECT_EQ(refused(three<double>(descr, wide)), "dump_value") << descr;
  EXPECT_EQ(refused(three<float>("<f4", {1, 2, 3}, declaring("bf16"))), "dump_value");
  const std::string undeclared = why(three<std::uint16_t>("<u2", {1, 2, 3}));
  EXPECT_NE(undeclared.find("encoding=bf16"), std::string::npos) << undeclared;
  EXPECT_EQ(refused(three<float>("<f4", {1, 2, 3}, declaring("f64"))), "dump_value");
}

TEST(Npz, IsStoredOrDeflatedInEveryVersion) {
  std::vector<float> many(100000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i % 1000);
  for (const bool deflate : {false, true})
    for (const int version : {1, 2, 3}) {
      const Dump dump = read(described().add(
          "v.npy",
          npy_with_header(npy_header("<f4", "(100, 1000)"), bytes_of_numbers(many), version),
          deflate));
      const StoredArray& v = dump.values.at("v").whole;
      EXPECT_EQ(v.shape, (Shape{100, 1000}));
      EXPECT_EQ(numbers(v), std::vector<double>(many.begin(), many.end()));
    }
}

TEST(Npz, MayLackDimsOrElements) {
  const Dump dump = read(described()
                             .add("s.npy", npy("<f4", "()", bytes_of_numbers<float>({7})))
                             .add("n.npy", npy("<f4", "(0, 5)", "")));
  EXPECT_EQ(dump.values.at("s").whole.shape, Shape());
  EXPECT_EQ(numbers(dump.values.at("s").whole), std::vector<double>{7});
  EXPECT_EQ(dump.values.at("n").whole.shape, (Shape{0, 5}));
  EXPECT_EQ(dump.values.at("n").whole.size(), 0U);
}

RC_GTEST_PROP(Npz, AFortranArrayIsTurned, ()) {
  const auto extents = *rc::gen::container<std::vector<std::int64_t>>(
      *rc::gen::inRange<std::size_t>(0, 5), rc::gen::inRange<std::int64_t>(0, 6));
  const auto count = static_cast<std::size_t>(element_count(extents));
  std::vector<std::int32_t> in_file(count), right(count);
  for (std::size_t i = 0; i < count; ++i) {
    right[i] = static_cast<std::int32_t>(i);
    std::size_t rest = i, at = 0;  // the index, its last dim first; then its place
    std::vector<std::size_t> index(extents.size());
    for (std::size_t d = extents.size(); d-- > 0; rest /= static_cast<std::size_t>(extents[d]))
      index[d] = rest % static_cast<std::size_t>(extents[d]);
    for (std::size_t d = extents.size(); d-- > 0;)
      at = at * static_cast<std::size_t>(extents[d]) + index[d];
    in_file[at] = right[i];
  }
  std::string shape = "(";
  for (const std::int64_t e : extents) shape += std::to_string(e) + ",";
  const Dump dump = read(described().add(
      "v.npy", npy_with_header(npy_header("<i4", shape + ")", true), bytes_of_numbers(in_file))));
  RC_ASSERT(dump.values.at("v").whole.shape == extents);
  RC_ASSERT(numbers(dump.values.at("v").whole) == std::vector<double>(right.begin(), right.end()));
}

TEST(Npz, ALargeFortranArrayIsTurned) {
  constexpr std::int64_t kRows = 700, kColumns = 900;  // more than a piece
  std::vector<float> in_file(kRows * kColumns);
  for (std::size_t i = 0; i < in_file.size(); ++i) in_file[i] = static_cast<float>(i);
  const Dump dump = read(described().add(
      "v.npy", npy_with_header(npy_header("<f4", "(700, 900)", true), bytes_of_numbers(in_file))));
  const StoredArray& v = dump.values.at("v").whole;
  std::vector<float> turned;
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t column = 0; column < kColumns; ++column)
      turned.push_back(static_cast<float>(column * kRows + row));
  ASSERT_EQ(v.encoding, NumberFormat::f32);
  EXPECT_TRUE(
      std::ranges::equal(std::as_bytes(std::span(v.bytes)), std::as_bytes(std::span(turned))));
}

TEST(Npz, SaysWhatItIsInATextOrInBytes) {
  const std::string json = R"({"format": "shardproof trace", "version": 1, "case": "torus=é"})";
  std::string wide, big;
  for (const char32_t c : U"{\"format\": \"shardproof trace\", \"version\": 1, \"case\": \"é\"}") {
    wide += little(c, 4);
    big += std::string{0, 0, static_cast<char>(c >> 8), static_cast<char>(c)};
  }
  const std::string length = std::to_string(wide.size() / 4);
  const auto case_of = [](const std::string& npy) {
    return read(ZipFile().add("shardproof.npy", npy)).attributes.at("case");
  };
  EXPECT_EQ(case_of(npy_text(json)), "torus=é");
  EXPECT_EQ(case_of(npy("|S100", "(1,)", json + std::string(100 - json.size(), '\0'))), "torus=é");
  EXPECT_EQ(case_of(npy("|u1", "(" + std::to_string(json.size()) + ",)", json)), "torus=é");
  EXPECT_EQ(case_of(npy("<U" + length, "()", wide)), "é");
  EXPECT_EQ(case_of(npy(">U" + length, "()", big)), "é");
}

TEST(Npz, MustSayWhatItIs) {
  const auto says = [](const std::string& json) { return refused(described(json)); };
  EXPECT_EQ(says(kLeastJson), "");
  EXPECT_EQ(says(R"({"format": "shardproof trace", "version": 1.0})"), "");
  for (const char* bad : {"{}", "[]", "", R"({"format": "shardproof trace"})", R"({"version": 1})",
                          R"({"format": "shardproof trace", "version": 0})",
                          R"({"format": "shardproof trace", "version": 2})",
                          R"({"format": "shardproof-weights", "version": 1})"})
    EXPECT_EQ(says(bad), "dump_format") << bad;
  EXPECT_EQ(refused(ZipFile()), "dump_format");
  EXPECT_EQ(refused(ZipFile().add("v.npy", npy("<f4", "()", little(0, 4)))), "dump_format");
  EXPECT_EQ(refused(ZipFile().add("shardproof", kLeastJson)), "dump_format");
  EXPECT_EQ(refused(ZipFile().add("shardproof.npy", npy("<f4", "()", little(0, 4)))),
            "dump_format");
  EXPECT_EQ(refused(ZipFile().add("shardproof.npy", npy("|S1", "(2,)", "{}"))), "dump_format");
  EXPECT_EQ(refused(ZipFile().add("shardproof.npy", kLeastJson)), "dump_value");
}

TEST(Npz, HasShardsAndTheirAttributes) {
  const std::string one = npy("<f4", "(1,)", bytes_of_numbers<float>({1}));
  const Dump dump = read(described(R"({"format": "shardproof trace", "version": 1, "values": {
      "prefill.c0.out": {"layout": "B_x", "own": [1]}, "missing": {"layout": "BLE"}}})")
                             .add("chips/", "")
                             .add("chips/1_0_2/prefill.c0.out.npy", one)
                             .add("chips/0_0_12/prefill.c0.out.npy", one)
                             .add("expected/a.npy", one)
                             .add("notes.txt", "x"));
  EXPECT_EQ(dump.order, std::vector<std::string>{"prefill.c0.out"});
  EXPECT_EQ(dump.ignored, (std::vector<std::string>{"expected/a.npy", "notes.txt"}));
  const Value& value = dump.values.at("prefill.c0.out");
  EXPECT_EQ(value.attributes, (Attributes{{"layout", "B_x"}, {"own", "[1]"}}));
  EXPECT_TRUE(value.chips.contains({1, 0, 2}));
  EXPECT_TRUE(value.chips.contains({0, 0, 12}));
  EXPECT_EQ(value.chips.size(), 2U);
}

TEST(Npz, IsRefusedAsAZipFile) {
  const std::string one = npy("<f4", "(1,)", little(0, 4));
  EXPECT_EQ(refused(described().add("v.npy", one).add("v.npy", one)), "dump_open");
  EXPECT_EQ(refused(described().add("v.npy", one, {.method = 0, .flags = 1, .size = -1})),
            "dump_open");
  for (const int method : {12, 14, 93, 99})
    EXPECT_EQ(refused(described().add("v.npy", one, {.method = method, .flags = 0, .size = -1})),
              "dump_open");
  // What a member says of its own size is neither believed nor needed.
  for (const std::int64_t size : {0, 10, 1000, 1 << 30})
    EXPECT_EQ(read(described().add("v.npy", one, {.method = 8, .flags = 0, .size = size}))
                  .values.at("v")
                  .whole.size(),
              1U)
        << size;
  // A member within another, or outside of what is read.
  for (const char* name : {"chips/../v.npy", "chips/0_0_0/../v.npy", "chips/0_0_0/a/v.npy",
                           "chips/v.npy", ".npy", "chips/0_0_0/.npy", "a\nb.npy", "a\\b.npy"})
    EXPECT_EQ(refused(described().add(name, one)), "dump_value") << name;
  EXPECT_EQ(read(described().add("../v.npy", one)).ignored, std::vector<std::string>{"../v.npy"});
}

TEST(Npz, HasAsManyElementsAsItSays) {
  for (const bool deflate : {false, true}) {
    EXPECT_EQ(refused(described().add("v.npy", npy("<f4", "(2,)", little(0, 7)), deflate)),
              "dump_open");
    EXPECT_EQ(refused(described().add("v.npy", npy("<f4", "(2,)", little(0, 9)), deflate)),
              "dump_open");
    EXPECT_EQ(refused(described().add("v.npy", npy("<f4", "(2,)", little(0, 8)), deflate)), "");
  }
  EXPECT_EQ(refused(described().add("v.npy", "")), "dump_open");
  EXPECT_EQ(refused(described().add("v.npy", "\x93NUMPY")), "dump_open");
  EXPECT_EQ(refused(described().add("v.npy", std::string(100, 'x'))), "dump_value");
}

}  // namespace
}  // namespace shardproof::dump
