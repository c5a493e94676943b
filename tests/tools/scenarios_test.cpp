// The command line as the texts of tests/tools/scenarios/ use it: each scenario is a test, in an
// empty folder of its own. README.md there says what the lines mean.
#include <gtest/gtest-spi.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/verify_output.h"

namespace {

using Json = nlohmann::json;

struct Line {
  std::string place, word, rest;
};

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(by, from)) != std::string::npos; from = at + by.size())
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return parts;
}

/// Splits "A B C" into "A" and "B C".
std::pair<std::string, std::string> first_word(const std::string& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::size_t next = text.find_first_not_of(' ', end);
  return {text.substr(0, end), next == std::string::npos ? "" : text.substr(next)};
}

/// \n, \r, \t, \\, \s (a space), \e (nothing) and \xHH.
std::string unescaped(const std::string& text) {
  static const std::map<char, std::string> meanings{{'n', "\n"},  {'r', "\r"}, {'t', "\t"},
                                                    {'\\', "\\"}, {'s', " "},  {'e', ""}};
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
    } else if (text[++i] == 'x') {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += meanings.at(text[i]);
    }
  }
  return plain;
}

/// The values at "/cases/*/verdict", where * is each.
std::vector<Json> values_at(const Json& root, const std::string& path) {
  std::vector<Json> found{root};
  for (const std::string& name : split(path, "/")) {
    if (name.empty()) continue;
    std::vector<Json> next;
    for (const Json& one : found)
      if (name == "*")
        next.insert(next.end(), one.begin(), one.end());
      else
        next.push_back(one.at(Json::json_pointer("/" + name)));
    found = std::move(next);
  }
  return found;
}

bool holds(const Json& found, const std::string& op, const Json& value) {
  if (op == "size") return found.size() == value;
  if (op == "longer") return found.size() > value;
  if (op == "begins") return found.get<std::string>().starts_with(value.get<std::string>());
  if (op == "has") return found.get<std::string>().find(value) != std::string::npos;
  if (op == "lacks") return !found.contains(value);
  if (op == "=") return found == value;
  if (op == "!=") return found != value;
  if (op == "<") return found < value;
  if (op == ">") return found > value;
  throw std::invalid_argument(op);
}

class Scenario : public Cli {
 public:
  explicit Scenario(std::vector<Line> lines) : lines_(std::move(lines)) {}

  /// Runs it as a part of another test.
  void play() {
    SetUp();
    try {
      TestBody();
    } catch (...) {
      TearDown();
      throw;
    }
    TearDown();
  }

  using Step = void (Scenario::*)(const std::string&);
  /// By the first word of a line.
  static const std::map<std::string, Step>& steps() {
    static const std::map<std::string, Step> all{
        {"let", &Scenario::let},         {"write", &Scenario::write_file},
        {"save", &Scenario::save},       {"edit", &Scenario::edit},
        {"sh", &Scenario::shell},        {"ok", &Scenario::ok},
        {"fails", &Scenario::fails},     {"run", &Scenario::run_to},
        {"any", &Scenario::any},         {"bash", &Scenario::bash},
        {"refused", &Scenario::refused}, {"errors", &Scenario::errors},
        {"begins", &Scenario::begins},   {"says", &Scenario::says},
        {"lacks", &Scenario::lacks},     {"times", &Scenario::times},
        {"matches", &Scenario::matches}, {"prints", &Scenario::prints},
        {"differs", &Scenario::differs}, {"errs", &Scenario::errs},
        {"keep", &Scenario::keep},       {"take", &Scenario::take},
        {"find", &Scenario::find},       {"json", &Scenario::json_holds},
        {"files", &Scenario::has_files}, {"fits", &Scenario::fits},
        {"rows", &Scenario::has_rows}};
    return all;
  }

 private:
  void TestBody() override { run_lines(0, lines_.size()); }

