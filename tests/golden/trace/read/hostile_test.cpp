// Files that are damaged or made to harm: each ends in an Error or in a trace, in little memory.
#include <gtest/gtest.h>
// gtest first
#include <fmt/format.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "golden/trace/read/dump.h"
#include "tests/golden/trace/read/hdf5_file.h"
#include "tests/golden/trace/read/npz_file.h"
#include "tests/sanitized.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

std::string fate(const fs::path& path) {
  return message_of([&] { read_dump(path); });
}

/// What became of files that were changed: how many were traces still, and how often each label.
struct Fates {
  std::map<std::string, int> labels;
  int died = 0;

  void add(const fs::path& path) {
    const std::string what = fate(path);
    const std::string label = what.substr(0, what.find(':'));
    ++labels[label];
    died += what.find("the reader ended by") != std::string::npos ||
                    what.find("the reader ended with") != std::string::npos ||
                    what.find("the reader took") != std::string::npos
                ? 1
                : 0;
    EXPECT_TRUE(what.empty() || label == "dump_open" || label == "dump_format" ||
                label == "dump_value" || label == "dump_size")
        << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    EXPECT_LT(what.size(), 2000U) << what;
  }

  void show(const auto& file) const {
    std::cout << fmt::format("{}, 1 in {} of {} bytes", file.name, file.stride, file.bytes.size());
    for (const auto& [label, count] : labels)
      std::cout << fmt::format("  {}: {}", label.empty() ? "a trace" : label, count);
    std::cout << fmt::format("  (of them a dead reader: {})\n", died);
  }
};

std::string small_npz() {
  return described(
             R"({"format":"shardproof trace","version":1,"values":{"v":{"encoding":"bf16"}}})")
      .add("v.npy", npy("|V2", "(2,)", little(0, 4)))
      .add("chips/0_0_1/w.npy", npy("<f4", "(2, 1)", little(0, 8)), true)
      .bytes();
}

std::string small_hdf5(bool newest) {
  const Folder folder;
  {
    const Hdf5File file(folder / "a.h5", true, newest);
    const std::vector<float> values(8, 1.5F);
    file.dataset("v", H5T_IEEE_F32LE, {4, 2}, values.data(),
                 {.chunk = {2, 2}, .gzip = true, .shuffle = true, .fletcher32 = true});
    file.text("v", "layout", "BE");
    file.floats("chips/0_0_1/w", {2}, {1, 2});
  }
  const std::vector<char> bytes = shardproof::bytes_of(folder / "a.h5");
  return {bytes.begin(), bytes.end()};
}

/// A small file of each kind, and how many steps a test takes of those that it has.
struct Small {
  const char* name;
  std::string bytes;
  std::size_t stride;
};
std::vector<Small> small_files() {
  constexpr std::size_t kSlower = kSanitized ? 16 : 1;
  return {{"npz", small_npz(), kSlower},
          {"HDF5 of the newest format", small_hdf5(true), 3 * kSlower},
          // Most of it are zeros.
          {"HDF5 of the oldest format", small_hdf5(false), 17 * kSlower}};
}

// libzip and what reads npz never die; Debian's HDF5 may, and its child with it.
TEST(Hostile, ATruncatedFileIsRefused) {
  const Folder folder;
  const fs::path path = folder / "a";
  for (const Small& file : small_files()) {
    write_text(path, file.bytes);
    EXPECT_EQ(fate(path), "");
    Fates fates;
    for (std::size_t length = 0; length < file.bytes.size(); length += file.stride) {
      write_text(path, file.bytes.substr(0, length));
      fates.add(path);
    }
    fates.show(file);
    EXPECT_EQ(fates.labels.count(""), 0U);
    if (file.name == std::string("npz")) {
      EXPECT_EQ(fates.died, 0);
    }
  }
}

TEST(Hostile, AChangedByteDoesNoHarm) {
  const Folder folder;
  const fs::path path = folder / "a";
  for (const Small& file : small_files()) {
    constexpr std::array<unsigned, 3> kChanges = {0x01, 0x80, 0xFF};
    Fates fates;
    std::size_t turn = 0;
    for (std::size_t at = 0; at < file.bytes.size(); at += file.stride) {
      std::string changed = file.bytes;
      changed[at] =
          static_cast<char>(static_cast<unsigned char>(changed[at]) ^ kChanges[turn++ % 3]);
      write_text(path, changed);
      fates.add(path);
    }
    fates.show(file);
    if (file.name == std::string("npz")) {
      EXPECT_EQ(fates.died, 0);
    }
  }
}

