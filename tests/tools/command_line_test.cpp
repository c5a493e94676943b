// Every verb and every flag, used wrongly: one line in the project's own form, exit 2.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/program_output.h"

namespace shardproof {
namespace {

struct Flag {
  std::string name;
  std::string type;  // N, FILE, ... where help names it
};

struct Verb {
  std::string path;  // "weights generate"; "" is the program itself
  std::vector<std::string> verbs;
  std::vector<Flag> flags;
};

/// Reads a verb's help, whose form differs between releases of CLI11: its flags and its verbs.
Verb read_verb(const std::string& path) {
  Verb verb{.path = path, .verbs = {}, .flags = {}};
  const std::regex flag("^ {2,10}(?:-h, *)?(--[a-z-]+)(?: ([A-Z]+)\\b)?.*"), name("^  ([a-z]+) .*");
  std::istringstream lines(said(path + " --help").text);
  bool subcommands = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ')
      subcommands = line.starts_with("Subcommands:") || line.starts_with("SUBCOMMANDS:");
    std::smatch found;
    if (std::regex_match(line, found, flag))
      verb.flags.push_back({found[1], found[2]});
    else if (subcommands && std::regex_match(line, found, name))
      verb.verbs.push_back(found[1]);
  }
  return verb;
}

std::vector<Verb> all_verbs() {
  std::vector<Verb> all{read_verb("")};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Verb parent = all[i];
    for (const std::string& name : parent.verbs)
      all.push_back(read_verb(parent.path.empty() ? name : parent.path + " " + name));
  }
  return all;
}

bool takes_value(const Flag& flag) {
  static const std::set<std::string> none{
      "--help",        "--version", "--json",         "--text",     "--paper",   "--checkpoints",
      "--quiet",       "--all",     "--all-findings", "--released", "--alone",   "--skipped",
      "--capacity",    "--pareto",  "--search",       "--split",    "--fit",     "--markdown",
      "--annotations", "--same",    "--zoo",          "--list",     "--smallest"};
  // `list models --text NAME` has a name, `explain --text` none; `faults --json FILE` has a file.
  return !none.contains(flag.name) || flag.type == "TEXT" || flag.type == "FILE";
}

bool may_lack_value(const Verb& verb, const Flag& flag) {
  return verb.path == "explain" && flag.name == "--layouts";
}

/// One line "shardproof: LABEL: ... (see shardproof VERB --help)" that says `says`, and exit 2.
void expect_refused(const std::string& verb, const std::string& rest, const std::string& label,
                    const std::string& says) {
  const Said o = said(verb + " " + rest);
  const std::string what = "shardproof " + verb + " " + rest + "\n" + o.text;
  EXPECT_EQ(o.code, 2) << what;
  EXPECT_TRUE(o.text.starts_with("shardproof: " + label + ": ")) << what;
  EXPECT_TRUE(
      o.text.ends_with(" (see shardproof" + (verb.empty() ? "" : " " + verb) + " --help)\n"))
      << what;
  EXPECT_EQ(std::count(o.text.begin(), o.text.end(), '\n'), 1) << what;
  EXPECT_NE(o.text.find(says), std::string::npos) << what << "does not say: " << says;
}

TEST(CommandLine, HasTheVerbsAndFlagsThatAreTestedHere) {
  std::size_t verbs = 0, flags = 0;
  for (const Verb& verb : all_verbs()) {
    ++verbs;
    flags += verb.flags.size();
    for (const Flag& flag : verb.flags)
      if (flag.name == "--threads" || flag.name == "--cases") {
        EXPECT_EQ(flag.type, "N") << verb.path;
      }
  }
  EXPECT_GE(verbs, 12U);
  EXPECT_GE(flags, 70U);
}

TEST(CommandLine, AMisspeltFlagIsNamedWithTheNearest) {
  for (const Verb& verb : all_verbs())
    for (const Flag& flag : verb.flags) {
      std::string twice = flag.name;
      twice.insert(2, 1, flag.name[2]);
      expect_refused(verb.path, twice + "=3", "flag_c1",
                     "no flag " + twice + ", did you mean " + flag.name + "?");
    }
}