  void run_lines(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Line& line = lines_[i];
      SCOPED_TRACE(line.place + line.word + " " + line.rest);
      if (line.word != "for") {
        step(line.word, line.rest);
        continue;
      }
      std::size_t stop = i + 1;
      for (int depth = 1; (depth += depth_of(lines_.at(stop).word)) > 0;) ++stop;
      const auto [name, values] = first_word(line.rest);
      for (const std::string& value : split(values, " | ")) {
        names_[name] = filled(value);
        run_lines(i + 1, stop);
      }
      i = stop;
    }
  }
  static int depth_of(const std::string& word) {
    return word == "for" ? 1 : word == "end" ? -1 : 0;
  }

  /// The first words of a line, and what is left of it.
  template <std::size_t N>
  std::array<std::string, N> parts(std::string rest) const {
    std::array<std::string, N> all;
    for (std::size_t i = 0; i + 1 < N; ++i) {
      const auto [word, others] = first_word(rest);
      all[i] = filled(word);
      rest = others;
    }
    all[N - 1] = filled(rest);
    return all;
  }
  /// Without escapes, and {NAME} replaced where a name is known.
  std::string filled(const std::string& raw) const {
    std::string text = unescaped(raw);
    for (const auto& [name, value] : names_)
      for (std::size_t at = 0; (at = text.find("{" + name + "}", at)) != std::string::npos;
           at += value.size())
        text.replace(at, name.size() + 2, value);
    return text;
  }

  void step(const std::string& word, const std::string& rest) {
    ASSERT_TRUE(steps().contains(word)) << word;
    (this->*steps().at(word))(rest);
  }

  void let(const std::string& rest) {
    const auto [name, value] = parts<2>(rest);
    names_[name] = value;
  }
  void write_file(const std::string& rest) {
    const auto [name, text] = parts<2>(rest);
    write(name, text);
  }
  void save(const std::string& rest) { write(filled(rest), last_.out); }
  void edit(const std::string& rest) {
    const std::size_t arrow = rest.find(" => ");
    const auto [from, to, old] = parts<3>(rest.substr(0, arrow));
    std::string text = slurp(path(from));
    const std::size_t at = text.find(old);
    ASSERT_NE(at, std::string::npos) << text;
    write(to, text.replace(at, old.size(), filled(rest.substr(arrow + 4))));
  }
  /// In bash, which knows <(COMMAND).
  void in_bash(const std::string& command) {
    const std::string out = directory_.string() + ".out", err = directory_.string() + ".err",
                      script = directory_.string() + ".sh";
    std::ofstream(script) << "cd '" << directory_.string() << "'\n" << command << "\n";
    const int status =
        std::system(("bash '" + script + "' >'" + out + "' 2>'" + err + "'").c_str());
    last_ = {.code = WEXITSTATUS(status), .out = slurp(out), .err = slurp(err)};
    for (const std::string& made : {out, err, script}) fs::remove(made);
  }
  void shell(const std::string& rest) {
    in_bash(filled(rest));
    EXPECT_EQ(last_.code, 0) << last_.out << last_.err;
  }
  void bash(const std::string& rest) {
    const auto [code, arguments] = parts<2>(rest);
    in_bash("exec '" SHARDPROOF_CLI "' " + arguments);
    EXPECT_EQ(std::to_string(last_.code), code) << last_.err;
  }

  void start(const std::string& arguments) {
    last_ = run(arguments.starts_with("shardproof ") ? arguments.substr(11) : arguments);
  }
  void any(const std::string& rest) { start(filled(rest)); }
  void run_to(const std::string& rest) {
    const auto [code, arguments] = parts<2>(rest);
    start(arguments);
    EXPECT_EQ(std::to_string(last_.code), code) << arguments << "\n" << last_.out << last_.err;
  }
  void ok(const std::string& rest) { run_to("0 " + rest); }
  void fails(const std::string& rest) { run_to("1 " + rest); }
  void refused(const std::string& rest) {
    const std::size_t arrow = rest.find(" => ");
    expect_refused(filled(rest.substr(0, arrow)), filled(rest.substr(arrow + 4)));
  }
  void errors(const std::string&) {
    EXPECT_EQ(last_.out, "");
    last_.out = last_.err;
  }

  void begins(const std::string& rest) {
    EXPECT_TRUE(last_.out.starts_with(filled(rest))) << last_.out;
  }
  void says(const std::string& rest) {
    EXPECT_NE(last_.out.find(filled(rest)), std::string::npos) << last_.out;
  }
  void lacks(const std::string& rest) {
    EXPECT_EQ(last_.out.find(filled(rest)), std::string::npos) << last_.out;
  }
  void times(const std::string& rest) {
    const auto [count, text] = parts<2>(rest);
    EXPECT_EQ(std::to_string(count_of(last_.out, text)), count) << last_.out;
  }
  void matches(const std::string& rest) {
    EXPECT_TRUE(std::regex_search(last_.out, std::regex(filled(rest)))) << last_.out;
  }
  void prints(const std::string& rest) { EXPECT_EQ(timeless(last_.out), timeless(filled(rest))); }
  void differs(const std::string& rest) { EXPECT_NE(timeless(last_.out), timeless(filled(rest))); }
  void errs(const std::string& rest) {
    if (rest.empty()) {
      EXPECT_EQ(last_.err, "");
    }
    EXPECT_NE(last_.err.find(filled(rest)), std::string::npos) << last_.err;
  }
  void keep(const std::string& name) { names_[name] = last_.out; }
  void take(const std::string& rest) {
    const auto [name, path] = parts<2>(rest);
    const Json found = values_at(Json::parse(last_.out), path).at(0);
    names_[name] = found.is_string() ? found.get<std::string>() : found.dump();
  }
  /// What the group of an expression matches.
  void find(const std::string& rest) {
    const auto [name, expression] = parts<2>(rest);
    std::smatch found;
    ASSERT_TRUE(std::regex_search(last_.out, found, std::regex(expression))) << last_.out;
    names_[name] = found[1];
  }
  /// PATH OPERATION VALUE, which is JSON or another path.
  void json_holds(const std::string& rest) {
    const auto [path, operation, value] = parts<3>(rest);
    const Json all = Json::parse(last_.out);
    const Json expected = value.starts_with("/") ? values_at(all, value).at(0) : Json::parse(value);
    const std::vector<Json> found = values_at(all, path);
    EXPECT_FALSE(found.empty());
    for (const Json& one : found) EXPECT_TRUE(holds(one, operation, expected)) << one;
  }
  void has_files(const std::string& count) { EXPECT_EQ(std::to_string(files()), count); }
  void fits(const std::string&) { expect_80_columns(last_.out, "\n"); }
  void has_rows(const std::string& count) {
    const std::size_t found = rows(last_.out);
    EXPECT_TRUE(count.ends_with("+") ? found >= std::stoul(count) : found == std::stoul(count))
        << last_.out;
  }
  /// Without the time that it took.
  static std::string timeless(const std::string& text) {
    return std::regex_replace(text, std::regex(" in [0-9.]+ s"), "");
  }

  std::vector<Line> lines_;
  std::map<std::string, std::string> names_;
  Outcome last_{.code = 0, .out = "", .err = ""};
};

