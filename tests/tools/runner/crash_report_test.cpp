// A trace that is shortened while it is read ends the program with one line that names it.
#include "tools/runner/crash_report.h"

#include <gtest/gtest.h>
// gtest first
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "golden/trace/read/detail/mapped_file.h"
#include "golden/trace/read/dump.h"
#include "tests/tools/report/judged_dump.h"
#include "tests/weights/expect_error.h"

namespace shardproof::tools {
namespace {

namespace fs = std::filesystem;

class ShortenedTrace : public testing::Test {
 protected:
  ShortenedTrace() : path_(fs::temp_directory_path() / fmt::format("shortened{}", ::getpid())) {
    std::ofstream(path_) << std::string(kBytes, 'x');
    file_ = std::make_shared<const dump::MappedFile>(path_);
  }
  ~ShortenedTrace() override { fs::remove(path_); }

  void shorten() const { fs::resize_file(path_, 1); }
  int last_byte() const {
    const volatile std::byte* const at = file_->bytes().data() + kBytes - 1;
    return static_cast<int>(*at);
  }

  static constexpr std::size_t kBytes = 100'000;
  fs::path path_;
  std::shared_ptr<const dump::MappedFile> file_;
};
using ShortenedTraceDeathTest = ShortenedTrace;

TEST_F(ShortenedTraceDeathTest, EndsTheProgramWithOneLine) {
  EXPECT_EXIT(
      {
        report_crashes(dump::mapped_file_at);
        shorten();
        ::_exit(last_byte());
      },
      testing::ExitedWithCode(2),
      "^shardproof: dump_changed: \"[^\"\n]*shortened[0-9]+\" was shortened while it was "
      "read[^\n]*\n$");
}

// The library alone has no handler, and other crashes are reported as ever.
TEST_F(ShortenedTraceDeathTest, IsACrashWhereNoFileIsAsked) {
  EXPECT_EXIT(
      {
        report_crashes();
        shorten();
        ::_exit(last_byte());
      },
      testing::KilledBySignal(SIGBUS), "crashed by SIGBUS");
  EXPECT_EXIT(
      {
        report_crashes(dump::mapped_file_at);
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "crashed by SIGBUS");
}

TEST_F(ShortenedTrace, HasNoVerdict) {
  const JudgedDump dumps;
  dump::Dump dump = dumps.dump();
  dump.file = file_;
  EXPECT_EQ(label_of([&] { dumps.judged(dump); }), "");
  shorten();
  EXPECT_EQ(label_of([&] { dumps.judged(dump); }), "dump_changed");
}

}  // namespace
}  // namespace shardproof::tools
