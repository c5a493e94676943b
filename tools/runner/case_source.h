#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::tools {

/// Quotes a word for a shell: "'my file'".
std::string shell_word(const std::string& text);

/// The user's files that replace strategies.
struct LayerFileNames {
  std::optional<std::string> program;  ///< a layer program, prefill and decode alike
  std::optional<std::string> program_prefill, program_decode;
  std::optional<std::string> layouts;  ///< tables that the case names

  bool any() const { return program || program_prefill || program_decode || layouts; }
  /// Return the program file that replaces the phase's strategy, or null.
  const std::string* of_prefill() const;
  const std::string* of_decode() const;
  /// Returns the given files with their JSON member names: "program_prefill".
  std::vector<std::pair<std::string, std::string>> members() const;
  /// Returns the flags as shell words: " --layouts my.layouts --program-prefill p.txt".
  std::string words() const;
};

/// Inputs of a run of many cases besides their case lines, for reports and for the commands that
/// rerun a case.
struct CaseSource {
  LayerFileNames files = {};  ///< replace strategies, or add to the shipped ones
  std::string weights = {};   ///< a weights file
  bool alone = false;         ///< every chip computes alone: --hazards full

  /// Returns the command that reruns this case: "shardproof verify --case ...".
  std::string command(const Case& c) const;
  /// Returns the names of prefill and decode in a row: a strategy, a program's file, or "-" if
  /// there is none.
  std::pair<std::string, std::string> phases(const Case& c) const;
};

}  // namespace shardproof::tools
