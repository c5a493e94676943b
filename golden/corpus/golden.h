#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "golden/corpus/document.h"
#include "weights/error.h"

namespace shardproof::corpus {

/// A golden as one line asks for it: "layouts 4x2x3", "collectives 4x2x3" or a case line. Throws
/// Error("corpus_cases", ...) on another first word, what Torus::parse and parse_case throw, and
/// what the golden of that kind throws.
dump::Dump made_golden(std::string_view line);

/// The same line as print_case and Torus write it. Throws what made_golden throws of the line.
std::string full_line(std::string_view line);

/// The line that a golden was made by, in full.
std::string line_of(const dump::Dump& golden);

/// What a check of a golden found.
struct Checked {
  Kind kind = Kind::layouts;
  std::int64_t values = 0;  ///< arrays that are equal bit for bit to what was made anew
  std::string fault;        ///< what is not as it must be; empty if all is
};

/// Makes a golden anew from what it says of itself, by the unsharded model or the judge's map, and
/// compares every attribute and every bit; that the engine agrees is a part of making it. A golden
/// that cannot be made anew has a fault, too.
Checked check(const dump::Dump& golden);

}  // namespace shardproof::corpus
