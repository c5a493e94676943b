// What `list` and `explain --rule` print, held against the sources and the documents.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/program_output.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

/// What `list SUBJECT --json` lists.
std::vector<nlohmann::json> listed(const std::string& subject) {
  const Said o = said("list " + subject + " --json");
  EXPECT_EQ(o.code, 0) << o.text;
  return nlohmann::json::parse(o.text)[subject];
}

/// The sources of these folders, and with those of the tests their tables.
std::string sources(const std::vector<const char*>& folders = {"engine", "golden", "oracle",
                                                               "weights", "tools"}) {
  std::string all;
  for (const char* folder : folders)
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(SHARDPROOF_SOURCE) / folder)) {
      const std::string extension = entry.path().extension().string();
      const bool table = extension == ".txt" && folder == std::string_view("tests");
      if (extension != ".cpp" && extension != ".h" && extension != ".inl" && !table) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      all += text.str();
    }
  return all;
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
      word += c;
    else
      words.insert(std::exchange(word, ""));
  }
  return words;
}

std::set<std::string> op_names() {
  std::set<std::string> names;
  for (const auto& op : listed("ops")) names.insert(op["op"]);
  return names;
}

TEST(Rules, EveryLabelThatIsThrownIsListed) {
  std::set<std::string> labels;
  for (const auto& rule : listed("rules")) labels.insert(rule["label"]);
  const std::string text = sources();
  // Given to what throws, or a literal that reads as a label.
  const std::regex thrown(
      "(?:(?:Error|refused?|read_word)\\(\\s*\"(?=[a-z0-9]+_)|\"(?=[a-z_]+_[cf][0-9]+[\":]))"
      "([a-z0-9_]+)[\":]");
  int found = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), thrown), end; at != end; ++at, ++found)
    EXPECT_TRUE(labels.contains((*at)[1]))
        << (*at)[1] << " is thrown, but no record of tools/verbs/rules/ says what it is";
  EXPECT_GE(found, 150);
}

TEST(Rules, EveryListedLabelIsThrown) {
  const std::string text = sources();
  const std::set<std::string> ops = op_names();
  std::set<std::string> seen;
  for (const auto& rule : listed("rules")) {
    const std::string label = rule["label"];
    EXPECT_TRUE(seen.insert(label).second) << label << " is listed twice";
    for (const char* member : {"says", "document", "example", "kind"})
      EXPECT_NE(rule[member], "") << label << " has no " << member;
    EXPECT_EQ(std::string(rule["says"]).find_first_of("`|"), std::string::npos) << rule["says"];
    // Rules of an op are thrown with the op's name; their numbers are those of engine/typing/.
    const auto number = label.rfind("_c");
    if (number != std::string::npos && ops.contains(label.substr(0, number))) continue;
    EXPECT_TRUE(text.find("\"" + label + "\"") != std::string::npos ||
                text.find(label + ": ") != std::string::npos)
        << label << " is listed, but nothing throws it";
  }
}

TEST(Rules, SayWhatTheyAreOf) {
  const std::set<std::string> ops = op_names();
  for (const auto& rule : listed("rules")) {
    const std::string label = rule["label"], of = rule["of"], document = rule["document"];
    const bool typing = document.starts_with("docs/typing.md, \"") &&
                        !label.starts_with("program_") &&
                        document.find("running") == std::string::npos;
    EXPECT_EQ(of.empty(), !typing) << label << " is of " << of;
    EXPECT_TRUE(!ops.contains(of) || label.starts_with(of + "_c")) << label << " is of " << of;
  }
}

TEST(Rules, ExplainSaysOne) {
  for (const auto& rule : listed("rules")) {
    const std::string label = rule["label"];
    const auto one = nlohmann::json::parse(said("explain --json --rule " + label).text);
    for (const char* member : {"label", "of", "says", "document", "example", "kind"})
      EXPECT_EQ(one[member], rule[member]) << label;
  }
  const std::string text = said("explain --rule all_gather_c3").text;
  EXPECT_NE(text.find("minor-most suffix"), std::string::npos) << text;
  EXPECT_NE(text.find("all_gather(t, E, zy)"), std::string::npos) << text;
}

