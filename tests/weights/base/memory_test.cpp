#include "weights/base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "tests/weights/limited.h"

namespace shardproof {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

/// A root folder with the files that the kernel would have.
class Memory : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    write_bytes(path, {text.begin(), text.end()});
  }
  MemoryLimit limit() const { return memory_limit(root_.path()); }
  /// The limit in MiB, and the end of the file that it stands in.
  void expect(double mib, const std::string& file) const {
    const MemoryLimit found = limit();
    EXPECT_EQ(found.bytes, mib * kMiB) << found.name;
    EXPECT_NE(found.name.find((root_ / file).string()), std::string::npos) << found.name;
  }

  Folder root_;
  const double machine_ = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<double>(::sysconf(_SC_PAGE_SIZE));
};

TEST_F(Memory, IsTheMachinesWithoutControlGroups) {
  const double bytes = limit().bytes;
  EXPECT_LE(bytes, machine_);
  EXPECT_GT(bytes, 0.0);
  // Version 2 on a machine itself: no file at the mount, no limit in the group.
  put("proc/self/cgroup", "0::/user.slice/session\n");
  put("sys/fs/cgroup/user.slice/session/memory.max", "max\n");
  put("sys/fs/cgroup/user.slice/memory.max", "max\n");
  EXPECT_EQ(limit().bytes, bytes);
  // A limit above everything, as version 1 has it without one.
  put("proc/self/cgroup", "5:memory:/a\n");
  put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit().bytes, bytes);
}

TEST_F(Memory, OfVersionTwoTheLeastOfTheGroupAndItsParents) {
  put("proc/self/cgroup", "1:name=systemd:/else\n0::/a/b c/d\n");
  put("sys/fs/cgroup/a/b c/d/memory.max", "50331648\n");
  expect(48, "sys/fs/cgroup/a/b c/d/memory.max");
  put("sys/fs/cgroup/a/memory.max", "33554432\n");
  expect(32, "sys/fs/cgroup/a/memory.max");
  put("sys/fs/cgroup/a/b c/memory.max", "16777216");
  expect(16, "sys/fs/cgroup/a/b c/memory.max");
  put("sys/fs/cgroup/other/memory.max", "1\n");
  put("sys/fs/cgroup/else/memory.max", "1\n");
  expect(16, "sys/fs/cgroup/a/b c/memory.max");
}

TEST_F(Memory, InAContainerTheMountItself) {
  put("sys/fs/cgroup/memory.max", "33554432\n");
  expect(32, "sys/fs/cgroup/memory.max");  // no /proc
  for (const char* path : {"/", "/docker/0123abcd", "/../../x"}) {
    put("proc/self/cgroup", std::string("0::") + path + "\n");
    expect(32, "sys/fs/cgroup/memory.max");
  }
  fs::remove(root_ / "sys/fs/cgroup/memory.max");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "16777216\n");
  put("proc/self/cgroup", "4:memory:/docker/0123abcd\n");
  expect(16, "sys/fs/cgroup/memory/memory.limit_in_bytes");
}

TEST_F(Memory, OfVersionOneTheMemoryControllersGroup) {
  put("proc/self/cgroup",
      "12:pids:/p\n4:cpu,memory,io:/a/b\n3:memory_other:/x\n1:name=memory:/y\n0::/\n");
  put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "33554432\n");
  expect(32, "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes");
  put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "16777216\n");
  expect(16, "sys/fs/cgroup/memory/a/memory.limit_in_bytes");
  for (const char* other : {"x", "y", "p"})
    put(std::string("sys/fs/cgroup/memory/") + other + "/memory.limit_in_bytes", "1\n");
  expect(16, "sys/fs/cgroup/memory/a/memory.limit_in_bytes");
}

TEST_F(Memory, WhatIsNoNumberIsNoLimit) {
  const double bytes = limit().bytes;
  for (const char* text : {"", "\n", "max", "-1", "12x", "x12", "99999999999999999999999", "1.5"}) {
    put("sys/fs/cgroup/memory.max", text);
    EXPECT_EQ(limit().bytes, bytes) << text;
  }
  for (const char* text : {"", ":", "::", "0", "0:", "0::", "\n\n:::\n", "memory", ":memory:"}) {
    put("proc/self/cgroup", text);
    EXPECT_EQ(limit().bytes, bytes) << text;
  }
  fs::create_directories(root_ / "sys/fs/cgroup/a/memory.max");
  put("proc/self/cgroup", "0::/a\n");
  EXPECT_EQ(limit().bytes, bytes);
}

TEST_F(Memory, LimitsOfTheProcessCount) {
  if (!kMemoryCanBeLimited) GTEST_SKIP();
  for (const auto& [resource, name] :
       {std::pair{RLIMIT_AS, "ulimit -v"}, {RLIMIT_DATA, "ulimit -d"}}) {
    std::string within, beyond;
    MemoryLimit found;
    {
      const Limited less(resource, rlim_t{64} << 20);
      found = limit();
      within = message_of([] { require_memory(50.0 * kMiB); });
      beyond = message_of([] { require_memory(52.0 * kMiB); });
    }
    EXPECT_EQ(found.bytes, 64.0 * kMiB);
    EXPECT_NE(found.name.find(name), std::string::npos) << found.name;
    EXPECT_EQ(within, "");
    EXPECT_TRUE(beyond.starts_with("memory_c1: this needs about 52.0 MiB, the limit on "))
        << beyond;
    EXPECT_NE(beyond.find(std::string(name) + ") is 64.0 MiB; fewer chips"), std::string::npos)
        << beyond;
  }
}

TEST_F(Memory, TheMachineIsNamed) {
  const std::string message = message_of([&] { require_memory(1.0e18, "it needs", "so"); });
  EXPECT_TRUE(message.starts_with("memory_c1: it needs 931322574.6 GiB, the ")) << message;
  EXPECT_TRUE(message.ends_with(" GiB; so") || message.ends_with(" MiB; so")) << message;
}

}  // namespace
}  // namespace shardproof