/// Registers the scenarios of a file. The lines before the first begin each of them.
int register_scenarios(const fs::path& file) {
  std::ifstream text(file);
  std::vector<Line> shared, lines;
  std::string name;
  int registered = 0;
  const auto finish = [&] {
    if (name.empty()) return;
    testing::RegisterTest("Scenarios", name.c_str(), nullptr, nullptr, file.c_str(), 1,
                          [lines] { return static_cast<Cli*>(new Scenario(lines)); });
    ++registered;
  };
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line[begin] == '#') continue;
    const auto [word, rest] = first_word(line.substr(begin));
    if (word == "scenario") {
      finish();
      name = rest;
      lines = shared;
    } else {
      (name.empty() ? shared : lines)
          .push_back({file.filename().string() + ":" + std::to_string(number) + ": ", word, rest});
    }
  }
  finish();
  return registered;
}

const int kRegistered = [] {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(SHARDPROOF_SOURCE "/tests/tools/scenarios"))
    if (entry.path().extension() == ".txt") files.insert(entry.path());
  int all = 0;
  for (const fs::path& file : files) all += register_scenarios(file);
  return all;
}();

TEST(ScenarioFiles, AreRead) { EXPECT_GE(kRegistered, 80); }

/// Each after a command that ends well, which printed {said}.
TEST(ScenarioFiles, WhatDoesNotHoldFails) {
  std::set<std::string> shown;
  for (const char* wrong : {"ok --no-such-flag",
                            "fails --version",
                            "run 2 --version",
                            "bash 1 --version",
                            "sh false",
                            "refused --version => shardproof",
                            "refused verify --gen 0 => gen=1",
                            "errors",
                            "begins chips",
                            "says tpu-v44",
                            "lacks tpu-v4",
                            "times 99 tpu-v4",
                            "matches ^chip",
                            "prints \\e",
                            "differs {said}",
                            "errs chip",
                            "rows 1",
                            "rows 1+",
                            "fits",
                            "files 1",
                            "edit a b c => d",
                            "find name (tpu-v44)",
                            "unknown",
                            "json /schema = 3",
                            "json /schema != 2",
                            "json /schema < 2",
                            "json /schema > 2",
                            "json /chips/*/chip = \"tpu-v4\"",
                            "json /chips size 0",
                            "json /chips longer 99",
                            "json /chips/0/chip begins \"v4\"",
                            "json /chips/0/chip has \"v44\"",
                            "json /chips/0 lacks \"chip\"",
                            "json /chips/0/chip = /chips/1/chip"}) {
    const auto [word, rest] = first_word(wrong);
    testing::TestPartResultArray failures;
    {
      const testing::ScopedFakeTestPartResultReporter here(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      Scenario({{"", "ok", "list chips --json"}, {"", "keep", "said"}, {"", word, rest}}).play();
    }
    EXPECT_GT(failures.size(), 0) << wrong;
    shown.insert(word);
  }
  for (const char* no_verdict : {"let", "write", "save", "any", "keep", "take"})
    EXPECT_TRUE(shown.insert(no_verdict).second) << no_verdict;
  for (const auto& [word, step] : Scenario::steps()) EXPECT_TRUE(shown.contains(word)) << word;
}

TEST(ScenarioFiles, WhatIsNotALineIsRefused) {
  for (const char* wrong : {"json /schema ~ 2", "json /schema = two", "json /nowhere = 2",
                            "take name /nowhere", "says \\q", "matches ("}) {
    const auto [word, rest] = first_word(wrong);
    EXPECT_ANY_THROW(Scenario({{"", "ok", "list chips --json"}, {"", word, rest}}).play()) << wrong;
  }
}

}  // namespace
