// docs/architecture.md, docs/extensions.md and the stages of docs/testing.md against the source
// tree: the files that they name exist, the answers' files hold the names given, the libraries are
// those that CMake builds, and each stage of .ci/run has its row. And the rooms themselves: each is
// a library, and what they include of each other has no circle.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
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
  const std::string heading = "## Thirty questions";
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
    const std::regex call("shardproof_(?:program_)?library\\(([a-z0-9_]+)\\s([^)]*)\\)");
    for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
      const std::vector<std::string> links = all_matches((*at)[2], "shardproof::([a-z0-9_]+)");
      libraries[(*at)[1]] = Names(links.begin(), links.end());
    }
  }
  return libraries;
}

/// As the page's table has them: "| `oracle` | `oracle/` | ... | `weights` |".
Links listed_libraries(const std::string& page) {
  Links libraries;
  std::istringstream lines(page);
  const std::regex row("\\| `([a-z0-9_]+)` \\| `[^|]+` \\|[^|]+\\|([^|]*)\\|");
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
  Names wrong, above{"weights", "oracle", "cost", "golden"};  // names for several
  for (const std::string& library : all_matches(page, "\n\\| `([a-z0-9_]+)` \\| `[^|]+/` \\|")) {
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
  EXPECT_EQ(missing_paths(replaced(text, "weights/model/passes.h", "weights/pass.h")),
            Names{"weights/pass.h"});
  EXPECT_EQ(missing_paths(replaced(text, "engine/run/", "engine/runs/")), Names{"engine/runs/"});
}

TEST(ArchitectureDoc, QuestionsAreAnsweredByOneFileOrTwo) {
  const std::string text = content("docs/architecture.md");
  const std::vector<std::string> all = answers(text);
  EXPECT_EQ(all.size(), 30U);
  for (const std::string& answer : all) EXPECT_EQ(faults_of(answer), Names()) << answer;
  EXPECT_EQ(answers(replaced(text, "\n12. ", "\n")).size(), 29U);
  EXPECT_EQ(faults_of(" `engine/program/count.cpp`, `judged_offset`."), Names{"judged_offset"});
  EXPECT_EQ(faults_of(" See the code."), Names{"0 files"});
  EXPECT_EQ(
      faults_of(" `engine/layout/layout.h`, `engine/layout/torus.h`, `engine/layout/type.h`."),
      Names{"3 files"});
}

TEST(ArchitectureDoc, ItsLibrariesAreThoseOfTheBuild) {
  const std::string text = content("docs/architecture.md");
  EXPECT_GE(built_libraries().size(), 14U);
  EXPECT_EQ(listed_libraries(text), built_libraries());
  EXPECT_EQ(not_downward(text), Names());
  EXPECT_NE(listed_libraries(replaced(text, "| `judge` |", "| `judges` |")), built_libraries());
  EXPECT_NE(listed_libraries(replaced(text, "| `shards` |\n", "| `run` |\n")), built_libraries());
  EXPECT_EQ(not_downward(replaced(text, "on memory | |", "on memory | `layout` |")),
            Names{"weights_base"});
}

/// The room of a file: its folder, that of private headers being a part of it.
std::string room_of(const std::string& path) {
  std::string folder = fs::path(path).parent_path().generic_string();
  const std::string detail = "/detail";
  if (folder.ends_with(detail)) folder.erase(folder.size() - detail.size());
  return folder;
}

/// The text of each source and header, by path.
using Sources = std::map<std::string, std::string>;

Sources all_sources() {
  Sources sources;
  for (const char* top : {"weights", "oracle", "engine", "golden", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SHARDPROOF_SOURCE) / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      const std::string path = fs::relative(entry.path(), SHARDPROOF_SOURCE).generic_string();
      sources[path] = content(path);
    }
  return sources;
}

/// Of each room those that its files include.
Links included_rooms(const Sources& sources) {
  Links rooms;
  for (const auto& [path, text] : sources) {
    Names& of = rooms[room_of(path)];
    for (const std::string& header : all_matches(text, "(?:^|\n)#include \"([^\"]+)\""))
      if (sources.contains(header) && room_of(header) != room_of(path)) of.insert(room_of(header));
  }
  return rooms;
}

/// All that can be reached from one of them.
Names reached(const Links& links, const std::string& from) {
  Names seen;
  std::vector<std::string> next(links.at(from).begin(), links.at(from).end());
  while (!next.empty()) {
    const std::string one = next.back();
    next.pop_back();
    if (!seen.insert(one).second || !links.contains(one)) continue;
    next.insert(next.end(), links.at(one).begin(), links.at(one).end());
  }
  return seen;
}

Names in_circles(const Links& links) {
  Names circles;
  for (const auto& [room, below] : links)
    if (reached(links, room).contains(room)) circles.insert(room);
  return circles;
}

/// The folders of the table, by library: "| `judge` | `golden/judge/` | ...".
std::map<std::string, std::string> listed_rooms(const std::string& page) {
  std::map<std::string, std::string> rooms;
  std::istringstream lines(page);
  const std::regex row("\\| `([a-z0-9_]+)` \\| `([^`]+)/` \\|.*");
  for (std::string line; std::getline(lines, line);)
    if (std::smatch cells; std::regex_match(line, cells, row)) rooms[cells[1]] = cells[2];
  return rooms;
}

// engine/ and oracle/ know the model from weights/ alone; the cost model is for tools.
bool may_include(const std::string& room, const std::string& below) {
  const auto top = [](const std::string& path) { return path.substr(0, path.find('/')); };
  if (top(room) == "oracle" || top(room) == "engine")
    return top(below) == "weights" || top(below) == top(room);
  return !(top(room) == "golden" && below.starts_with("engine/cost/"));
}

Names forbidden(const Links& links) {
  Names wrong;
  for (const auto& [room, below] : links)
    for (const std::string& one : below)
      if (!may_include(room, one)) wrong.insert(room + " -> " + one);
  return wrong;
}

TEST(Rooms, HaveNoCircle) {
  const Sources sources = all_sources();
  EXPECT_GE(sources.size(), 700U);
  const Links links = included_rooms(sources);
  EXPECT_EQ(in_circles(links), Names());
  // A circle through any room that is included shows, also one through a private header.
  for (const auto& [room, below] : links)
    for (const std::string& one : reached(links, room)) {
      Links circle = links;
      circle[one].insert(room);
      EXPECT_TRUE(in_circles(circle).contains(one)) << one << " -> " << room;
    }
  Sources planted = sources;
  planted.at("weights/base/detail/words.h") += "\n#include \"weights/model/passes.h\"\n";
  EXPECT_EQ(in_circles(included_rooms(planted)), (Names{"weights/base", "weights/model"}));
}

TEST(Rooms, OfEngineAndOracleAreApart) {
  const Links links = included_rooms(all_sources());
  EXPECT_EQ(forbidden(links), Names());
  const std::pair<const char*, const char*> all[] = {{"engine/run", "oracle/model"},
                                                     {"oracle/field", "engine/shards"},
                                                     {"oracle/model", "golden/judge"},
                                                     {"engine/run", "golden/judge"},
                                                     {"golden/verify", "engine/cost/plan"}};
  for (const auto& [room, below] : all) {
    Links planted = links;
    planted.at(room).insert(below);
    EXPECT_EQ(forbidden(planted), Names{std::string(room) + " -> " + below});
  }
}

/// Includes of rooms whose library is not among those that a room's links to.
Names unlinked(const Links& included, const Links& built,
               const std::map<std::string, std::string>& rooms) {
  std::map<std::string, std::string> library;
  for (const auto& [name, room] : rooms) library[room] = name;
  Names wrong;
  for (const auto& [room, below] : included) {
    if (!library.contains(room)) continue;
    const Names links = reached(built, library.at(room));
    for (const std::string& one : below)
      if (!library.contains(one) || !links.contains(library.at(one)))
        wrong.insert(room + " -> " + one);
  }
  return wrong;
}

/// With the names that stand for several libraries.
Links with_groups(Links links) {
  for (const char* top : {"weights", "oracle", "engine", "golden"}) {
    const std::string text = content(std::string(top) + "/CMakeLists.txt");
    const std::regex call("shardproof_group\\(([a-z0-9_]+) ([^)]*)\\)");
    for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
      const std::vector<std::string> members = all_matches((*at)[2], "shardproof::([a-z0-9_]+)");
      links[(*at)[1]] = Names(members.begin(), members.end());
    }
  }
  return links;
}

