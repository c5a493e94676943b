#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof::tools {

/// The largest count that a flag of the cost model takes.
inline constexpr std::int64_t kMostCounted = 1LL << 40;

/// Checks the words of the command line, without the program's name, against the verbs and flags of
/// `app` before CLI11 reads them, so that errors have the project's form and do not depend on
/// CLI11's release. Throws Error, each naming the word, the nearest legal one and the verb's help:
/// "verb_c1" (no verb), "verb_c2" (unknown verb), "flag_c1" (unknown flag), "flag_c2" (no value, an
/// empty one, or one too many), "flag_c4" (given twice), "flag_c5" (a word too many), "flag_c6"
/// (mutually exclusive flags), "flag_c7" (a missing flag or word).
void check_command_line(const CLI::App& app, const std::vector<std::string>& words);

/// Returns the reference to a verb's help: "see shardproof weights generate --help".
std::string help_of(const CLI::App& verb);

/// Parses the whole number given to `flag`. Throws Error("flag_c3", ...) naming flag, value, range
/// and the verb's help.
std::int64_t whole_number(const CLI::App& verb, std::string_view flag, const std::string& text,
                          std::int64_t least, std::int64_t most);

/// Parses the decimal number given to `flag`. Throws Error("flag_c8", ...) naming flag, value and
/// the verb's help.
double decimal_number(const CLI::App& verb, std::string_view flag, const std::string& text);

/// Adds a flag that takes a decimal number.
inline CLI::Option* add_decimal(CLI::App& verb, const std::string& flag, double& out,
                                const std::string& text) {
  return verb
      .add_option_function<std::string>(
          flag,
          [&verb, &out, flag](const std::string& word) { out = decimal_number(verb, flag, word); },
          text)
      ->type_name("X");
}

/// Adds a flag that takes a whole number of type T, an integer or an optional of one.
template <class T>
CLI::Option* add_number(CLI::App& verb, const std::string& flag, T& out, const std::string& text,
                        std::int64_t least = std::numeric_limits<std::int32_t>::min(),
                        std::int64_t most = std::numeric_limits<std::int32_t>::max()) {
  return verb
      .add_option_function<std::string>(
          flag,
          [&verb, &out, flag, least, most](const std::string& word) {
            out = static_cast<T>(whole_number(verb, flag, word, least, most));
          },
          text)
      ->type_name("N");
}

}  // namespace shardproof::tools
