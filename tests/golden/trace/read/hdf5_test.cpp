// HDF5 traces: every type of element, way of storing and kind of attribute, and what is refused.
#include <gtest/gtest.h>
// gtest first
#include <fmt/format.h>
#include <hdf5.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "golden/trace/read/dump.h"
#include "tests/golden/trace/read/hdf5_file.h"
#include "tests/golden/trace/read/npz_file.h"
#include "tests/weights/expect_error.h"
#include "weights/hdf5/detail/writer.h"

namespace shardproof::dump {
namespace {

/// Reads what `fill` writes.
template <class Fill>
Dump read_written(Fill&& fill, bool is_trace = true) {
  const Folder folder;
  const fs::path path = folder / "a.h5";
  {
    const Hdf5Silence silence;
    const Hdf5File file(path, is_trace);
    fill(file);
  }
  return read_dump(path);
}

template <class Fill>
std::string refused_file(Fill&& fill, bool is_trace = true) {
  return label_of([&] { read_written(fill, is_trace); });
}

TEST(Hdf5Trace, LeavesOtherElementsUnreadIfAskedTo) {
  const Folder folder;
  {
    const Hdf5File file(folder / "a.h5");
    const std::vector<char> zeros(1024);
    file.dataset("v", H5T_STD_U16LE, {3}, zeros.data());
    file.dataset("chips/0_0_1/u", H5T_NATIVE_LDOUBLE, {3}, zeros.data());
    file.dataset("w", H5T_IEEE_F32LE, {3}, zeros.data());
    file.text("v", "layout", "BLE");
  }
  const Dump dump = read_dump(folder / "a.h5", Unread::left);
  EXPECT_NE(dump.values.at("v").unread.find("uint16"), std::string::npos);
  EXPECT_EQ(dump.values.at("v").attributes.at("layout"), "BLE");
  EXPECT_NE(dump.values.at("u").unread.find("another type"), std::string::npos);
  EXPECT_EQ(dump.values.at("w").unread, "");
  EXPECT_EQ(dump.values.at("w").whole.size(), 3U);
}

// Large arrays are lent from the file if they lie there as they are read; the same numbers either
// way, also when the dump is all that is left of the file.
TEST(Hdf5Trace, LendsLargeArraysThatLieInTheFile) {
  const Folder folder;
  const std::size_t count = 50'000;
  std::vector<float> floats(count);
  std::vector<float> big_endian(count);
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    floats[i] = static_cast<float>(i) - 7.5F;
    big_endian[i] =
        std::bit_cast<float>(__builtin_bswap32(std::bit_cast<std::uint32_t>(floats[i])));
    bytes[i] = static_cast<std::uint8_t>(i);
  }
  {
    const Hdf5File file(folder / "a.h5");
    file.floats("lent", {count}, floats);
    file.floats("chips/0_0_1/lent_shard", {count / 2, 2}, floats);
    file.floats("small", {100}, floats);
    file.dataset("chunked", H5T_IEEE_F32LE, {count}, floats.data(), {.chunk = {1000}});
    file.dataset("gzipped", H5T_IEEE_F32LE, {count}, floats.data(),
                 {.chunk = {1000}, .gzip = true});
    file.dataset("big_endian", H5T_IEEE_F32BE, {count}, big_endian.data());
    file.dataset("widened", H5T_STD_U8LE, {count}, bytes.data());
  }
  const Dump dump = read_dump(folder / "a.h5");
  fs::remove(folder / "a.h5");
  for (const auto& [name, value] : dump.values) {
    const StoredArray& array = value.in_shards() ? value.chips.begin()->second : value.whole;
    EXPECT_EQ(!array.lent.empty(), name.starts_with("lent")) << name;
    EXPECT_EQ(array.bytes.empty(), name.starts_with("lent")) << name;
    ASSERT_EQ(array.size(), name == "small" ? 100U : count) << name;
    for (std::size_t i = 0; i < array.size(); ++i)
      ASSERT_EQ(array.at(i),
                name == "widened" ? static_cast<double>(bytes[i]) : static_cast<double>(floats[i]))
          << name << i;
  }
}

TEST(Hdf5Trace, RefusesOtherElements) {
  const Hdf5Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  const Hdf5Handle pair(H5Tcreate(H5T_COMPOUND, 8), H5Tclose);
  H5Tinsert(pair.get(), "r", 0, H5T_IEEE_F32LE);
  H5Tinsert(pair.get(), "i", 4, H5T_IEEE_F32LE);
  const Hdf5Handle odd(H5Tcopy(H5T_STD_I32LE), H5Tclose);  // 20 bits, somewhere within 32
  H5Tset_precision(odd.get(), 20);
  const std::pair<hid_t, const char*> bad[] = {
      {H5T_STD_U16LE, nullptr},      {H5T_IEEE_F32LE, "bf16"}, {H5T_IEEE_F32LE, "f64"},
      {H5T_NATIVE_LDOUBLE, nullptr}, {text.get(), nullptr},    {pair.get(), nullptr},
      {odd.get(), nullptr}};
  for (const auto& [type, declared] : bad)
    EXPECT_EQ(refused_file([&, of = type, as = declared](const Hdf5File& file) {
                const std::vector<char> zeros(1024);
                file.dataset("v", of, {3}, zeros.data());
                if (as != nullptr) file.text("v", "encoding", as);
              }),
              "dump_value");
}

RC_GTEST_PROP(Hdf5Trace, IsTheSameHoweverItIsStored, ()) {
  const auto extents = *rc::gen::container<std::vector<hsize_t>>(
      *rc::gen::inRange<std::size_t>(1, 4), rc::gen::inRange<hsize_t>(1, 7));
  Hdf5File::Storage storage;
  for (const hsize_t extent : extents)
    storage.chunk.push_back(*rc::gen::inRange<hsize_t>(1, extent + 1));
  if (*rc::gen::inRange(0, 4) == 0) storage.chunk.clear();
  if (!storage.chunk.empty()) {
    storage.gzip = *rc::gen::arbitrary<bool>();
    storage.shuffle = *rc::gen::arbitrary<bool>();
    storage.fletcher32 = *rc::gen::arbitrary<bool>();
  }
  std::size_t count = 1;
  for (const hsize_t e : extents) count *= e;
  const auto values = *rc::gen::container<std::vector<float>>(count, rc::gen::arbitrary<float>());
  const Dump dump = read_written([&](const Hdf5File& file) {
    file.dataset("v", H5T_IEEE_F32LE, extents, values.data(), storage);
  });
  RC_ASSERT(dump.values.at("v").whole.shape == Shape(extents.begin(), extents.end()));
  RC_ASSERT(numbers(dump.values.at("v").whole) ==
            std::vector<double>(values.begin(), values.end()));
}

TEST(Hdf5Trace, IsReadInManyPieces) {
  std::vector<float> many(3000 * 1001);  // three pieces of 4 MiB, the last not whole
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  for (const bool chunked : {false, true}) {
    const Dump dump = read_written([&](const Hdf5File& file) {
      Hdf5File::Storage storage;
      if (chunked) storage.chunk = {700, 500};
      file.dataset("v", H5T_IEEE_F32LE, {3000, 1001}, many.data(), storage);
    });
    EXPECT_EQ(numbers(dump.values.at("v").whole), std::vector<double>(many.begin(), many.end()));
  }
}

TEST(Hdf5Trace, MayLackDimsOrElements) {
  const Dump dump = read_written([](const Hdf5File& file) {
    file.floats("scalar", {}, {7});
    file.floats("none", {0, 5}, {});
    file.dataset("unwritten", H5T_IEEE_F32LE, {2}, nullptr);
  });
  EXPECT_EQ(dump.values.at("scalar").whole.shape, Shape());
  EXPECT_EQ(numbers(dump.values.at("scalar").whole), std::vector<double>{7});
  EXPECT_EQ(dump.values.at("none").whole.shape, (Shape{0, 5}));
  EXPECT_EQ(numbers(dump.values.at("unwritten").whole), (std::vector<double>{0, 0}));
}

TEST(Hdf5Trace, HasEveryKindOfAttribute) {
  const Dump dump = read_written([](const Hdf5File& file) {
    for (const bool variable : {false, true})
      for (const H5T_cset_t set : {H5T_CSET_ASCII, H5T_CSET_UTF8})
        file.text("/", fmt::format("text {} {}", variable, static_cast<int>(set)).c_str(),
                  set == H5T_CSET_UTF8 ? "zwölf" : "twelve", variable, set);
    file.text("/", "spaces", "a b  ", false, H5T_CSET_ASCII, H5T_STR_SPACEPAD);
    file.text("/", "empty", "", true);
    file.text("/", "long", std::string(64 << 10, 'x'), true);
    file.number("/", "int8", H5T_STD_I8LE, H5T_NATIVE_INT, -5);
    file.number("/", "uint64", H5T_STD_U64LE, H5T_NATIVE_UINT64, ~std::uint64_t{0});
    file.number("/", "int16", H5T_STD_I16BE, H5T_NATIVE_INT, -300);
    file.number("/", "f32", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, 0.5);
    file.number("/", "whole", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 8.0);
    file.number("/", "f16", f16_type().get(), H5T_NATIVE_DOUBLE, -1.5);
    file.number("/", "one", H5T_STD_I32LE, H5T_NATIVE_INT, 4, {1});
    file.number("/", "three", H5T_STD_I32LE, H5T_NATIVE_INT, 4, {3});
    const std::int8_t bools[] = {1, 0};
    file.attribute("/", "bool", bool_type().get(), bool_type().get(), {}, bools);
    file.attribute("/", "bools", bool_type().get(), bool_type().get(), {2}, bools);
    const Hdf5Handle texts(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(texts.get(), H5T_VARIABLE);
    const char* const axes[] = {"data", "model"};
    file.attribute("/", "texts", texts.get(), texts.get(), {2}, axes);
    file.attribute("/", "one text", texts.get(), texts.get(), {1}, axes);
    const Hdf5Handle fixed(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(fixed.get(), 4);
    file.attribute("/", "fixed", fixed.get(), fixed.get(), {2}, "x\0\0\0yz\0\0");
    // A writer's own, which a trace does not have.
    file.number("/", "matrix", H5T_STD_I32LE, H5T_NATIVE_INT, 4, {2, 2});
    const Hdf5Handle pair(H5Tcreate(H5T_COMPOUND, 8), H5Tclose);
    H5Tinsert(pair.get(), "r", 0, H5T_IEEE_F32LE);
    file.attribute("/", "pair", pair.get(), pair.get(), {}, "1234567");
    file.floats("v", {1}, {1});
    file.text("v", "layout", "BLE");
  });
  EXPECT_EQ(dump.attributes, (Attributes{{"format", "shardproof trace"},
                                         {"version", "1"},
                                         {"text false 0", "twelve"},
                                         {"text true 0", "twelve"},
                                         {"text false 1", "zwölf"},
                                         {"text true 1", "zwölf"},
                                         {"spaces", "a b"},
                                         {"empty", ""},
                                         {"long", std::string(64 << 10, 'x')},
                                         {"int8", "-5"},
                                         {"uint64", "18446744073709551615"},
                                         {"int16", "-300"},
                                         {"f32", "0.5"},
                                         {"whole", "8"},
                                         {"f16", "-1.5"},
                                         {"one", "4"},
                                         {"three", "[4,4,4]"},
                                         {"bool", "true"},
                                         {"bools", "[true,false]"},
                                         {"texts", R"(["data","model"])"},
                                         {"one text", R"(["data"])"},
                                         {"fixed", R"(["x","yz"])"}}));
  EXPECT_EQ(dump.values.at("v").attributes, (Attributes{{"layout", "BLE"}}));
  EXPECT_EQ(refused_file([](const Hdf5File& file) {
              file.text("/", "long", std::string((64 << 10) + 1, 'x'), true);
            }),
            "dump_value");
  EXPECT_EQ(refused_file([](const Hdf5File& file) {
              file.number("/", "many", H5T_STD_I8LE, H5T_NATIVE_INT8, std::int8_t{0}, {50});
            }),
            "");
}

TEST(Hdf5Trace, MustSayWhatItIs) {
  const auto says = [](const char* format, const char* version, int number = -1) {
    return refused_file(
        [&](const Hdf5File& file) {
          if (format != nullptr) file.text("/", "format", format);
          if (version != nullptr) file.text("/", "version", version);
          if (number >= 0) file.number("/", "version", H5T_STD_I64LE, H5T_NATIVE_INT, number);
        },
        false);
  };
  const char* const trace = "shardproof trace";
  EXPECT_EQ(says(trace, nullptr, 1), "");
  EXPECT_EQ(says(trace, "1"), "");
  for (const auto& [format, number] : {std::pair{trace, -1},
                                       {trace, 0},
                                       {trace, 2},
                                       {"shardproof-weights", 1},
                                       {static_cast<const char*>(nullptr), 1},
                                       {nullptr, -1}})
    EXPECT_EQ(says(format, nullptr, number), "dump_format") << number;
}

TEST(Hdf5Trace, HasShards) {
  const Dump dump = read_written([](const Hdf5File& file) {
    for (const char* chip : {"0_0_0", "1_0_2"}) {
      const std::string path = fmt::format("chips/{}/prefill.c0.out", chip);
      file.floats(path, {1}, {chip[0] == '1' ? 5.0F : 4.0F});
      file.text(path, "layout", "B_x", chip[0] == '1');
      file.number(path, "own", H5T_STD_I32LE, H5T_NATIVE_INT, chip[0] - '0');
    }
    file.floats("whole", {2}, {1, 2});
    file.floats("expected/whole", {2}, {1, 2});
  });
  const Value& value = dump.values.at("prefill.c0.out");
  EXPECT_TRUE(value.in_shards());
  EXPECT_EQ(value.attributes.at("layout"), "B_x");
  EXPECT_EQ(value.chips.at({1, 0, 2}).at(0), 5.0);
  EXPECT_EQ(value.chips.at({0, 0, 0}).at(0), 4.0);
  EXPECT_FALSE(dump.values.at("whole").in_shards());
  EXPECT_EQ(dump.values.size(), 2U);
  EXPECT_EQ(dump.ignored, std::vector<std::string>{"expected"});
}

TEST(Hdf5Trace, RefusesGroupsOfChipsAndLinks) {
  for (const char* path : {"chips/0_0/v", "chips/a/v", "chips/0_0_0_0/v", "chips/00_0_0/v", "chips",
                           "chips/0_0_0", "chips/0_0_0/twice"})
    EXPECT_EQ(refused_file([&](const Hdf5File& file) {
                file.floats("twice", {1}, {1});
                file.floats(path, {1}, {1});
              }),
              "dump_value")
        << path;
  const auto linked = [](auto link) {
    return refused_file([&](const Hdf5File& file) {
      file.group("chips");
      link(file.id());
    });
  };
  constexpr hid_t kDefault = H5P_DEFAULT;
  const char* const chip = "chips/0_0_0";
  EXPECT_EQ(linked([](hid_t f) { H5Lcreate_soft("/v", f, "s", kDefault, kDefault); }),
            "dump_value");
  EXPECT_EQ(
      linked([](hid_t f) { H5Lcreate_external("/etc/passwd", "/v", f, "e", kDefault, kDefault); }),
      "dump_value");
  EXPECT_EQ(linked([&](hid_t f) { H5Lcreate_soft("/", f, chip, kDefault, kDefault); }),
            "dump_value");
  // A loop of groups.
  EXPECT_EQ(linked([&](hid_t f) { H5Lcreate_hard(f, "chips", f, chip, kDefault, kDefault); }), "");
}

TEST(Hdf5Trace, RefusesDataThatLieElsewhere) {
  const Folder folder;
  const std::string other = (folder / "other").string();
  write_bytes(other, std::vector<char>(400));
  EXPECT_EQ(refused_file([&](const Hdf5File& file) {
              const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
              H5Pset_external(options.get(), other.c_str(), 0, 400);
              file.dataset_with("v", H5T_IEEE_F32LE, {100}, nullptr, options.get());
            }),
            "dump_value");
  EXPECT_EQ(refused_file([&](const Hdf5File& file) {
              const hsize_t extent = 4;
              const Hdf5Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
              const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
              H5Pset_virtual(options.get(), space.get(), other.c_str(), "v", space.get());
              file.dataset_with("v", H5T_IEEE_F32LE, {4}, nullptr, options.get());
            }),
            "dump_value");
  EXPECT_EQ(refused_file([&](const Hdf5File& file) {  // a filter other than those three
              const Hdf5Handle options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
              const hsize_t chunk = 100;
              H5Pset_chunk(options.get(), 1, &chunk);
              H5Pset_scaleoffset(options.get(), H5Z_SO_INT, 4);
              const std::vector<std::int32_t> zeros(100);
              file.dataset_with("v", H5T_STD_I32LE, {100}, zeros.data(), options.get());
            }),
            "dump_open");
}

TEST(Hdf5Trace, OfOurOwnWriterIsRead) {
  const Folder folder;
  Hdf5Writer writer(folder / "a.h5", "trace_c1");
  writer.root().put("format", "shardproof trace");
  writer.root().put("version", 1);
  const std::vector<float> values = {1, 2, 3, 4};
  writer.dataset(writer.root(), "v", {2, 2}, values, Hdf5Writer::Storage::checked);
  writer.write();
  EXPECT_EQ(numbers(read_dump(folder / "a.h5").values.at("v").whole),
            (std::vector<double>{1, 2, 3, 4}));
}

TEST(Hdf5Trace, MayFollowABlockOfTheWritersOwn) {
  const Folder folder;
  const Hdf5Handle options(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(options.get(), 1024);
  {
    const Hdf5Handle file(
        H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, options.get(), H5P_DEFAULT), H5Fclose);
    ASSERT_TRUE(file);
  }
  EXPECT_EQ(label_of([&] { read_dump(folder / "a.h5"); }), "dump_format");
}

}  // namespace
}  // namespace shardproof::dump
