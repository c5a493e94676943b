// What ends the process at a signal, each time in a child that does nothing else.
#include "tools/command/interrupt.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace shardproof::tools {
namespace {

struct Ended {
  int code = -1;
  std::string said;
};

void say(int to, const std::string& text) {
  if (::write(to, text.data(), text.size()) < 0) std::abort();
}

/// A child that runs `body` with the end of a pipe to write into; its exit code, -1 for a crash.
Ended in_child(const std::function<void(int)>& body) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    body(pipe[1]);
    std::exit(99);
  }
  ::close(pipe[1]);
  Ended ended;
  for (char c = 0; ::read(pipe[0], &c, 1) == 1;) ended.said += c;
  ::close(pipe[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

[[noreturn]] void wait_for_the_end() {
  for (;;) ::pause();
}

TEST(Interrupt, EachSignalReportsAndEndsByItsCode) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Ended ended = in_child([signal](int out) {
      std::signal(signal, SIG_DFL);  // a test may itself run with it ignored
      watch_interrupts();
      const AtInterrupt outer([&](int) { say(out, "outer "); });
      {
        const AtInterrupt gone([&](int) { say(out, "gone "); });
      }
      const AtInterrupt broken([](int) { throw 1; });
      const AtInterrupt inner([&](int taken) { say(out, std::to_string(taken) + " inner "); });
      ::kill(::getpid(), signal);
      wait_for_the_end();
    });
    EXPECT_EQ(ended.code, 128 + signal);
    EXPECT_EQ(ended.said, std::to_string(signal) + " inner outer ");
  }
}

TEST(Interrupt, ASecondSignalEndsAtOnce) {
  const Ended ended = in_child([](int out) {
    for (int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    watch_interrupts();
    const AtInterrupt endless([&](int) {
      say(out, "begun");
      ::kill(::getpid(), SIGTERM);
      wait_for_the_end();
    });
    ::kill(::getpid(), SIGINT);
    wait_for_the_end();
  });
  EXPECT_EQ(ended.code, 128 + SIGTERM);
  EXPECT_EQ(ended.said, "begun");
}

TEST(Interrupt, NothingElseEndsTheProcessOnceAReportHasBegun) {
  for (bool returns : {false, true}) {
    const Ended ended = in_child([returns](int out) {
      std::signal(SIGINT, SIG_DFL);
      watch_interrupts();
      std::array<int, 2> begun{};
      if (::pipe(begun.data()) != 0) std::abort();
      const auto slow = [&](int) {
        say(begun[1], "x");
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        say(out, "whole");
      };
      static const AtInterrupt forever(slow);  // one that main leaves behind
      ::kill(::getpid(), SIGINT);
      char x = 0;
      if (::read(begun[0], &x, 1) != 1) std::abort();
      if (returns) std::exit(0);
      {
        const AtInterrupt late([](int) {});
      }
      std::exit(0);
    });
    EXPECT_EQ(ended.code, 128 + SIGINT) << returns;
    EXPECT_EQ(ended.said, "whole") << returns;
  }
}

TEST(Interrupt, WhatIsIgnoredStaysIgnored) {
  const Ended ended = in_child([](int) {
    std::signal(SIGTERM, SIG_DFL);
    for (int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
    watch_interrupts();
    ::raise(SIGINT);
    ::kill(::getpid(), SIGHUP);
    std::exit(7);
  });
  EXPECT_EQ(ended.code, 7);
}

}  // namespace
}  // namespace shardproof::tools