/// The examples of the table, each run in a fresh folder.
class RuleExamples : public Cli {
 protected:
  /// The label of the error that ends these commands of a shell, if they say one line and exit
  /// with 2; otherwise what they do.
  std::string refusal(const std::string& command) const {
    fs::remove_all(directory_);
    fs::create_directories(path("bin"));
    fs::create_symlink(fs::absolute(SHARDPROOF_CLI), path("bin/shardproof"));
    fs::create_symlink("/usr/bin/python3", path("bin/python3"));
    write("command", command + "\n");
    const int status = std::system(("cd '" + directory_.string() +
                                    "' && PATH=\"$PWD/bin:$PATH\" sh command >out 2>err </dev/null")
                                       .c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const std::string text = slurp(path("err"));
    static const std::regex line("shardproof: ([a-z0-9_]+): [^\n]*\n");
    std::smatch found;
    if (code == 2 && std::regex_match(text, found, line)) return found[1];
    return "exit code " + std::to_string(code) + ": " + text;
  }
};

constexpr std::size_t kParts = 4;
class PartOfRuleExamples : public RuleExamples, public testing::WithParamInterface<std::size_t> {};

TEST_P(PartOfRuleExamples, EndsWithItsLabel) {
  const std::vector<nlohmann::json> rules = listed("rules");
  for (std::size_t i = GetParam(); i < rules.size(); i += kParts) {
    if (rules[i]["kind"] != "command") continue;
    EXPECT_EQ(refusal(rules[i]["example"]), rules[i]["label"].get<std::string>())
        << rules[i]["example"];
  }
}

TEST_F(RuleExamples, ThatEndOtherwiseAreSeen) {
  EXPECT_EQ(refusal("shardproof verify --batch x"), "case_c3");
  EXPECT_NE(refusal("shardproof list rules --json").find("exit code 0"), std::string::npos);
  EXPECT_NE(refusal("echo no >&2; shardproof verify --batch x").find("exit code 2: no\n"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Table, PartOfRuleExamples, testing::Range(std::size_t{0}, kParts));

/// A label that no command has is shown by a test, or by .ci/run on another processor. Programs are
/// run where the typing rules are tested.
TEST(Rules, WithoutACommandAreShownByATest) {
  const std::set<std::string> words =
      words_of(sources({"tests"}) + slurp(SHARDPROOF_SOURCE "/.ci/run"));
  std::size_t calls = 0;
  for (const auto& rule : listed("rules")) {
    if (rule["kind"] != "call") continue;
    const std::string label = rule["label"];
    EXPECT_TRUE(words.contains(label)) << label;
    ++calls;
  }
  EXPECT_GE(calls, 40U);
}

/// "docs/cost.md, \"Chips\"" or "docs/spec-case.md section 6.2": the page has that heading.
TEST(Rules, NamePagesAndSectionsThatAre) {
  static const std::regex form("(docs/[a-z-]+\\.md)(, \"(.+)\"| section ([0-9.]+))?");
  for (const auto& rule : listed("rules")) {
    const std::string document = rule["document"];
    std::smatch found;
    ASSERT_TRUE(std::regex_match(document, found, form)) << document;
    const fs::path page = fs::path(SHARDPROOF_SOURCE) / found[1].str();
    ASSERT_TRUE(fs::exists(page)) << page;
    const std::string text = slurp(page);
    const std::string heading = found[3].matched   ? "\n## " + found[3].str() + "\n"
                                : found[4].matched ? "\n### " + found[4].str() + " "
                                                   : "";
    EXPECT_NE(text.find(heading), std::string::npos) << document;
  }
}

TEST(Rules, OfAPageOfMarkdownAreAllThere) {
  const std::string page = said("list rules --markdown").text;
  for (const auto& rule : listed("rules")) {
    const std::string label = rule["label"];
    static const std::regex row("\\| `[a-z0-9_]+` \\| [^|]+ \\| ([^|\\\\]|\\\\.)+ \\|");
    const auto at = page.find("\n| `" + label + "` | ");
    ASSERT_NE(at, std::string::npos) << label;
    const std::string line = page.substr(at + 1, page.find('\n', at + 1) - at - 1);
    EXPECT_TRUE(std::regex_match(line, row)) << line;
  }
  for (const std::string& op : op_names())
    EXPECT_NE(page.find("\n### " + op + "\n"), std::string::npos) << op;
  EXPECT_EQ(said("list rules --markdown --json").code, 2);
  EXPECT_EQ(said("list ops --markdown").code, 2);
}

TEST(Lists, SayWhatTheCodeKnows) {
  for (const auto& op : listed("ops"))
    for (const char* member : {"form", "does", "result", "example"})
      EXPECT_NE(op[member], "") << op["op"] << " has no " << member;
  EXPECT_GE(op_names().size(), 29U);
  const auto strategies = listed("strategies");
  std::map<std::string, nlohmann::json> by_name;
  for (const auto& one : strategies) {
    EXPECT_NE(one["description"], "") << one;
    EXPECT_TRUE(by_name.emplace(one["strategy"], one).second) << one;
  }
  EXPECT_GE(by_name.size(), 37U);
  EXPECT_EQ(by_name["wg-xyz:batch"]["divisible"],
            (nlohmann::json{{"E", "X"}, {"F", "YZ"}, {"H", "YZ"}, {"V", "XYZ"}, {"B", "XYZ"}}));
  EXPECT_EQ(by_name["ws1d:heads"]["divisible"],
            (nlohmann::json{{"E", "XYZ"}, {"F", "XYZ"}, {"H", "XYZ"}, {"V", "XYZ"}}));
  EXPECT_EQ(by_name["wg-x:natural"]["divisible"]["E"], "X YZ");
  EXPECT_EQ(by_name["sp:1d"]["divisible"]["L"], "XYZ");
  EXPECT_EQ(by_name["sp:1d"]["decodes"], false);
  EXPECT_EQ(by_name["dp"]["decodes"], true);
  // Every name that the specification of cases and the help point to is one.
  const std::string text = said("list strategies").text;
  for (const auto& [name, one] : by_name)
    EXPECT_NE(text.find("\n" + name + " "), std::string::npos) << name;
  EXPECT_NE(text.find("XYZ divides F H V L (prefill only)"), std::string::npos) << text;
  const auto models = nlohmann::json::parse(said("list models --json").text);
  EXPECT_EQ(models["presets"][0]["preset"], "palm-tiny");
  EXPECT_EQ(models["presets"][0]["E"], 96);
  EXPECT_EQ(models["keys"].size(), 22U);
  EXPECT_EQ(models["presets"].size(), 17U);
  EXPECT_EQ(models["presets"][4]["preset"], "gptj");
  EXPECT_NE(models["presets"][4]["keys"].get<std::string>().find("bias=ffn"), std::string::npos);
}

TEST(Lists, FitEightyColumns) {
  for (const char* subject : {"strategies", "models", "chips", "ops", "rules"}) {
    const Said o = said(std::string("list ") + subject);
    EXPECT_EQ(o.code, 0);
    std::istringstream lines(o.text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80U) << line;
      EXPECT_FALSE(line.ends_with(" ")) << "'" << line << "'";
    }
  }
}

/// Every member's name, but those under `data`, whose members are names of data.
void member_names(const nlohmann::json& json, std::set<std::string>& names) {
  static const std::set<std::string> data{"checkpoints", "divisible", "relative", "sent",
                                          "sent_in_full"};
  if (json.is_array())
    for (const auto& item : json) member_names(item, names);
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    names.insert(name);
    if (!data.contains(name)) member_names(value, names);
  }
}

TEST(Json, HasASchemaAndItsMembersAreDocumented) {
  std::ifstream file(SHARDPROOF_SOURCE "/docs/json.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const std::string weights = (fs::temp_directory_path() / "shardproof-json-test.h5").string();
  const std::string tables = (fs::temp_directory_path() / "shardproof-json-test.layouts").string();
  const std::string program = (fs::temp_directory_path() / "shardproof-json-test.txt").string();
  std::ofstream(tables) << "layouts mine\nin : B_zLE\nweights : E F H\nattend : B_zLHQ\n";
  const std::string small = " --torus 1x1x2 --model palm-tiny,layers=1,E=8,F=8,H=4,Q=2,V=8 ";
  ASSERT_EQ(said("weights generate --model palm-tiny,layers=1,E=8,F=8,H=4,Q=2,V=8 --out '" +
                 weights + "'")
                .code,
            0);
  std::ofstream(program) << said("explain ws1d --text" + small).text;
  const std::vector<std::string> calls{
      "verify --json" + small,
      "verify --json --regime f32" + small,
      "verify --json --cases 2",
      "verify --json --weights '" + weights + "'",
      "run --json --checkpoints" + small,
      "run --json --lengths 3,1 --batch 2 --stop 3" + small,
      "explain ws2d:batch --json" + small,
      "explain ws2d:batch --json --lengths ragged" + small,
      "explain ws2d:batch --prefill ws1d --json" + small,
      "explain wg-xy --layouts --json" + small,
      "explain --json --layouts '" + tables + "'" + small,
      "run --json --layouts '" + tables + "'" + small,
      "verify --json --layouts '" + tables + "'" + small,
      "verify --json --program-prefill '" + program + "'" + small,
      "explain --rule case_c1 --json",
      "weights inspect --json '" + weights + "'",
      "plan --json --skipped --chips 8 --model palm-tiny",
      "plan --json --chips 8 --model palm-tiny --phase prefill "
      "--volumes paper",
      "plan --json --chips 8 --model palm-tiny --capacity",
      "plan --json --chips 8 --model palm-tiny --pareto --csv '" + weights + ".csv'",
      "plan --json --chips 8 --model palm-tiny --split --ttft 1s "
      "--tpot 1s --context 48",
      "paper --json",
      "list strategies --json",
      "list models --json",
      "list chips --json",
      "intensity --json",
      "cost parameters --json",
      "cost pipeline --stages 3 --json",
      "cost experts --json",
      "cost offload --model phi-2 --json",
      "cost speculation --json",
      "list ops --json",
      "list rules --json"};
  for (const std::string& call : calls) {
    const Said o = said(call);
    ASSERT_EQ(o.code, 0) << call << o.text;
    const auto json = nlohmann::json::parse(o.text);
    EXPECT_EQ(json["schema"], 2) << call;
    std::set<std::string> names;
    member_names(json, names);
    for (const std::string& name : names)
      EXPECT_NE(document.find("`" + name + "`"), std::string::npos)
          << call << " prints the member " << name << ", which docs/json.md does not name";
  }
  for (const std::string& made : {weights, tables, program, weights + ".csv"}) fs::remove(made);
}

}  // namespace
}  // namespace shardproof
