// How `verify` ends before its time, and what it shows until then.
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>

#include <array>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>
#include <tuple>

#include "golden/cases/cases.h"
#include "tests/tools/cli_fixture.h"
#include "tests/tools/verify_output.h"

namespace {

/// Cases without an end, which begin at once: the matrix makes the plans of all its rows first.
const std::string kEndless = "verify --cases 1000000 --seed 3";

class VerifyEnds : public Cli {
 protected:
  /// Starts the program with its outputs in two files, waits until `ready` of what it has written
  /// to standard output and error, sends `signal`; how it ended.
  Outcome interrupted(const std::string& arguments, int signal,
                      const std::function<bool(const std::string&)>& ready) const {
    const std::string out = path("child.out").string();
    const std::string err = path("child.err").string();
    const std::string command =
        "ulimit -c 0; exec '" SHARDPROOF_CLI "' " + arguments + " >'" + out + "' 2>'" + err + "'";
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    int status = 0;
    bool sent = false;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (!sent && ready(slurp(out) + slurp(err))) {
        ::kill(child, signal);
        sent = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(sent) << "it ended before the signal";
    Outcome outcome{.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
                    .out = slurp(out),
                    .err = slurp(err)};
    fs::remove(out);
    fs::remove(err);
    return outcome;
  }
};

TEST_F(VerifyEnds, AnInterruptPrintsTheTotalsSoFar) {
  const auto some_rows = [](const std::string& said) { return rows(said) >= 3; };
  const std::string all = std::to_string(shardproof::cases::standard_matrix().size());
  for (const auto& [arguments, of, signal, code, name] :
       {std::tuple{std::string("verify --all"), all, SIGINT, 130, "SIGINT"},
        {kEndless, "1000000", SIGINT, 130, "SIGINT"},
        {kEndless, "1000000", SIGTERM, 143, "SIGTERM"},
        {kEndless, "1000000", SIGHUP, 129, "SIGHUP"}}) {
    const Outcome o = interrupted(arguments, signal, some_rows);
    EXPECT_EQ(o.code, code) << o.out << o.err;
    const std::size_t done = rows(o.out);
    EXPECT_NE(o.out.find("\ninterrupted by " + std::string(name) + " after " +
                         std::to_string(done) + " of " + of + " cases: " + std::to_string(done) +
                         " equal, 0 different, 0 not judged, 0 refused\n"),
              std::string::npos)
        << o.out;
    EXPECT_EQ(count_of(o.out, "interrupted by"), 1U);
  }
}

TEST_F(VerifyEnds, AnInterruptDuringTheLastPrintingLosesNothing) {
  // All is judged, but the pipe is full; the interrupt comes before anybody reads.
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const std::string file = SHARDPROOF_CLI;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::close(pipe[0]);
    ::close(pipe[1]);
    ::execl(file.c_str(), file.c_str(), "verify", "--cases", "100", "--seed", "1", "--json",
            nullptr);
    ::_exit(127);
  }
  ::close(pipe[1]);
  int dumped = 0;
  const auto is_full = [&] { return ::ioctl(pipe[0], FIONREAD, &dumped) == 0 && dumped >= 65536; };
  while (!is_full()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(child, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::string said;
  std::array<char, 4096> bytes{};
  for (ssize_t n; (n = ::read(pipe[0], bytes.data(), bytes.size())) > 0;)
    said.append(bytes.data(), static_cast<std::size_t>(n));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 130);
  EXPECT_EQ(nlohmann::json::parse(said)["cases"].size(), 100U);
}

TEST_F(VerifyEnds, AnInterruptEndsJsonWhole) {
  // JSON shows nothing before its end, so how far the run has come can only be tried.
  Outcome o{.code = 0, .out = "", .err = ""};
  for (int polls = 50; o.out.empty() && polls < 10'000; polls *= 2) {
    o = interrupted(kEndless + " --json", SIGINT,
                    [polls, n = 0](const std::string&) mutable { return ++n > polls; });
    EXPECT_EQ(o.code, 130) << o.out << o.err;
  }
  const auto json = nlohmann::json::parse(o.out);
  EXPECT_EQ(json["interrupted"], "SIGINT");
  EXPECT_EQ(json["held"], false);
  EXPECT_EQ(json["totals"]["equal"], json["cases"].size());
}

TEST_F(VerifyEnds, ACrashNamesWhatWasRunning) {
  const auto some_rows = [](const std::string& said) { return rows(said) >= 3; };
  // A signal from outside comes at any moment, also while every thread draws a case, which is named
  // by its number, or prints one, when nothing runs; a case's own crash comes while the case runs.
  const auto names = [](const Outcome& o, const std::string& what) {
    return o.err.find(what) != std::string::npos;
  };
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    bool named = false;
    for (int tries = 0; tries < 20 && !named; ++tries) {
      const Outcome o = interrupted(kEndless, signal, some_rows);
      EXPECT_NE(o.code, 0);
      EXPECT_TRUE(names(o, "\nshardproof: crashed by SIG")) << o.err;
      named = names(o, "shardproof verify --case \"torus=");
      EXPECT_TRUE(named || names(o, "shardproof verify --cases ") || !names(o, "reproduce: "))
          << o.err;
    }
    EXPECT_TRUE(named) << signal;
  }
}

TEST_F(VerifyEnds, ATerminalSeesProgressFromTheFirstSecond) {
  // What standard error shows; the run is interrupted once it shows progress.
  const auto seen = [](const std::string& arguments) {
    int terminal = 0;
    const std::string command = "exec '" SHARDPROOF_CLI "' " + arguments + " >/dev/null";
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    std::string said;
    std::array<char, 4096> bytes{};
    for (ssize_t n; (n = ::read(terminal, bytes.data(), bytes.size())) > 0;) {
      if (said.empty()) ::kill(child, SIGINT);
      said.append(bytes.data(), static_cast<std::size_t>(n));
    }
    ::close(terminal);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, said.empty() ? 0 : 130) << said;
    return said;
  };
  for (const std::string& arguments :
       {std::string("verify"), kEndless + " --json", kEndless + " --quiet"}) {
    const std::string said = seen(arguments);
    EXPECT_TRUE(std::regex_search(said, std::regex("\r\x1b\\[K[0-9]+ of [0-9]+ cases, [0-9]+ s")))
        << said;
    EXPECT_TRUE(said.ends_with("\r\x1b[K")) << said;
  }
  EXPECT_EQ(seen("verify --torus 1x1x1 --model palm-tiny,E=8,F=8,H=8,Q=2,V=8"), "");
}

}  // namespace
