#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::tools {

/// "'my file'": a word as a shell reads it back.
std::string shell_word(const std::string& text);

/// The files of the user's that stand for strategies.
struct LayerFileNames {
  std::optional<std::string> program;  ///< a layer program, prefill and decode alike
  std::optional<std::string> program_prefill, program_decode;
  std::optional<std::string> layouts;  ///< tables, which the case names

  bool any() const { return program || program_prefill || program_decode || layouts; }
  /// The program's file in place of a phase's strategy, or null.
  const std::string* of_prefill() const;
  const std::string* of_decode() const;
  /// Those that are given, by the members that they are in JSON: "program_prefill".
  std::vector<std::pair<std::string, std::string>> members() const;
  /// " --layouts my.layouts --program-prefill p.txt", as a shell reads it.
  std::string words() const;
};

/// Where the cases of a run of many come from besides their lines: what a report says of it, and
/// what the command needs that runs one of them again.
struct CaseSource {
  LayerFileNames files = {};  ///< in place of strategies, or beside those that ship
  std::string weights = {};   ///< a weights file
  bool alone = false;         ///< every chip computes by itself: --hazards full

  /// "shardproof verify --case ...": runs this case again.
  std::string command(const Case& c) const;
  /// How a row names prefill and decode: a strategy, a program's file, or "-" where there is none.
  std::pair<std::string, std::string> phases(const Case& c) const;
};

}  // namespace shardproof::tools
