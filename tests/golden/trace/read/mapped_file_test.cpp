// Files whose arrays are read where they are mapped: what happens to them meanwhile is seen.
#include "golden/trace/read/detail/mapped_file.h"

#include <gtest/gtest.h>
// gtest first
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "golden/trace/read/dump.h"
#include "tests/golden/trace/read/hdf5_file.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

/// A trace of one array, whose file is changed after it was read.
std::string after(std::size_t numbers, const std::function<void(const fs::path&)>& change) {
  const Folder folder;
  const fs::path path = folder / "a.h5";
  {
    const Hdf5File file(path);
    file.floats("v", {numbers}, std::vector<float>(numbers, 1.0F));
  }
  // Written long ago, so that a change has another time however coarse the clock is.
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const Dump dump = read_dump(path);
  change(path);
  return label_of([&] { require_unchanged(dump); });
}

void write_byte(const fs::path& path, std::ios::openmode mode) {
  std::ofstream(path, mode | std::ios::binary | std::ios::in).put('x');
}

TEST(MappedFile, IsRefusedIfItWasChanged) {
  constexpr std::size_t kMapped = 50'000, kCopied = 10;
  const auto longer = [](const fs::path& path) { write_byte(path, std::ios::app); };
  const auto shorter = [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); };
  const auto other = [](const fs::path& path) { write_byte(path, std::ios::openmode{}); };
  const auto touched = [](const fs::path& path) {
    fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1000));
  };
  for (const std::function<void(const fs::path&)>& change :
       std::vector<std::function<void(const fs::path&)>>{longer, shorter, other, touched}) {
    EXPECT_EQ(after(kMapped, change), "dump_changed");
    EXPECT_EQ(after(kCopied, change), "");
  }
  EXPECT_EQ(after(kMapped, [](const fs::path&) {}), "");
}

// Another file under its name leaves the one that was read as it is.
TEST(MappedFile, MayBeReplaced) {
  EXPECT_EQ(after(50'000, [](const fs::path& path) { fs::remove(path); }), "");
  EXPECT_EQ(after(50'000,
                  [](const fs::path& path) {
                    std::ofstream(path.string() + "2").put('x');
                    fs::rename(path.string() + "2", path);
                  }),
            "");
}

TEST(MappedFile, IsFoundByItsAddressesAlone) {
  const Folder folder;
  std::array<std::optional<MappedFile>, 2> files;
  for (const std::size_t i : {0U, 1U}) {
    const fs::path path = folder / fmt::format("{}\n", i);
    std::ofstream(path) << std::string(10'000, 'x');
    files[i].emplace(path);
  }
  const auto bytes = files[1]->bytes();
  ASSERT_EQ(bytes.size(), 10'000U);
  const std::string name = fmt::format("{:?}", (folder / "1\n").string());
  EXPECT_EQ(mapped_file_at(bytes.data()), name);
  EXPECT_EQ(mapped_file_at(bytes.data() + bytes.size() - 1), name);
  EXPECT_NE(mapped_file_at(files[0]->bytes().data()), name);
  EXPECT_EQ(mapped_file_at(&files), nullptr);
  EXPECT_EQ(mapped_file_at(nullptr), nullptr);
  const std::byte* const gone = bytes.data();
  files[1].reset();
  EXPECT_EQ(mapped_file_at(gone), nullptr);
}

}  // namespace
}  // namespace shardproof::dump