/// The most memory that this process, or any child that it has waited for, had at a time.
double peak_mib(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

/// That a file is refused as too large, in little memory.
void expect_too_large(const fs::path& path) {
  EXPECT_LT(fs::file_size(path), std::uintmax_t{2} << 20);
  const double before = peak_mib(RUSAGE_SELF);
  EXPECT_EQ(fate(path).substr(0, 10), "dump_size:") << fate(path);
  if (kSanitized) return;
  EXPECT_LT(peak_mib(RUSAGE_SELF), before + 80.0);
  EXPECT_LT(peak_mib(RUSAGE_CHILDREN), before + 80.0);
}

TEST(Hostile, DeclaredGigabytesAreRefusedUnread) {
  const Folder folder;
  const fs::path path = folder / "a";
  for (const char* shape : {"(1000000000,)", "(17000000,)", "(4611686018427387904, 4)",
                            "(9223372036854775807, 9223372036854775807)"}) {
    write_text(path, described().add("v.npy", npy("<f4", shape, "")).bytes());
    expect_too_large(path);
  }
  write_text(path, described().add("v.npy", npy("<f4", "(16000000,)", "")).bytes());
  EXPECT_EQ(fate(path).substr(0, 10), "dump_open:");
  write_text(path, ZipFile().add("shardproof.npy", npy("|S1000000000", "()", "")).bytes());
  expect_too_large(path);
  for (const bool chunked : {false, true}) {
    {
      const Hdf5File file(path);
      Hdf5File::Storage storage;
      if (chunked)
        storage = {.chunk = {1 << 20}, .gzip = true, .shuffle = false, .fletcher32 = false};
      file.dataset("v", H5T_IEEE_F32LE, {hsize_t{1} << 33}, nullptr, storage);
    }
    expect_too_large(path);
  }
}

TEST(Hostile, BombsAreRefused) {
  const Folder folder;
  const fs::path path = folder / "a";
  const std::string zeros(std::size_t{80} << 20, '\0');
  write_text(path, described().add("v.npy", npy("|i1", "(83886080,)", zeros), true).bytes());
  expect_too_large(path);
  {  // members that are each within the bound
    ZipFile file = described();
    for (int i = 0; i < 9; ++i)
      file.add(fmt::format("v{}.npy", i), npy("|i1", "(8388608,)", zeros.substr(0, 8U << 20)),
               true);
    write_text(path, file.bytes());
    expect_too_large(path);
  }
  {  // a header that says little, and a stream that goes on
    write_text(path, described().add("v.npy", npy("|i1", "(1,)", zeros), true).bytes());
    EXPECT_EQ(fate(path).substr(0, 10), "dump_open:");
  }
  {
    const Hdf5File file(path);
    file.dataset("v", H5T_STD_I8LE, {80U << 20}, zeros.data(),
                 {.chunk = {1 << 20}, .gzip = true, .shuffle = false, .fletcher32 = false});
  }
  expect_too_large(path);
  {  // one dataset under many names
    const Hdf5File file(path);
    file.dataset("v", H5T_STD_I8LE, {8U << 20}, zeros.data(),
                 {.chunk = {1 << 20}, .gzip = true, .shuffle = false, .fletcher32 = false});
    for (int i = 0; i < 20; ++i)
      H5Lcreate_hard(file.id(), "v", file.id(), fmt::format("v{}", i).c_str(), H5P_DEFAULT,
                     H5P_DEFAULT);
  }
  expect_too_large(path);
  {  // JSON that takes much more than its text
    std::string json = R"({"format": "shardproof trace", "version": 1, "a": [)";
    while (json.size() < (900U << 10)) json += "{},";
    write_text(path, described(json + "0]}").bytes());
    const std::string what = fate(path);
    EXPECT_EQ(what.substr(0, 11), "dump_value:") << what;  // its text is too long
  }
}

TEST(Hostile, WhatIsNoFileOrNoTrace) {
  const Folder folder;
  EXPECT_EQ(fate(folder / "none"),
            fmt::format("dump_open: {:?}: No such file or directory", (folder / "none").string()));
  EXPECT_NE(fate(folder.path()).find("is not a regular file"), std::string::npos);
  EXPECT_NE(fate("/dev/null").find("is not a regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(fate(folder / "pipe").find("is not a regular file"), std::string::npos);
  write_text(folder / "a", "");
  EXPECT_NE(fate(folder / "a").find("is empty"), std::string::npos);
  for (const char* text : {"x", "PK", "PK\3\4", "\x89HDF\r\n\x1a\n", "some text\n", "\x93NUMPY"}) {
    write_text(folder / "a", text);
    EXPECT_EQ(fate(folder / "a").substr(0, 10), "dump_open:") << text;
  }
  write_text(folder / "a", npy("<f4", "()", little(0, 4)));
  EXPECT_NE(fate(folder / "a").find("numpy.savez"), std::string::npos);
}

}  // namespace
}  // namespace shardproof::dump
