// What is left at an interrupt and where a file may not grow.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "tests/tools/cli_fixture.h"

namespace {

class Files : public Cli {
 protected:
  /// The program, started and not waited for; its output is thrown away.
  pid_t start(std::vector<std::string> arguments, std::function<void()> first = {}) const {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child != 0) return child;
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, 1);
    ::dup2(nowhere, 2);
    if (::chdir(directory_.c_str()) != 0) ::_exit(99);
    if (first) first();
    std::vector<char*> words;
    arguments.insert(arguments.begin(), SHARDPROOF_CLI);
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    ::execv(SHARDPROOF_CLI, words.data());
    ::_exit(99);
  }

  /// Its exit code, or the negated signal that ended it.
  static int code_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

TEST_F(Files, AnInterruptWhileReadingEndsByItsCode) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const std::vector<std::vector<std::string>> all{{"run", "--prompt-file", "pipe"},
                                                  {"run", "--prompt-ids", "pipe"},
                                                  {"verify", "--program", "pipe"},
                                                  {"explain", "--program", "pipe"}};
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    for (const auto& arguments : all) {
      const pid_t child = start(arguments);
      // There is a reader, then, unless the program ended before.
      int writer = -1;
      siginfo_t ended{};
      while (writer < 0 && ended.si_pid == 0) {
        writer = ::open(path("pipe").c_str(), O_WRONLY | O_NONBLOCK);
        ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT),
                  0);
      }
      ::kill(child, signal);
      EXPECT_EQ(code_of(child), 128 + signal) << arguments[1];
      if (writer >= 0) ::close(writer);
    }
  EXPECT_EQ(files(), 1U);
}

TEST_F(Files, AnInterruptLeavesTheOldFileOrTheNew) {
  const std::vector<std::vector<std::string>> all{
      {"weights", "generate", "--model", "palm-tiny,F=768", "--out", "f.h5"},
      {"run", "--torus", "2x2x3", "--prefill", "ws2d:batch", "--trace", "f.h5"}};
  for (const auto& arguments : all) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(code_of(start(arguments)), 0);
    const auto whole = std::chrono::steady_clock::now() - begin;
    const std::string made = slurp(path("f.h5"));
    constexpr int kTimes = 18;
    for (int i = 0; i < kTimes; ++i) {
      const int signal = std::vector<int>{SIGINT, SIGTERM, SIGHUP}[static_cast<std::size_t>(i % 3)];
      const bool there = i % 2 == 0;
      fs::remove(path("f.h5"));
      if (there) write("f.h5", "old");
      const pid_t child = start(arguments);
      const auto delay =
          std::chrono::duration_cast<std::chrono::nanoseconds>(whole * (i + 1) / kTimes);
      const std::timespec wait{delay.count() / 1'000'000'000, delay.count() % 1'000'000'000};
      ::nanosleep(&wait, nullptr);
      ::kill(child, signal);
      // Before main has begun the signal does what it does by default.
      const int code = code_of(child);
      EXPECT_TRUE(code == 0 || code == 128 + signal || code == -signal) << code;
      if (fs::exists(path("f.h5"))) {
        const std::string now = slurp(path("f.h5"));
        EXPECT_TRUE((there && code != 0 && now == "old") || now == made) << code;
      } else {
        EXPECT_FALSE(there);
        EXPECT_NE(code, 0);
      }
      EXPECT_EQ(files(), fs::exists(path("f.h5")) ? 1U : 0U);
    }
    fs::remove(path("f.h5"));
  }
}

TEST_F(Files, ALimitOnAFilesSizeIsAnError) {
  const std::vector<std::vector<std::string>> all{
      {"weights", "generate", "--out", "f"},
      {"run", "--torus", "2x2x3", "--prefill", "ws2d:batch", "--trace", "f"},
      {"explain", "ws2d", "--svg", "f"}};
  for (const auto& arguments : all)
    for (const char* content : {"", "old"}) {
      fs::remove(path("f"));
      if (*content != '\0') write("f", content);
      const std::size_t before = files();
      const pid_t child = start(arguments, [] {
        std::signal(SIGXFSZ, SIG_DFL);
        const rlimit most{2000, 2000};
        ::setrlimit(RLIMIT_FSIZE, &most);
      });
      EXPECT_EQ(code_of(child), 2) << arguments[0];
      EXPECT_EQ(files(), before) << arguments[0];
      EXPECT_EQ(slurp(path("f")), content);
    }
}

}  // namespace
