#include "weights/safetensors/tensor_files.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "tests/weights/limited.h"
#include "tests/weights/safetensors/tensor_writer.h"

namespace shardproof {
namespace {

TensorFile small_file() {
  TensorFile file;
  file.add("a", NumberFormat::f32, {2, 2}, {0x3f800000, 0x40000000, 0x40400000, 0xc0800000});
  file.add("b", NumberFormat::bf16, {3}, {0x3f80, 0x4000, 0x8000});
  file.header["__metadata__"] = {{"format", "pt"}};
  return file;
}

TEST(TensorFiles, ByEye) {
  const Folder folder;
  small_file().write(folder / "a.safetensors");
  for (const fs::path& path : {folder / "a.safetensors", folder.path()}) {
    const TensorFiles files = TensorFiles::open(path);
    EXPECT_EQ(files.all().size(), 2U);
    EXPECT_FALSE(files.has("__metadata__"));
    EXPECT_EQ(files.read("a").shape, (Shape{2, 2}));
    EXPECT_EQ(files.read("a").data, (std::vector<float>{1, 2, 3, -4}));
    EXPECT_EQ(files.read("b").data, (std::vector<float>{1, 2, 0}));
    EXPECT_TRUE(std::signbit(files.read("b").data[2]));
    EXPECT_TRUE(refuses([&] { files.read("c"); }, "tensors_name", "no tensor c"));
  }
}

// Any tensors of any formats, more bytes than one block among them, read as they were written.
RC_GTEST_PROP(TensorFiles, ReadWhatWasWritten, ()) {
  const Folder folder;
  TensorFile file;
  std::map<std::string, std::pair<NumberFormat, std::vector<std::uint64_t>>> written;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    const NumberFormatRow& row =
        kNumberFormats[*rc::gen::inRange<std::size_t>(0, kNumberFormats.size())];
    const Shape shape{*rc::gen::inRange<std::int64_t>(0, 4), *rc::gen::inRange<std::int64_t>(1, 9)};
    std::vector<std::uint64_t> bits;
    for (std::int64_t n = 0; n < element_count(shape); ++n) {
      // The top bit of the exponent is 0: finite, and within f32.
      std::uint64_t one = *rc::gen::arbitrary<std::uint64_t>() >> (64 - 8 * row.bytes);
      if (row.exponent_bits > 0) one &= ~(std::uint64_t{1} << (8 * row.bytes - 2));
      bits.push_back(one);
    }
    const std::string name(1, static_cast<char>('z' - i));
    file.add(name, row.format, shape, bits);
    written[name] = {row.format, bits};
  }
  file.write(folder / "a.safetensors");
  const TensorFiles files = TensorFiles::open(folder / "a.safetensors");
  RC_ASSERT(files.all().size() == written.size());
  for (const auto& [name, bits] : written) {
    const Tensor read = files.read(name);
    RC_ASSERT(read.data.size() == bits.second.size());
    for (std::size_t i = 0; i < read.data.size(); ++i)
      RC_ASSERT(read.data[i] == static_cast<float>(number_of_bits(bits.first, bits.second[i])));
  }
}

TEST(TensorFiles, ReadMoreThanABlock) {
  const Folder folder;
  std::vector<std::uint64_t> bits;
  for (std::uint64_t i = 0; i < 700'001; ++i) bits.push_back(i & 0x3fff);
  TensorFile file;
  file.add("first", NumberFormat::int8, {1}, {1});
  file.add("long", NumberFormat::bf16, {700'001}, bits);
  file.write(folder / "a.safetensors");
  const Tensor read = TensorFiles::open(folder / "a.safetensors").read("long");
  ASSERT_EQ(read.data.size(), bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i)
    ASSERT_EQ(read.data[i], number_of_bits(NumberFormat::bf16, bits[i])) << i;
}

TEST(TensorFiles, OfADirectoryFollowItsIndex) {
  const Folder folder;
  TensorFile one, two, stray;
  one.add("a", NumberFormat::int8, {1}, {1});
  two.add("b", NumberFormat::int8, {1}, {2});
  stray.add("c", NumberFormat::int8, {1}, {3});
  one.write(folder / "model-1.safetensors");
  two.write(folder / "model-2.safetensors");
  EXPECT_EQ(TensorFiles::open(folder.path()).all().size(), 2U);
  stray.write(folder / "stray.safetensors");
  EXPECT_EQ(TensorFiles::open(folder.path()).all().size(), 3U);
  const auto index = [&](const nlohmann::json& map) {
    std::ofstream(folder / "model.safetensors.index.json") << map.dump();
    return label_of([&] { TensorFiles::open(folder.path()); });
  };
  EXPECT_EQ(index({{"weight_map", {{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}}}}),
            "");
  EXPECT_EQ(TensorFiles::open(folder.path()).all().size(), 2U);
  EXPECT_EQ(TensorFiles::open(folder.path()).read("b").data, std::vector<float>{2});
  EXPECT_EQ(index({{"weight_map", {{"a", "model-2.safetensors"}}}}), "tensors_header");
  EXPECT_EQ(index({{"weight_map", {{"a", "model-2.safetensors"}, {"b", "model-1.safetensors"}}}}),
            "tensors_header");
  EXPECT_EQ(index({{"weight_map", {{"a", "model-3.safetensors"}}}}), "tensors_open");
  EXPECT_EQ(index({{"weight_map", {{"a", "../model-1.safetensors"}}}}), "tensors_header");
  EXPECT_EQ(index({{"weight_map", {{"a", 1}}}}), "tensors_header");
  EXPECT_EQ(index({{"weight_map", 1}}), "tensors_header");
  EXPECT_EQ(index(nlohmann::json::array()), "tensors_header");
}

TEST(TensorFiles, OfTwoFilesHaveNamesOfTheirOwn) {
  const Folder folder;
  EXPECT_TRUE(
      refuses([&] { TensorFiles::open(folder.path()); }, "tensors_open", "no *.safetensors"));
  small_file().write(folder / "a.safetensors");
  small_file().write(folder / "b.safetensors");
  EXPECT_TRUE(refuses([&] { TensorFiles::open(folder.path()); }, "tensors_header", "is in"));
  EXPECT_TRUE(refuses([&] { TensorFiles::open(folder / "c.safetensors"); }, "tensors_open",
                      "no regular file"));
}

TEST(TensorFiles, ContradictionsAreRefused) {
  const Folder folder;
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(folder / "a", std::ios::binary) << bytes;
    return label_of([&] { TensorFiles::open(folder / "a"); });
  };
  const auto changed = [&](const std::string& name, const char* key, const nlohmann::json& value) {
    TensorFile file = small_file();
    file.header[name][key] = value;
    return refused(file.bytes());
  };
  EXPECT_EQ(refused(small_file().bytes()), "");
  for (const nlohmann::json& type :
       {nlohmann::json("F33"), nlohmann::json("f32"), nlohmann::json(), nlohmann::json(32)})
    EXPECT_EQ(changed("a", "dtype", type), "tensors_header") << type;
  for (const char* shape : {"[2,3]", "[-2,2]", "[2.0,2]", "4", "[4294967296,4294967296]",
                            "[18446744073709551615]", "[]"})
    EXPECT_EQ(changed("a", "shape", nlohmann::json::parse(shape)), "tensors_header") << shape;
  for (const char* offsets :
       {"[0]", "[0,16,16]", "[16,0]", "[0,15]", "[4,20]", "[6,22]", "[-1,15]", "[1000,1016]", "{}"})
    EXPECT_EQ(changed("a", "data_offsets", nlohmann::json::parse(offsets)), "tensors_header")
        << offsets;
  EXPECT_EQ(changed("c", "dtype", "F32"), "tensors_header");
  // Bytes of two tensors, and of none, in a file of the right length.
  TensorFile shared = small_file(), hole = small_file();
  shared.header["b"]["data_offsets"] = {10, 16};
  shared.data.resize(16);
  EXPECT_EQ(refused(shared.bytes()), "tensors_header");
  hole.header["b"]["data_offsets"] = {20, 26};
  hole.data.resize(26);
  EXPECT_EQ(refused(hole.bytes()), "tensors_header");
  std::string bytes = small_file().bytes();
  EXPECT_EQ(refused(bytes + "x"), "tensors_header");
  EXPECT_EQ(refused(bytes.substr(0, bytes.size() - 1)), "tensors_header");
  EXPECT_EQ(refused(""), "tensors_header");
  EXPECT_EQ(refused(std::string(7, '\0')), "tensors_header");
  EXPECT_EQ(refused(std::string(8, '\xff')), "tensors_header");
  EXPECT_EQ(refused(std::string("\2\0\0\0\0\0\0\0[]", 10)), "tensors_header");
  EXPECT_EQ(refused(std::string("\2\0\0\0\0\0\0\0{}", 10)), "");
}

// No byte that is changed, added or missing does more than an error of a file.
RC_GTEST_PROP(TensorFiles, DamageIsSeenOrHarmless, ()) {
  const Folder folder;
  std::string bytes = small_file().bytes();
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      bytes[at] = static_cast<char>(*rc::gen::inRange(0, 256));
      break;
    case 1:
      bytes.erase(at, *rc::gen::inRange<std::size_t>(1, 20));
      break;
    default:
      bytes.insert(at, *rc::gen::inRange<std::size_t>(1, 20), '[');
  }
  std::ofstream(folder / "a", std::ios::binary) << bytes;
  const std::string label = label_of([&] {
    const TensorFiles files = TensorFiles::open(folder / "a");
    for (const auto& [name, tensor] : files.all()) files.read(name);
  });
  RC_ASSERT(label.empty() || label == "tensors_header" || label == "tensors_value");
}

TEST(TensorFiles, NumbersAreFinite) {
  const Folder folder;
  for (const auto& [format, bits] : {std::pair{NumberFormat::f32, std::uint64_t{0x7f800000}},
                                     {NumberFormat::f32, 0x7fc00000},
                                     {NumberFormat::f16, 0xfc00},
                                     {NumberFormat::f8_e4m3, 0x7f},
                                     {NumberFormat::f64, 0x7fe0000000000000}}) {
    TensorFile file;
    file.add("a", format, {2}, {0, bits});
    file.write(folder / "a.safetensors");
    const TensorFiles files = TensorFiles::open(folder / "a.safetensors");
    EXPECT_TRUE(refuses([&] { files.read("a"); }, "tensors_value", "\"a\": element 1 is"))
        << row_of(format).word;
  }
}

TEST(TensorFiles, ThatBecameShorterAreRefused) {
  const Folder folder;
  small_file().write(folder / "a.safetensors");
  const TensorFiles files = TensorFiles::open(folder / "a.safetensors");
  fs::resize_file(folder / "a.safetensors", 50);
  EXPECT_TRUE(refuses([&] { files.read("a"); }, "tensors_open", "shorter"));
}

TEST(TensorFiles, NeedMemory) {
  if (!kMemoryCanBeLimited) GTEST_SKIP() << "sanitizers";
  const Folder folder;
  TensorFile file;
  file.header["a"] = {{"dtype", "I8"},
                      {"shape", {std::int64_t{1} << 32}},
                      {"data_offsets", {0, std::int64_t{1} << 32}}};
  file.write(folder / "a.safetensors");
  fs::resize_file(folder / "a.safetensors",
                  fs::file_size(folder / "a.safetensors") + (std::uintmax_t{1} << 32));  // a hole
  const TensorFiles files = TensorFiles::open(folder / "a.safetensors");
  const Limited limited(RLIMIT_AS, rlim_t{1} << 31);
  EXPECT_TRUE(refuses([&] { files.read("a"); }, "memory_c1", "the tensor \"a\" needs"));
}

}  // namespace
}  // namespace shardproof
