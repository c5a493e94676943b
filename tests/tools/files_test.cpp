// What the program reads and writes: files, pipes and devices, and what is left at an interrupt.
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
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/cli_fixture.h"

namespace {

class Files : public Cli {
 protected:
  /// Refused by `run --prompt-KIND` as a text of this content, by its name and by that of standard
  /// input.
  void expect_text_refused(const std::string& kind, const std::string& text,
                           const std::string& says, const std::string& more = "") const {
    const std::string arguments = std::string("run ") + kSmall + more + " --prompt-" + kind + " ";
    expect_refused(arguments + write("refused.txt", text), says);
    expect_refused(arguments + "/dev/stdin <refused.txt", says);
  }

  Outcome run_in_bash(const std::string& arguments) const {
    write("command", "exec '" + shardproof::program(arguments) + "' " + arguments + "\n");
    const fs::path out = fs::path(directory_.string() + ".out");
    const fs::path err = fs::path(directory_.string() + ".err");
    const int status = std::system(("cd '" + directory_.string() + "' && bash command >'" +
                                    out.string() + "' 2>'" + err.string() + "'")
                                       .c_str());
    Outcome outcome{
        .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .out = slurp(out), .err = slurp(err)};
    fs::remove(out);
    fs::remove(err);
    fs::remove(path("command"));
    return outcome;
  }

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

constexpr const char* kModel = "palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264";

TEST_F(Files, AnOutputThatIsItsInputIsRefused) {
  ASSERT_EQ(run(std::string("weights generate --model ") + kModel + " --out w.h5").code, 0);
  write("p.txt", run(std::string("explain ws2d:batch --text ") + kSmall).out);
  write("prompt.txt", "ab\n");
  write("ids.txt", "1 2\n");
  fs::create_directory(path("folder"));
  for (const char* input : {"w.h5", "p.txt", "prompt.txt", "ids.txt"}) {
    const std::string name = input;
    fs::create_symlink(name, path("soft-" + name));
    fs::create_hard_link(path(name), path("hard-" + name));
    const std::string before = slurp(path(name));
    const std::string flag = name == "w.h5"         ? "--weights "
                             : name == "p.txt"      ? "--program "
                             : name == "prompt.txt" ? "--prompt-file "
                                                    : "--prompt-ids ";
    std::vector<std::string> verbs;
    if (name == "w.h5")
      verbs = {"run --trace ", "verify --torus 2x2x3 --trace ",
               "explain ws2d --torus 2x2x3 --svg "};
    if (name == "p.txt") verbs = {"verify --trace ", "explain --svg "};
    if (name == "prompt.txt" || name == "ids.txt") verbs = {"run --trace "};
    for (const std::string& verb : verbs)
      for (const std::string& output : {name, "./" + name, "folder/../" + name, path(name).string(),
                                        "soft-" + name, "hard-" + name}) {
        expect_refused(verb + output + " " + flag + name, "output_c2: --");
        expect_refused(verb + name + " " + flag + output, "output_c2: --");
      }
    EXPECT_EQ(slurp(path(name)), before);
  }
  // Another file beside them is not.
  EXPECT_EQ(run("run --torus 1x2x3 --weights w.h5 --trace t.h5").code, 0);
  EXPECT_EQ(run("run --torus 1x2x3 --weights w.h5 --trace t.h5").code, 0);
  EXPECT_EQ(run(std::string("explain --program p.txt --svg p.svg ") + kSmall).code, 0);
}

TEST_F(Files, PromptsOfIds) {
  const std::string arguments = std::string("run ") + kSmall + " --gen 3 ";
  write("bytes.txt", "ab\ncd\n");
  write("ids.txt", "97 98\n99 100\n");
  const Outcome bytes = run(arguments + "--prompt-file bytes.txt");
  EXPECT_EQ(bytes.code, 0) << bytes.err;
  EXPECT_EQ(run(arguments + "--prompt-ids ids.txt").out, bytes.out);
  EXPECT_EQ(run(arguments + "--prompt-ids " + write("other", "  97\t98 \r\n099   0100")).out,
            bytes.out);
  EXPECT_EQ(run(arguments + "--prompt-ids /dev/stdin <ids.txt").out, bytes.out);
  EXPECT_EQ(run_in_bash(arguments + "--prompt-ids <(cat ids.txt)").out, bytes.out);
  EXPECT_EQ(run_in_bash(arguments + "--prompt-file <(cat bytes.txt)").out, bytes.out);
  // Ids that no byte has, and what the program itself prints.
  const Outcome wide = run(arguments + "--json --prompt-ids " + write("wide", "263 0\n"));
  EXPECT_EQ(nlohmann::json::parse(wide.out)["prompt"], nlohmann::json({{263, 0}}));
  write("again", bytes.out);
  EXPECT_EQ(run(arguments + "--prompt-ids again").code, 0);
  expect_refused(arguments + "--prompt-ids ids.txt --prompt-file bytes.txt", "run_c4");
  expect_refused(arguments + "--prompt-ids ids.txt --prompt 2", "run_c2: prompt is a length");
  expect_refused(arguments + "--prompt-ids ids.txt --lengths 2,1", "run_c2: lengths are the rows'");
  expect_refused(arguments + "--prompt-ids ids.txt --batch 1", "batch=1");
  expect_refused(arguments + "--prompt-ids none.txt", "prompt_c1: none.txt cannot be read");
  expect_refused(arguments + "--prompt-ids ''", "flag_c2: the value of --prompt-ids is empty");
}

TEST_F(Files, BadTextsAreNamed) {
  for (const char* kind : {"file", "ids"}) {
    expect_text_refused(kind, "", "prompt_c2");
    expect_text_refused(kind,
                        "\xef\xbb\xbf"
                        "12\n",
                        "begins with a byte order mark");
    expect_text_refused(kind, "12\r34\n", "prompt_c6: ");
    expect_text_refused(kind, "12\n34\r", "byte 5 is a carriage return alone");
    expect_text_refused(kind, "12\r\r\n", "byte 2 is a carriage return alone");
    expect_text_refused(kind, "12\n\n34\n", "prompt_c3");
    expect_text_refused(kind, "12\n34\n", "batch=1 is less", " --batch 1 --prefill ws1d:heads");
  }
  expect_text_refused("ids", "1 2\n   \n", "prompt_c3");
  expect_text_refused("ids", "1 2\n3 264\n", "line 2 word 2 is \"264\"; the vocabulary has V=264");
  expect_text_refused("ids", "1 99999999999999999999\n", "prompt_c5");
  for (const char* word : {"x", "-1", "+1", "1.5", "1,2", "0x1", "\xff", "\x01"})
    expect_text_refused("ids", std::string("1 2\n3 ") + word + "\n", "prompt_c8");
  expect_text_refused("ids", "1 2\n3 abc\n", "line 2 word 2 is \"abc\", which is not a token id");
}

TEST_F(Files, EndlessTextsAreRefused) {
  const std::string few = std::string(kModel) + ",positions=5 --torus 2x2x3 ";
  const std::string small = "run --model " + few;
  expect_refused(small + "--prompt-file /dev/zero", "prompt_c7");
  expect_refused(small + "--prompt-ids /dev/zero", "prompt_c8");
  expect_refused(small + "--prompt-file " + write("six", "123456\n"), "positions, 5");
  expect_refused(small + "--prompt-ids " + write("six", "1 2 3 4 5 6\n"), "positions, 5");
  EXPECT_EQ(run(small + "--gen 1 --prompt-file " + write("five", "12345\n")).code, 0);
  EXPECT_EQ(run(small + "--gen 1 --prompt-ids " + write("five", "1 2 3 4 5\n")).code, 0);
  // Rows without end, ids without end, spaces without end: with little memory and no time limit.
  for (const char* text :
       {"--prompt-file <(yes 1)", "--prompt-ids <(yes 1)", "--prompt-ids <(yes '1 ' | tr -d '\\n')",
        "--prompt-ids <(yes ' ' | tr -d '\\n')", "--prompt-ids <(yes 1 | tr -d '\\n')"}) {
    const Outcome o = run_in_bash(small + text);
    EXPECT_EQ(o.code, 2) << text << o.err;
    EXPECT_TRUE(o.err.find("prompt_c6: /dev/fd/63 is larger than 16 MiB") != std::string::npos ||
                o.err.find("prompt_c7") != std::string::npos ||
                o.err.find("prompt_c5") != std::string::npos)
        << text << o.err;
  }
  for (const char* verb : {"verify", "explain"}) {
    expect_refused(std::string(verb) + " --program /dev/zero", "program_f3");
    const Outcome o = run_in_bash(std::string(verb) + " --program <(yes '# no step')");
    EXPECT_EQ(o.code, 2);
    EXPECT_NE(o.err.find("larger than 1 MiB: no layer program is"), std::string::npos) << o.err;
  }
}

TEST_F(Files, ProgramsAreReadFromPipesAndWeightsAreNot) {
  write("p.txt", run(std::string("explain ws2d:batch --text ") + kSmall).out);
  for (const char* verb : {"verify ", "explain "}) {
    const std::string arguments = verb + std::string(kSmall) + " --program ";
    EXPECT_EQ(run_in_bash(arguments + "<(cat p.txt)").code, 0);
    EXPECT_EQ(run(arguments + "/dev/stdin <p.txt").code, 0);
  }
  ASSERT_EQ(run(std::string("weights generate --model ") + kModel + " --out w.h5").code, 0);
  for (const char* verb : {"verify --weights ", "run --weights ", "explain ws2d --weights ",
                           "weights inspect ", "weights quantize ", "weights fold "}) {
    const std::string more =
        std::string(verb).starts_with("weights q") || std::string(verb).starts_with("weights f")
            ? " w8.h5"
            : "";
    const Outcome o = run_in_bash(std::string(verb) + "<(cat w.h5)" + more);
    EXPECT_EQ(o.code, 2);
    EXPECT_NE(o.err.find("is not a regular file"), std::string::npos) << verb << o.err;
    expect_refused(std::string(verb) + "/dev/zero" + more, "is not a regular file");
  }
}

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

TEST_F(Files, WhatIsReplacedKeepsItsMode) {
  for (const char* arguments : {"weights generate --out f", "explain ws2d --svg f",
                                "run --torus 2x2x3 --prefill ws2d:batch --trace f"}) {
    write("f", "old");
    ASSERT_EQ(::chmod(path("f").c_str(), 0640), 0);
    EXPECT_EQ(run(arguments).code, 0);
    struct stat found {};
    ASSERT_EQ(::stat(path("f").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0640U) << arguments;
    EXPECT_NE(slurp(path("f")), "old");
  }
}

}  // namespace
