#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "golden/corpus/document.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// Makes a golden from a line: "layouts 4x2x3", "collectives 4x2x3" or a case line. Throws
/// Error("corpus_cases", ...) on another first word, what Torus::parse, parse_case and model_golden
/// throw, and NotEqual if the engine has other bits.
dump::Dump made_golden(std::string_view line);

/// Returns the full line, as print_case and Torus write it. Throws what made_golden throws for it.
std::string full_line(std::string_view line);

/// Returns the line, in full, that a golden was made from. Throws what kind_of and case_of throw,
/// and Error("golden_torus", ...) if a golden of layouts or collectives has no torus.
std::string line_of(const dump::Dump& golden);

/// The result of checking a golden.
struct CheckResult {
  Kind kind = Kind::layouts;
  std::int64_t values = 0;  ///< arrays equal bit for bit to the recomputed ones
  std::string fault;        ///< the first difference; empty if there is none
};

/// Recomputes a golden from its own description, by the unsharded model or the judge's map, and
/// compares every attribute and every bit; that includes a comparison with the engine. Throws what
/// line_of throws, and Error("memory_c1", ...). If a golden cannot be recomputed for another
/// reason, that is its fault: the text of an Error, of those that expected_model throws,
/// "golden_layout" (a value whose name is not a layout without partial sums, or that is not stacked
/// shards of it) or "golden_operand" (of collectives: an operand, op or layout that is missing or
/// impossible; partial sums that do not add up exactly).
CheckResult check(const dump::Dump& golden);

}  // namespace shardproof::corpus
