#include "weights/base/detail/replace_file.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "tests/weights/expect_error.h"
#include "tests/weights/folder.h"
#include "weights/base/detail/temporary_name.h"

namespace shardproof {
namespace {

constexpr std::string_view kNew = "new content";

std::string text_of(const fs::path& path) {
  const std::vector<char> bytes = bytes_of(path);
  return {bytes.begin(), bytes.end()};
}

void put(const fs::path& path, std::string_view text) {
  write_bytes(path, {text.begin(), text.end()});
}

mode_t mode_of(const fs::path& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & mode_t{07777};
}

std::string replace(const fs::path& path, std::string_view text = kNew) {
  return message_of([&] { replace_file(path, text, "label"); });
}

/// What `body` returns in a child process; -1 if it crashes.
int in_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 98;
    try {
      code = body();
    } catch (...) {
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#ifdef __x86_64__
constexpr unsigned kHere = AUDIT_ARCH_X86_64;
#else
constexpr unsigned kHere = AUDIT_ARCH_AARCH64;
#endif

template <std::size_t n>
bool filtered(std::array<sock_filter, n>& program) {
  const sock_fprog filter{n, program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Makes the system say that it has no files without a name. False if this process may not.
bool refuse_unnamed_files() {
  constexpr unsigned kUnnamed = O_TMPFILE & ~O_DIRECTORY;
  std::array<sock_filter, 8> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kHere, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kUnnamed, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  return filtered(program);
}

/// The same of names for files that have none.
bool refuse_names() {
  std::array<sock_filter, 6> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kHere, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_linkat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  return filtered(program);
}

enum class Unnamed { allowed, refused, stays_unnamed };

/// Each test with and without files that have no name, and where these cannot be given one.
class ReplaceFile : public testing::TestWithParam<Unnamed> {
 protected:
  /// Runs `body` in a child, where its failed expectations are printed and counted.
  static void run(const std::function<void()>& body) {
    const int code = in_child([&] {
      if (GetParam() == Unnamed::refused && !refuse_unnamed_files()) return 77;
      if (GetParam() == Unnamed::stays_unnamed && !refuse_names()) return 77;
      body();
      return HasFailure() ? 1 : 0;
    });
    if (code == 77) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(code, 0);
  }
};

INSTANTIATE_TEST_SUITE_P(Unnamed, ReplaceFile,
                         testing::Values(Unnamed::allowed, Unnamed::refused,
                                         Unnamed::stays_unnamed),
                         [](const auto& drawn) {
                           return drawn.param == Unnamed::allowed   ? "allowed"
                                  : drawn.param == Unnamed::refused ? "refused"
                                                                    : "stays_unnamed";
                         });

TEST_P(ReplaceFile, ANewFileGetsTheModeThatTheUmaskLeaves) {
  run([] {
    const Folder folder;
    for (mode_t umask : {0022U, 0077U, 0U}) {
      ::umask(umask);
      const fs::path path = folder / std::to_string(umask);
      EXPECT_EQ(replace(path), "");
      EXPECT_EQ(text_of(path), kNew);
      EXPECT_EQ(mode_of(path), 0666U & ~umask);
    }
    EXPECT_EQ(folder.entries(), 3);
  });
}

TEST_P(ReplaceFile, KeepsTheModeOfWhatItReplaces) {
  run([] {
    const Folder folder;
    const fs::path path = folder / "f";
    for (mode_t mode : {0600U, 0644U, 0640U, 0755U, 0666U, 02755U, 04711U}) {
      put(path, "old, and longer than the new content");
      ASSERT_EQ(::chmod(path.c_str(), mode), 0);
      EXPECT_EQ(replace(path), "");
      EXPECT_EQ(text_of(path), kNew);
      EXPECT_EQ(mode_of(path), mode);
    }
    EXPECT_EQ(folder.entries(), 1);
  });
}

TEST_P(ReplaceFile, KeepsTheOwnerWhereItMay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  run([] {
    const Folder folder;
    put(folder / "f", "old");
    ASSERT_EQ(::chown((folder / "f").c_str(), 1234, 2345), 0);
    EXPECT_EQ(replace(folder / "f"), "");
    struct stat found {};
    ASSERT_EQ(::stat((folder / "f").c_str(), &found), 0);
    EXPECT_EQ(found.st_uid, 1234U);
    EXPECT_EQ(found.st_gid, 2345U);
  });
}

TEST_P(ReplaceFile, RefusesWhatTheUserMayNotWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  run([] {
    constexpr uid_t kNobody = 65534;
    const Folder folder;
    ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
    fs::create_directory(folder / "closed");
    put(folder / "closed/f", "old");
    ASSERT_EQ(::chmod((folder / "closed/f").c_str(), 0666), 0);
    put(folder / "theirs", "old");
    ASSERT_EQ(::chmod((folder / "theirs").c_str(), 0644), 0);
    put(folder / "own", "old");
    ASSERT_EQ(::chmod((folder / "own").c_str(), 0444), 0);
    ASSERT_EQ(::chown((folder / "own").c_str(), kNobody, kNobody), 0);
    put(folder / "open", "old");
    ASSERT_EQ(::chmod((folder / "open").c_str(), 0646), 0);
    const int code = in_child([&] {
      if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)
        return 99;
      for (const char* name : {"theirs", "own", "closed/f", "closed/g"}) {
        EXPECT_NE(replace(folder / name).find("Permission denied"), std::string::npos) << name;
        EXPECT_EQ(label_of([&] { require_replaceable(folder / name, "early"); }), "early");
      }
      EXPECT_EQ(replace(folder / "open"), "");  // a new owner, who may not give it back
      EXPECT_EQ(replace(folder / "fresh"), "");
      return HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(code, 0);
    for (const char* name : {"theirs", "own", "closed/f"}) EXPECT_EQ(text_of(folder / name), "old");
    EXPECT_EQ(mode_of(folder / "open"), 0646U);
    EXPECT_EQ(folder.entries(), 5);
  });
}

TEST_P(ReplaceFile, WritesThroughSymbolicLinks) {
  run([] {
    const Folder folder;
    fs::create_directory(folder / "other");
    put(folder / "other/f", "old");
    fs::create_symlink("other/f", folder / "to_file");
    fs::create_symlink(folder / "to_file", folder / "to_link");
    fs::create_symlink("other/new", folder / "dangling");
    fs::create_symlink("dangling", folder / "to_dangling");
    EXPECT_EQ(replace(folder / "to_link"), "");
    EXPECT_EQ(replace(folder / "to_dangling"), "");
    EXPECT_EQ(text_of(folder / "other/f"), kNew);
    EXPECT_EQ(text_of(folder / "other/new"), kNew);
    for (const char* link : {"to_file", "to_link", "dangling", "to_dangling"})
      EXPECT_TRUE(fs::is_symlink(folder / link)) << link;
    EXPECT_EQ(folder.entries(), 5);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "other"), fs::directory_iterator()), 2);
    fs::create_symlink("round", folder / "round");
    fs::create_symlink("nowhere/f", folder / "lost");
    EXPECT_NE(replace(folder / "round").find("symbolic links"), std::string::npos);
    EXPECT_NE(replace(folder / "lost").find("No such file"), std::string::npos);
  });
}

TEST_P(ReplaceFile, ANameOfTheGreatestLengthAndARelativeOne) {
  run([] {
    const Folder folder;
    EXPECT_EQ(replace(folder / std::string(255, 'n')), "");
    EXPECT_EQ(replace(folder / std::string(255, 'n')), "");
    EXPECT_NE(replace(folder / std::string(256, 'n')), "");
    fs::current_path(folder.path());
    EXPECT_EQ(replace("relative"), "");
    EXPECT_EQ(replace("./relative"), "");
    EXPECT_EQ(folder.entries(), 2);
    for (const char* none : {"", ".", "..", "relative/", "relative/f", "none/f"})
      EXPECT_NE(replace(none), "") << none;
    EXPECT_EQ(folder.entries(), 2);
    fs::current_path("/");
  });
}

TEST_P(ReplaceFile, AFullDiskLeavesWhatWasThere) {
  run([] {
    const Folder folder;
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit whole{};
    ::getrlimit(RLIMIT_FSIZE, &whole);
    for (const char* name : {"there", "new"}) {
      if (std::string_view(name) == "there") put(folder / name, "old");
      const std::ptrdiff_t before = folder.entries();
      for (rlim_t most : {0U, 1U, 5000U}) {
        rlimit limit = whole;
        limit.rlim_cur = most;
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const std::string message = replace(folder / name, std::string(100000, 'x'));
        ::setrlimit(RLIMIT_FSIZE, &whole);
        EXPECT_NE(message.find("File too large"), std::string::npos) << message;
        EXPECT_EQ(folder.entries(), before);
      }
    }
    EXPECT_EQ(text_of(folder / "there"), "old");
  });
}

TEST(TemporaryName, IsUnpredictableAndGoesWithItsObject) {
  const Folder folder;
  std::string first;
  for (int i = 0; i < 2; ++i) {
    TemporaryName name(folder.path()), other(folder.path());
    EXPECT_NE(std::string(name.path()), other.path());
    EXPECT_NE(std::string(name.path()), first);
    first = name.path();
    EXPECT_GE(name.create([](const char* path) {
      put(path, "x");
      return 0;
    }),
              0);
    EXPECT_EQ(other.create([](const char*) { return -1; }), -1);
    EXPECT_EQ(folder.entries(), 1);
  }
  EXPECT_EQ(folder.entries(), 0);
  std::string kept;
  {
    TemporaryName name(folder.path());
    name.create([](const char* path) {
      put(path, "x");
      return 0;
    });
    kept = name.path();
    name.taken();
  }
  EXPECT_TRUE(fs::exists(kept));
}

TEST(TemporaryName, AnEndingProcessRemovesThemAndMakesNoMore) {
  const Folder folder;
  const auto make = [](const char* path) {
    put(path, "x");
    return 0;
  };
  const int code = in_child([&] {
    TemporaryName first(folder.path()), second(folder.path()), third(folder.path()),
        late(folder.path());
    first.create(make);
    second.create(make);
    third.create(make);
    third.taken();
    remove_temporaries();
    remove_temporaries();
    EXPECT_EQ(folder.entries(), 1);
    EXPECT_EQ(late.create(make), -1);
    EXPECT_EQ(errno, ECANCELED);
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(TemporaryName, AHandlerThatInterruptsTheCreatingRemovesIt) {
  const Folder folder;
  const int code = in_child([&] {
    std::signal(SIGALRM, [](int) { remove_temporaries(); });
    TemporaryName name(folder.path());
    name.create([](const char* path) {
      put(path, "x");
      ::raise(SIGALRM);
      return fs::exists(path) ? ::_exit(1), 0 : -1;
    });
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace shardproof
