#pragma once

// The program that a test starts. Under a sanitizer it runs several times slower, and most of the
// starts only ask for a text or an exit code: there SHARDPROOF_PROGRAM may name one that was built
// without, which the starts share with the sanitized one. In any other build it is not read.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/sanitized.h"

namespace shardproof {

/// Which program is started: the sanitized one for each verb until it has ended with every exit
/// code that the verb's starts end with, for each verb and flag a few times, and now and then for
/// what is left. What is chosen depends only on the starts before.
class Programs {
 public:
  static Programs& instance() {
    static Programs all;
    return all;
  }

  /// The file to start with these words. Whoever learns the exit code says it by `ended`.
  std::string file(const std::string& arguments) {
    if (other_ == nullptr) return SHARDPROOF_CLI;
    Verb& verb = verbs_[first_word(arguments)];
    ++verb.starts;
    sanitized_ = is_next(verb, arguments);
    if (!sanitized_) return other_;
    ++verb.sanitized;
    for (const std::string& flag : flags(arguments)) ++verb.flags[flag];
    return SHARDPROOF_CLI;
  }

  void ended(const std::string& arguments, int code) {
    if (other_ == nullptr) return;
    Verb& verb = verbs_[first_word(arguments)];
    (sanitized_ ? verb.codes : verb.other_codes).insert(code);
  }

  void say() const {
    for (const auto& [name, verb] : verbs_)
      std::cout << fmt::format(
          "only {} of {} starts of '{}' under a sanitizer (SHARDPROOF_PROGRAM), ended with {}\n",
          verb.sanitized, verb.starts, name, fmt::join(verb.codes, " "));
  }

 private:
  static constexpr int kOfEachFlag = 2;
  static constexpr int kOneIn = 20;

  struct Verb {
    int starts = 0, sanitized = 0;
    std::set<int> codes, other_codes;  ///< which the sanitized program, and the other, ended with
    std::map<std::string, int> flags;  ///< how many sanitized starts had each
  };

  static std::string first_word(const std::string& arguments) {
    return arguments.substr(0, arguments.find(' '));
  }
  static std::set<std::string> flags(const std::string& arguments) {
    std::set<std::string> all;
    std::istringstream words(arguments);
    for (std::string word; words >> word;)
      if (word.starts_with("--")) all.insert(word.substr(0, word.find('=')));
    return all;
  }
  static bool is_next(Verb& verb, const std::string& arguments) {
    if (verb.starts % kOneIn == 1) return true;
    for (int code : verb.other_codes)
      if (!verb.codes.contains(code)) return true;
    for (const std::string& flag : flags(arguments))
      if (verb.flags[flag] < kOfEachFlag) return true;
    return false;
  }

  const char* const other_ = kSanitized ? std::getenv("SHARDPROOF_PROGRAM") : nullptr;
  std::map<std::string, Verb> verbs_;
  bool sanitized_ = true;  ///< whether the last start was
};

/// At the end of all tests.
class SaysPrograms : public testing::Environment {
  void TearDown() override { Programs::instance().say(); }
};
inline testing::Environment* const kSaysPrograms =
    testing::AddGlobalTestEnvironment(new SaysPrograms);

/// The file to start with these words, of which nobody says how it ended.
inline std::string program(const std::string& arguments) {
  return Programs::instance().file(arguments);
}

}  // namespace shardproof