TEST(CommandLine, AFlagNeedsItsValueAndNoOther) {
  for (const Verb& verb : all_verbs())
    for (const Flag& flag : verb.flags) {
      if (!takes_value(flag)) {
        for (const char* value : {"=true", "="})
          expect_refused(verb.path, flag.name + value, "flag_c2", flag.name + " takes no value");
        continue;
      }
      if (!may_lack_value(verb, flag)) {
        expect_refused(verb.path, flag.name, "flag_c2", flag.name + " needs a value: ");
        expect_refused(verb.path, flag.name + " --help", "flag_c2", flag.name + " needs a value: ");
      }
      for (const char* value : {" ' '", "="})
        expect_refused(verb.path, flag.name + value, "flag_c2",
                       "the value of " + flag.name + " is empty: ");
    }
}

TEST(CommandLine, AFlagIsGivenOnce) {
  for (const Verb& verb : all_verbs())
    for (const Flag& flag : verb.flags) {
      const std::string once = takes_value(flag) ? flag.name + " 1" : flag.name;
      const std::string again = takes_value(flag) ? flag.name + "=2" : flag.name;
      // --given may be repeated.
      if (flag.name != "--weights" && flag.name != "--given")
        expect_refused(verb.path, once + " " + again, "flag_c4", flag.name + " is given twice");
    }
  expect_refused("explain", "ws2d --layouts --layouts", "flag_c4", "--layouts is given twice");
  // --weights names a type and a file; two of either are refused.
  for (const char* verb : {"verify", "run", "explain ws2d"}) {
    EXPECT_NE(said(std::string(verb) + " --weights f32 --weights bf16").text.find("weights_flag"),
              std::string::npos);
    EXPECT_EQ(said(std::string(verb) + " --weights bf16 --weights bf16").code, 2);
  }
}

TEST(CommandLine, ANumberIsAWholeOne) {
  for (const Verb& verb : all_verbs())
    for (const Flag& flag : verb.flags) {
      if (flag.type != "N" || flag.name == "--seed") continue;
      for (const char* bad :
           {"x", "1.5", "1e3", "0x10", "3x", "+1", "1,000", "99999999999999999999"})
        expect_refused(verb.path,
                       (verb.path == "compare" ? "one two " : "") + flag.name + " " + bad,
                       "flag_c3", flag.name + " " + std::string(bad) + ": ");
    }
}

TEST(CommandLine, AVerbIsNeededAndKnown) {
  for (const Verb& verb : all_verbs()) {
    if (verb.verbs.empty()) continue;
    expect_refused(verb.path, "", "verb_c1", "needs a verb: " + verb.verbs[0]);
    expect_refused(verb.path, "frobnicate", "verb_c2", "legal: " + verb.verbs[0]);
    expect_refused(verb.path, "''", "verb_c2", "legal: " + verb.verbs[0]);
    for (const std::string& name : verb.verbs) {
      const std::string more = name + name.back();
      expect_refused(verb.path, more, "verb_c2", "'" + more + "', did you mean " + name + "?");
    }
  }
  expect_refused("", "verfy", "verb_c2", "did you mean verify?");
  expect_refused("", "--torus 2x2x2", "verb_c1", "write shardproof verify --torus");
  expect_refused("", "--json", "verb_c1", "is written before the verb");
  expect_refused("", "-- explain", "flag_c1", "has no flag --");
}

TEST(CommandLine, NoWordIsLeftOver) {
  for (const Verb& verb : all_verbs()) {
    if (!verb.verbs.empty()) continue;
    static const std::map<std::string, std::string> taken{
        {"compare", "one two "},     {"explain", "one "},
        {"layout", "one "},          {"golden check", "one "},
        {"list map", "one "},        {"weights import", "one "},
        {"trace inspect", "one "},   {"weights fold", "one another "},
        {"weights inspect", "one "}, {"weights quantize", "one another "}};
    const auto takes = taken.find(verb.path);
    const std::string words = takes == taken.end() ? "" : takes->second;
    expect_refused(verb.path, words + "more", "flag_c5", "takes no word 'more'");
    expect_refused(verb.path, "-- " + words + "--more", "flag_c5", "takes no word '--more'");
  }
  expect_refused("verify", "torus=2x2x2", "flag_c5", "did you mean --torus 2x2x2?");
  expect_refused("verify", "gen", "flag_c5", "did you mean --gen?");
}