TEST(Rooms, AreLibrariesThatLinkToWhatTheyInclude) {
  const Sources sources = all_sources();
  const Links included = included_rooms(sources), built = with_groups(built_libraries());
  const auto rooms = listed_rooms(content("docs/architecture.md"));
  Names of_libraries,
      without{"tools", "tools/bench", "tools/binding"};  // programs and the shared library
  for (const auto& [name, room] : rooms) of_libraries.insert(room);
  for (const auto& [room, below] : included)
    EXPECT_NE(of_libraries.contains(room), without.contains(room)) << room;
  EXPECT_EQ(of_libraries.size() + without.size(), included.size());
  EXPECT_EQ(unlinked(included, built, rooms), Names());
  Links planted = included;
  planted.at("golden/judge").insert("golden/diagnosis");
  EXPECT_EQ(unlinked(planted, built, rooms), Names{"golden/judge -> golden/diagnosis"});
}

/// Installed headers that include one which is not installed.
Names broken_when_installed(const Sources& sources) {
  Names broken;
  for (const auto& [path, text] : sources) {
    const bool of_program = path.starts_with("tools/") && !path.starts_with("tools/drawing/");
    if (!path.ends_with(".h") || of_program || path.find("/detail/") != std::string::npos) continue;
    if (text.find("/detail/") != std::string::npos &&
        !all_matches(text, "#include \"([^\"]+/detail/[^\"]+)\"").empty())
      broken.insert(path);
  }
  return broken;
}

