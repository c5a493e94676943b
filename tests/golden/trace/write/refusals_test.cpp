// What no trace is made of: paths, sizes, disks.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "golden/trace/write/trace.h"
#include "tests/weights/folder.h"
#include "tests/weights/limited.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

std::string refusal(const Case& c, const fs::path& target) {
  try {
    Trace(make_typed_plan(c), target).write("complete");
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what;
  }
  return "";
}

TEST(Trace, RefusesPathsWhereNoFileCanBeMade) {
  const Folder folder;
  const Case c = parse_case("torus=2x1x1 prefill=ws1d");
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char* bad : {"folder", "pipe", "no/such/file", "new/"}) {
    EXPECT_EQ(refusal(c, folder / bad).rfind("trace_c1: ", 0), 0U) << bad;
    EXPECT_EQ(folder.names(), (std::set<std::string>{"folder", "pipe"})) << bad;
  }
  EXPECT_EQ(refusal(c, "/dev/full").rfind("trace_c1: ", 0), 0U);
  EXPECT_EQ(refusal(c, "").rfind("trace_c1: ", 0), 0U);
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
}

TEST(Trace, RefusesWhatDoesNotFitAndNamesTheSize) {
  const Folder folder;
  const std::string what = refusal(
      parse_case(
          "torus=8x8x8 model=palm-wide,layers=1000 prefill=ws2d:batch batch=5120 prompt=2000 "
          "gen=2"),
      folder / "t.h5");
  EXPECT_EQ(what.rfind("trace_c2: ", 0), 0U) << what;
  EXPECT_NE(what.find("GiB"), std::string::npos) << what;
  EXPECT_TRUE(folder.names().empty());
}

TEST(Trace, LeavesTheOldFileWhereTheDiskRefusesTheNew) {
  const Folder folder;
  std::ofstream(folder / "t.h5") << "old";
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::string what;
  {
    const Limited file_size(RLIMIT_FSIZE, 1024);
    what = refusal(parse_case("torus=2x1x1 prefill=ws1d"), folder / "t.h5");
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(what.rfind("trace_c1: ", 0), 0U) << what;
  EXPECT_NE(what.find("too large"), std::string::npos) << what;
  EXPECT_EQ(folder.names(), std::set<std::string>{"t.h5"});
  EXPECT_EQ(fs::file_size(folder / "t.h5"), 3U);
}

}  // namespace
}  // namespace shardproof
