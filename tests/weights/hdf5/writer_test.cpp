// What is written and read back; files of others, hostile ones too, are store_test's.
#include "weights/hdf5/detail/writer.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstring>
#include <filesystem>
#include <limits>
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
    const Hdf5Reader file(folder / "one.h5", "read_c1");
    EXPECT_EQ(file.size(), fs::file_size(folder / "one.h5"));
    EXPECT_EQ(file.text("text"), "two words");
    EXPECT_EQ(file.text("empty"), "");
    EXPECT_EQ(file.text("number"), std::nullopt) << "no text";
    EXPECT_EQ(file.text("nothing"), std::nullopt);
    EXPECT_EQ(file.integer("number"), -7);
    EXPECT_EQ(file.integer("text"), std::nullopt) << "no integer";
    EXPECT_TRUE(file.has("text"));
    EXPECT_FALSE(file.has("nothing"));
    std::vector<std::string> names;
    for (const Hdf5Reader::Link& link : file.links()) {
      EXPECT_TRUE(link.hard);
      names.push_back(link.name);
    }
    EXPECT_EQ(names.size(), 3U);
    EXPECT_FALSE(file.dataset("group").has_value());
    EXPECT_EQ(label_of([&] { file.dataset("nothing"); }), "read_c1");

    const auto f32 = file.dataset("f32");
    ASSERT_TRUE(f32);
    EXPECT_TRUE(f32->is_f32());
    EXPECT_TRUE(f32->is_inside());
    EXPECT_EQ(f32->text("dims"), "BE");
    EXPECT_EQ(f32->shape(), (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(f32->chunk().empty(), storage == Hdf5Writer::Storage::plain);
    EXPECT_EQ(f32->inflation_fault({2, 3}), "");
    std::vector<float> read(6);
    EXPECT_FALSE(f32->read(read));
    EXPECT_EQ(std::memcmp(read.data(), kFloats.data(), 24), 0);
    EXPECT_EQ(file.dataset("none")->shape(), (std::vector<std::uint64_t>{0, 4}));

    const auto f64 = file.dataset("group/f64");
    EXPECT_FALSE(f64->is_f32());
    EXPECT_EQ(f64->element_bytes(), 8U);
    const auto ids = file.dataset("group/ids");
    EXPECT_EQ(ids->element_bytes(), 4U);
    std::vector<float> as_f32(3);
    EXPECT_FALSE(ids->read(as_f32));
    EXPECT_EQ(as_f32, (std::vector<float>{7, -1, 0}));
  }
  EXPECT_EQ(H5Fget_obj_count(hid_t{H5F_OBJ_ALL}, H5F_OBJ_ALL), 0) << "all is closed";
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