TEST(Rooms, InstalledHeadersIncludeInstalledOnes) {
  const Sources sources = all_sources();
  EXPECT_EQ(broken_when_installed(sources), Names());
  for (const auto& [path, text] : sources) {
    if (!path.ends_with(".h") || path.find("/detail/") != std::string::npos) continue;
    if (path.starts_with("tools/") && !path.starts_with("tools/drawing/")) continue;
    const Sources planted{{path, text + "\n#include \"weights/base/detail/words.h\"\n"}};
    EXPECT_EQ(broken_when_installed(planted), Names{path});
  }
}

/// The sources of each room that is directly below the root, one with its header being one.
std::map<std::string, Names> nouns(const Sources& sources) {
  std::map<std::string, Names> of;
  for (const auto& [path, text] : sources) of[room_of(path)].insert(fs::path(path).stem().string());
  return of;
}

TEST(Rooms, RootsAreNotFlat) {
  std::map<std::string, Names> all = nouns(all_sources());
  for (const char* root : {"weights", "oracle", "engine", "golden", "tools"})
    EXPECT_LE(all[root].size(), 12U) << root;
}

/// The stages of .ci/run that docs/testing.md's table has no row for, and rows without a stage.
Names without_row(const std::string& script, const std::string& page) {
  const auto table = page.find("| stage | what it does |");
  const auto end = page.find("\n\n", table);
  Names differ;
  for (const std::string& line : all_matches(script, "(?:^|\n)stages ([a-z0-9 ]+)(?=\n)")) {
    std::istringstream names(line);
    for (std::string name; names >> name;) differ.insert(name);
  }
  if (table == std::string::npos) return differ;
  std::istringstream rows(page.substr(table, end - table));
  for (std::string row; std::getline(rows, row);)
    for (const std::string& name : quoted(row.substr(0, row.find('|', 1))))
      if (differ.erase(name) == 0) differ.insert("no stage " + name);
  return differ;
}

TEST(Testing, HasARowForEachStage) {
  const std::string script = content(".ci/run"), page = content("docs/testing.md");
  EXPECT_EQ(without_row(script, page), Names());
  EXPECT_EQ(without_row(script + "stages more most\n", page), (Names{"more", "most"}));
  EXPECT_EQ(without_row(script, page.substr(0, 100)).size(), 24U);
  std::string other = page;
  other.replace(other.find("| `fuzz` |"), 10, "| `fuss` |");
  EXPECT_EQ(without_row(script, other), (Names{"fuzz", "no stage fuss"}));
}

}  // namespace
}  // namespace shardproof
