#pragma once

// The command line as a user meets it, in a fresh folder of each test's own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace fs = std::filesystem;

struct Outcome {
  int code;
  std::string out, err;
};

inline std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "shardproof-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path path(const std::string& name) const { return directory_ / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name).string();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  Outcome run(const std::string& arguments, const char* program = SHARDPROOF_CLI) const {
    const fs::path out = fs::path(directory_.string() + ".out");
    const fs::path err = fs::path(directory_.string() + ".err");
    const std::string command = "cd '" + directory_.string() + "' && '" + program + "' " +
                                arguments + " >'" + out.string() + "' 2>'" + err.string() + "'";
    const int status = std::system(command.c_str());
    Outcome outcome{
        .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .out = slurp(out), .err = slurp(err)};
    fs::remove(out);
    fs::remove(err);
    return outcome;
  }

  /// Refused with exit 2, one line on stderr that says `says`, nothing on stdout, nothing written.
  void expect_refused(const std::string& arguments, const std::string& says) const {
    const std::size_t before = files();
    const Outcome o = run(arguments);
    EXPECT_EQ(o.code, 2) << arguments << "\n" << o.out << o.err;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << arguments << "\n" << o.err;
    EXPECT_NE(o.err.find(says), std::string::npos) << arguments << "\n" << o.err;
    EXPECT_EQ(o.out, "") << arguments;
    EXPECT_EQ(files(), before) << arguments;
  }

  /// Of UTF-8 the bytes that begin a character count. A line that begins with `but`, a command to
  /// copy, may be longer.
  static void expect_80_columns(const std::string& text, const std::string& but) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(but)) continue;
      EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }),
                80)
          << line;
    }
  }

  fs::path directory_;
};

inline constexpr const char* kSmall =
    "--model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264 --torus 2x2x3";
