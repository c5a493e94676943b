// What is written and read back; files of others, hostile ones too, are store_test's.
#include "weights/hdf5/detail/writer.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <vector>

#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "weights/hdf5/detail/reader.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

const std::vector<float> kFloats{1.5F, -0.0F, std::numeric_limits<float>::infinity(), 3, 4, 5};

void write_one(const fs::path& path, Hdf5Writer::Storage storage = Hdf5Writer::Storage::plain) {
  Hdf5Writer file(path, "made_c1");
  {
    const Hdf5Writer::Object root = file.root();
    root.put("text", "two words");
    root.put("empty", "");
    root.put("number", -7);
    const Hdf5Writer::Object group = file.group(root, "group");
    group.put("share", 0.25);
    Hdf5Writer::Object data =
        file.dataset(root, "f32", {2, 3}, std::span<const float>(kFloats), storage);
    data.put("dims", "BE");
    data.close();
    const std::vector<double> wide{1e300, -2.0};
    file.dataset(group, "f64", {2}, std::span<const double>(wide));
    const std::vector<std::int32_t> ids{7, -1, 0};
    file.dataset(group, "ids", {3, 1}, std::span<const std::int32_t>(ids))
        .put("shape", Shape{3, 1});
    file.dataset(root, "none", {0, 4}, std::span<const float>());
  }
  file.write();
}

