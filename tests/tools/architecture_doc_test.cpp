// docs/architecture.md, docs/extensions.md and CONTRIBUTING's stages against the source tree: the
// files that they name exist, the answers' files hold the names given, the libraries are those that
// CMake builds, and each stage of .ci/run has its row.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace shardproof {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

std::string content(const std::string& path) {
  std::ifstream file(fs::path(SHARDPROOF_SOURCE) / path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> all_matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

/// What stands between backquotes.
std::vector<std::string> quoted(const std::string& text) {
  return all_matches(text, "`([^`\n]+)`");
}

bool is_path(const std::string& name) {
  static const std::regex path("(cmake|docs|engine|golden|oracle|tests|tools|weights)/\\S*");
  return std::regex_match(name, path);
}

/// The paths of a page that the source tree does not have.
Names missing_paths(const std::string& page) {
  Names missing;
  for (const std::string& name : quoted(page))
    if (is_path(name) && !fs::exists(fs::path(SHARDPROOF_SOURCE) / name)) missing.insert(name);
  return missing;
}

/// The numbered answers of the page: what follows each question.
std::vector<std::string> answers(const std::string& page) {
  const std::string heading = "## Twelve questions";
  const auto begin = page.find(heading);
  if (begin == std::string::npos) return {};
  const auto end = page.find("\n## ", begin + heading.size());
  const std::string section = page.substr(begin, end - begin);
  return all_matches(section, "\n[0-9]+\\. \\*\\*[^*]+\\?\\*\\*([^*]+)(?=\n)");
}

/// What is wrong with an answer: no file or more than two, or a name that none of them holds.
Names faults_of(const std::string& answer) {
  Names faults, paths;
  std::string text;
  for (const std::string& name : quoted(answer))
    if (is_path(name) && paths.insert(name).second) text += content(name);
  if (paths.empty() || paths.size() > 2) faults.insert(std::to_string(paths.size()) + " files");
  for (const std::string& name : quoted(answer))
    if (!is_path(name) && text.find(name) == std::string::npos) faults.insert(name);
  return faults;
}

using Links = std::map<std::string, Names>;  // of each library those that it links to

/// As CMake has them.
Links built_libraries() {
  Links libraries;
  for (const char* folder : {"weights", "oracle", "engine", "golden", "tools"}) {
    const std::string text = content(std::string(folder) + "/CMakeLists.txt");
    const std::regex call("shardproof_library\\(([a-z_]+)([^)]*)\\)");
    for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
      const std::vector<std::string> links = all_matches((*at)[2], "shardproof::([a-z_]+)");
      libraries[(*at)[1]] = Names(links.begin(), links.end());
    }
  }
  return libraries;
}

/// As the page's table has them: "| `oracle` | `oracle/` | ... | `weights` |".
Links listed_libraries(const std::string& page) {
  Links libraries;
  std::istringstream lines(page);
  const std::regex row("\\| `([a-z_]+)` \\| `[^|]+` \\|[^|]+\\|([^|]*)\\|");
  for (std::string line; std::getline(lines, line);)
    if (std::smatch cells; std::regex_match(line, cells, row)) {
      const std::vector<std::string> links = quoted(cells[2]);
      libraries[cells[1]] = Names(links.begin(), links.end());
    }
  return libraries;
}

/// The libraries of the table that link to one which is not above them.
Names not_downward(const std::string& page) {
  const Links links = listed_libraries(page);
  Names above, wrong;
  for (const std::string& library : all_matches(page, "\n\\| `([a-z_]+)` \\| `[^|]+/` \\|")) {
    for (const std::string& below : links.at(library))
      if (!above.contains(below)) wrong.insert(library);
    above.insert(library);
  }
  return wrong;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ArchitectureDoc, TheFilesItNamesExist) {
  for (const char* page : {"docs/architecture.md", "docs/extensions.md"}) {
    const std::string text = content(page);
    EXPECT_EQ(missing_paths(text), Names()) << page;
    EXPECT_GE(quoted(text).size(), 20U) << page;
  }
  const std::string text = content("docs/architecture.md");
  EXPECT_EQ(missing_paths(replaced(text, "weights/passes.h", "weights/pass.h")),
            Names{"weights/pass.h"});
  EXPECT_EQ(missing_paths(replaced(text, "engine/run/", "engine/runs/")), Names{"engine/runs/"});
}

TEST(ArchitectureDoc, TwelveQuestionsAreAnsweredByOneFileOrTwo) {
  const std::string text = content("docs/architecture.md");
  const std::vector<std::string> all = answers(text);
  EXPECT_EQ(all.size(), 12U);
  for (const std::string& answer : all) EXPECT_EQ(faults_of(answer), Names()) << answer;
  EXPECT_EQ(answers(replaced(text, "\n12. ", "\n")).size(), 11U);
  EXPECT_EQ(faults_of(" `engine/program/count.cpp`, `judged_offset`."), Names{"judged_offset"});
  EXPECT_EQ(faults_of(" See the code."), Names{"0 files"});
  EXPECT_EQ(faults_of(" `engine/layout.h`, `engine/torus.h`, `engine/type.h`."), Names{"3 files"});
}

TEST(ArchitectureDoc, ItsLibrariesAreThoseOfTheBuild) {
  const std::string text = content("docs/architecture.md");
  EXPECT_GE(built_libraries().size(), 14U);
  EXPECT_EQ(listed_libraries(text), built_libraries());
  EXPECT_EQ(not_downward(text), Names());
  EXPECT_NE(listed_libraries(replaced(text, "| `oracle` |", "| `oracles` |")), built_libraries());
  EXPECT_NE(listed_libraries(replaced(text, "| `sharded` |\n", "| `run` |\n")), built_libraries());
  EXPECT_EQ(not_downward(replaced(text, "errors | |", "errors | `layout` |")), Names{"weights"});
}

/// The stages of .ci/run that CONTRIBUTING's table has no row for, and rows without a stage.
Names without_row(const std::string& script, const std::string& page) {
  const auto table = page.find("| stage | what it does |");
  const auto end = page.find("\n\n", table);
  Names differ;
  for (const std::string& name : all_matches(script, "(?:^|\n)stage ([a-z0-9]+)(?=\n)"))
    differ.insert(name);
  if (table == std::string::npos) return differ;
  std::istringstream rows(page.substr(table, end - table));
  for (std::string row; std::getline(rows, row);)
    for (const std::string& name : quoted(row.substr(0, row.find('|', 1))))
      if (differ.erase(name) == 0) differ.insert("no stage " + name);
  return differ;
}

TEST(Contributing, HasARowForEachStage) {
  const std::string script = content(".ci/run"), page = content("CONTRIBUTING.md");
  EXPECT_EQ(without_row(script, page), Names());
  EXPECT_EQ(without_row(script + "stage more\n", page), Names{"more"});
  EXPECT_EQ(without_row(script, page.substr(0, 100)).size(), 20U);
  std::string other = page;
  other.replace(other.find("| `fuzz` |"), 10, "| `fuss` |");
  EXPECT_EQ(without_row(script, other), (Names{"fuzz", "no stage fuss"}));
}

}  // namespace
}  // namespace shardproof