TEST(CommandLine, WhatIsNeededIsNamed) {
  expect_refused("weights generate", "--seed 1", "flag_c7", "needs --out");
  expect_refused("weights inspect", "--json", "flag_c7", "needs FILE");
  expect_refused("weights fold", "", "flag_c7", "needs IN");
  expect_refused("weights fold", "w.h5", "flag_c7", "needs OUT");
  expect_refused("weights quantize", "", "flag_c7", "needs IN");
  expect_refused("weights quantize", "w.h5", "flag_c7", "needs OUT");
  expect_refused("explain", "ws2d --svg a.svg --json", "flag_c6", "--json");
  for (const char* other : {"--program-prefill", "--program-decode", "--layouts"})
    expect_refused("verify", std::string("--program p.txt ") + other + " q.txt", "flag_c6",
                   std::string("--program and ") + other + " exclude each other");
}

TEST(CommandLine, FlagsOfOtherVerbsAndProgramsAreExplained) {
  expect_refused("verify", "--strategy ws2d", "flag_c1", "--prefill and --decode");
  expect_refused("explain", "ws2d --gen 3", "flag_c1", "it is one of verify, run");
  expect_refused("verify", "-json", "flag_c1", "did you mean --json?");
  expect_refused("verify", "-x", "flag_c1", "no flag -x");
  const std::string endless(3000, 'x');
  expect_refused("verify", "--" + endless, "flag_c1", "...");
  expect_refused("verify", endless, "flag_c5", "...");
  expect_refused("", endless, "verb_c2", "...");
  expect_refused("verify", "--threads " + endless, "flag_c3", "...");
}

TEST(CommandLine, WhatWouldHaveNoEffectIsRefused) {
  for (const char* idle : {"--paper", "--prefill ws1d", "--batch 24", "--prompt 3"})
    expect_refused("explain", std::string("--text ws2d ") + idle, "flag_c6", "no effect on --text");
  expect_refused("explain", "--text ws2d --wire bf16", "flag_c6", "no effect on --text");
  expect_refused("explain", "--layouts ws2d --prefill ws1d", "flag_c6", "no effect on --layouts");
  expect_refused("explain", "sp:1d --prefill ws1d", "flag_c6", "which is a prefill itself");
  for (const char* form : {"--text", "--svg a.svg"})
    expect_refused("explain", std::string("ws2d --layouts ") + form, "flag_c6",
                   "--layouts without a FILE has no effect");
}

TEST(CommandLine, TheLegalModelOfARefusalIsLegal) {
  const std::string flags = " --torus 3x1x2 --block serial --model palm-tiny,E=97,F=50,H=5,Q=2,V=7";
  const std::string refused = said("verify" + flags).text;
  const auto at = refused.find("--model palm-tiny");
  ASSERT_NE(at, std::string::npos) << refused;
  // Behind it is the padding that divides in its place.
  const std::string legal = refused.substr(at, refused.find(';', at) - at);
  const Said o = said("verify --torus 3x1x2 --block serial " + legal);
  EXPECT_EQ(o.code, 0) << legal << "\n" << o.text;
}

TEST(CommandLine, HelpFitsEightyColumnsAndHasAnExample) {
  for (const Verb& verb : all_verbs()) {
    const std::string help = said(verb.path + " --help").text;
    EXPECT_NE(help.find("Example: shardproof"), std::string::npos) << verb.path;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_EQ(said(verb.path + " -h").text, help);
    // compare takes the model from the trace; its --model says that there is none.
    const bool takes_model =
        help.find("--model ") != std::string::npos && !verb.path.empty() && verb.path != "compare";
    EXPECT_EQ(takes_model, help.find("see shardproof list models") != std::string::npos)
        << verb.path;
  }
}

TEST(CommandLine, EveryExampleInHelpIsReadAsAVerbWithItsFlags) {
  int examples = 0;
  for (const Verb& verb : all_verbs()) {
    std::istringstream lines(said(verb.path + " --help").text);
    for (std::string line; std::getline(lines, line);) {
      const auto at = line.find(" shardproof ");
      if (at == std::string::npos ||
          (!line.starts_with("Example:") && !line.starts_with("      ")) ||
          line.find("see shardproof") != std::string::npos)
        continue;
      if (line.ends_with("\\")) {
        std::string next;
        std::getline(lines, next);
        line.back() = ' ';
        line += next;
      }
      std::string call = line.substr(at + 12);
      call = call.substr(0, call.find(" > "));
      // With a word too many, it is read to its end and refused for that word alone.
      const std::string text = said(call + " -- one two three").text;
      EXPECT_TRUE(text.starts_with("shardproof: flag_c5: ")) << call << "\n" << text;
      ++examples;
    }
  }
  EXPECT_GE(examples, 25);
}

}  // namespace
}  // namespace shardproof