TEST(Hdf5, ReadsBackWhatWasWritten) {
  const Folder folder;
  for (const auto storage : {Hdf5Writer::Storage::plain, Hdf5Writer::Storage::checked}) {
    write_one(folder / "one.h5", storage);
    const Hdf5Silence silence;
    const Hdf5Object file(
        {H5Fopen((folder / "one.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose}, "read_c1",
        "it");
    const auto texts = [](const Hdf5Object& of, const char* name, std::size_t longest = 9) {
      return of.attribute(name, "it").texts(longest);
    };
    using Texts = std::vector<std::string>;
    EXPECT_EQ(texts(file, "text"), Texts{"two words"});
    EXPECT_EQ(texts(file, "text", 8), std::nullopt) << "longer";
    EXPECT_EQ(texts(file, "empty"), Texts{""});
    const Hdf5Attribute number = file.attribute("number", "it");
    EXPECT_EQ(number.kind(), H5T_INTEGER);
    EXPECT_EQ(number.rank(), 0);
    EXPECT_EQ(number.numbers<std::int64_t>(H5T_NATIVE_INT64), std::vector<std::int64_t>{-7});
    EXPECT_EQ(number.numbers<std::int8_t>(H5T_NATIVE_INT8), std::nullopt) << "of more bytes";
    EXPECT_TRUE(file.has("text"));
    EXPECT_FALSE(file.has("nothing"));
    EXPECT_EQ(label_of([&] { file.attribute("nothing", "it"); }), "read_c1");
    EXPECT_EQ(file.attributes().size(), 3U);
    EXPECT_EQ(file.links().size(), 3U);
    for (const Hdf5Object::Link& link : file.links()) EXPECT_TRUE(link.hard);
    EXPECT_TRUE(file.object("group", "it").is(H5I_GROUP));
    EXPECT_EQ(label_of([&] { file.object("nothing", "it"); }), "read_c1");

    const auto dataset = [&](const char* name) { return Hdf5Dataset(file.object(name, "it")); };
    using Extents = std::vector<hsize_t>;
    const Hdf5Dataset f32 = dataset("f32");
    EXPECT_TRUE(f32.is(H5I_DATASET));
    EXPECT_GT(H5Tequal(f32.type(), H5T_IEEE_F32LE), 0);
    EXPECT_TRUE(f32.is_inside());
    EXPECT_EQ(texts(f32, "dims"), Texts{"BE"});
    EXPECT_EQ(f32.extents(), (Extents{2, 3}));
    EXPECT_EQ(f32.chunks().extents.empty(), storage == Hdf5Writer::Storage::plain);
    EXPECT_EQ(f32.inflation_fault(), "");
    std::vector<float> read(6);
    EXPECT_FALSE(f32.read_rows(0, 2, H5T_NATIVE_FLOAT, read.data()));
    EXPECT_EQ(std::memcmp(read.data(), kFloats.data(), 24), 0);
    EXPECT_FALSE(f32.read_rows(1, 1, H5T_NATIVE_FLOAT, read.data()));
    EXPECT_EQ(std::memcmp(read.data(), kFloats.data() + 3, 12), 0) << "the second row";
    EXPECT_TRUE(f32.read_rows(1, 2, H5T_NATIVE_FLOAT, read.data())) << "no such row";
    EXPECT_EQ(dataset("none").extents(), (Extents{0, 4}));

    const Hdf5Dataset f64 = dataset("group/f64");
    EXPECT_EQ(H5Tequal(f64.type(), H5T_IEEE_F32LE), 0);
    EXPECT_EQ(f64.element_bytes(), 8U);
    const Hdf5Dataset ids = dataset("group/ids");
    EXPECT_EQ(ids.element_bytes(), 4U);
    std::vector<float> as_f32(3);
    EXPECT_FALSE(ids.read_rows(0, 3, H5T_NATIVE_FLOAT, as_f32.data()));
    EXPECT_EQ(as_f32, (std::vector<float>{7, -1, 0}));
  }
  EXPECT_EQ(H5Fget_obj_count(hid_t{H5F_OBJ_ALL}, H5F_OBJ_ALL), 0) << "all is closed";
}

TEST(Hdf5, HoldsADatasetOfTheSameBitsAlone) {
  const Folder folder;
  const Hdf5Writer file(folder / "one.h5", "made_c1");
  const Hdf5Writer::Object root = file.root();
  const std::vector<float> one{3.0F};
  file.dataset(root, "f32", {2, 3}, std::span<const float>(kFloats));
  file.dataset(root, "scalar", {}, std::span<const float>(one));
  file.dataset(root, "none", {0, 4}, std::span<const float>());
  EXPECT_TRUE(file.holds("f32", {2, 3}, std::span<const float>(kFloats)));
  EXPECT_TRUE(file.holds("scalar", {}, std::span<const float>(one)));
  EXPECT_TRUE(file.holds("none", {0, 4}, std::span<const float>()));
  EXPECT_FALSE(file.holds("f64", {2, 3}, std::span<const float>(kFloats))) << "no such name";
  for (std::size_t i = 0; i < kFloats.size(); ++i) {
    std::vector<float> other = kFloats;
    other[i] = i == 1 ? 0.0F : std::nextafter(other[i], 0.0F);  // the zero of the other sign
    EXPECT_FALSE(file.holds("f32", {2, 3}, std::span<const float>(other))) << i;
  }
  EXPECT_FALSE(file.holds("f32", {3, 2}, std::span<const float>(kFloats)));
  EXPECT_FALSE(file.holds("f32", {6}, std::span<const float>(kFloats)));
  std::vector<std::int32_t> bits(kFloats.size());
  std::memcpy(bits.data(), kFloats.data(), bits.size() * sizeof bits[0]);
  EXPECT_FALSE(file.holds("f32", {2, 3}, std::span<const std::int32_t>(bits))) << "another type";
}

TEST(Hdf5, WritesNothingUnlessAllIsWritten) {
  const Folder folder;
  {
    const Hdf5Writer file(folder / "one.h5", "made_c1");
    file.root().put("text", "lost");
  }
  EXPECT_EQ(folder.entries(), 0);
  EXPECT_EQ(label_of([&] { write_one(folder / "no/such/folder.h5"); }), "made_c1");
  EXPECT_EQ(folder.entries(), 0);
  EXPECT_EQ(H5Fget_obj_count(hid_t{H5F_OBJ_ALL}, H5F_OBJ_ALL), 0) << "all is closed";
}

TEST(Hdf5, NamesTheTargetOfWhatIsRefused) {
  const Folder folder;
  const Hdf5Writer file(folder / "one.h5", "made_c1");
  const Hdf5Writer::Object root = file.root();
  file.group(root, "twice");
  const std::string what = message_of([&] { file.group(root, "twice"); });
  EXPECT_TRUE(what.starts_with("made_c1: ")) << what;
  EXPECT_NE(what.find("one.h5\": "), std::string::npos) << what;
  root.put("text", "once");
  EXPECT_EQ(label_of([&] { root.put("text", "twice"); }), "made_c1");
}

}  // namespace
}  // namespace shardproof
