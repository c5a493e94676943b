#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cost/work/efficiency.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// What is said of a published number beside the model's.
enum class Verdict {
  exact,        ///< the same number
  rounding,     ///< the model's rounds to what is printed
  percent,      ///< within 2 %, as Table 1 is asked to be
  holds,        ///< the same choice, or the same order
  near,         ///< an estimate no farther off than the fit's worst point that was left out
  unexplained,  ///< another number, choice or order; `why` says what the model lacks
  failed        ///< the same, of what must hold, or where nothing is known of why
};
/// "exact", "rounding", "within 2 %", "holds", "near", "not explained", "FAILED".
std::string_view to_string(Verdict verdict);

struct ComparedRow {
  std::string what;
  std::string published, ours;      ///< as they are printed
  std::optional<double> deviation;  ///< ours over published, less 1, of numbers
  Verdict verdict = Verdict::exact;
  std::string why;  ///< of an unexplained one
};

/// One figure or table.
struct ComparedSection {
  std::string name;   ///< "table-1"
  std::string title;  ///< with its source and its unit
  std::vector<ComparedRow> rows;
  std::vector<std::string> notes;
};

/// The names of all sections, in the order of the report.
std::vector<std::string> section_names();
/// Estimates are by these constants; how near is near is told by the fit, whatever they are.
/// Throws Error("comparison_c1", ...) on an unknown name, naming the nearest.
ComparedSection compared(std::string_view section,
                         const Efficiency& efficiency = fitted_efficiency());

/// How many rows of the sections have each verdict's meaning.
struct ComparedTotals {
  int rows = 0, hold = 0, unexplained = 0, failed = 0;
};
ComparedTotals totals_of(std::span<const ComparedSection> sections);

}  // namespace shardproof::cost
