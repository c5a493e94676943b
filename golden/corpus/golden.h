#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "golden/corpus/document.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// A golden as one line asks for it: "layouts 4x2x3", "collectives 4x2x3" or a case line. Throws
/// Error("corpus_cases", ...) on another first word, what Torus::parse, parse_case and model_golden
/// throw; and NotEqual where the engine has other bits.
dump::Dump made_golden(std::string_view line);

/// The same line as print_case and Torus write it. Throws what made_golden throws of the line.
std::string full_line(std::string_view line);

/// The line that a golden was made by, in full. Throws what kind_of and case_of throw, and
/// Error("golden_torus", ...) where a golden of layouts or collectives has no torus.
std::string line_of(const dump::Dump& golden);

/// What a check of a golden found.
struct Checked {
  Kind kind = Kind::layouts;
  std::int64_t values = 0;  ///< arrays that are equal bit for bit to what was made anew
  std::string fault;        ///< what is not as it must be; empty if all is
};

/// Makes a golden anew from what it says of itself, by the unsharded model or the judge's map, and
/// compares every attribute and every bit; that the engine agrees is a part of making it. Throws
/// what line_of throws, and Error("memory_c1", ...). A golden that cannot be made anew otherwise
/// has a fault: the text of an Error, of those that expected_model throws, "golden_layout" (a value
/// that is not called as a layout without partial sums, or is not stacked shards of it) or
/// "golden_operand" (of collectives: an operand, op or layout that is missing or cannot be;
/// summands that do not add up exactly).
Checked check(const dump::Dump& golden);

}  // namespace shardproof::corpus
