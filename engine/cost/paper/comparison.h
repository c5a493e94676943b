#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cost/work/efficiency.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// The verdict on the model's number against a published one.
enum class Verdict {
  exact,        ///< the same number
  rounding,     ///< the model's number rounds to the printed one
  percent,      ///< within 2 %, the requirement for Table 1
  holds,        ///< the same choice, or the same order
  near,         ///< an estimate no farther off than the fit's worst left-out point
  unexplained,  ///< a different number, choice or order; `why` explains it
  failed        ///< a difference that must not be, or has no explanation
};
/// "exact", "rounding", "within 2 %", "holds", "near", "not explained", "FAILED".
std::string_view to_string(Verdict verdict);

struct ComparedRow {
  std::string what;
  std::string published, ours;      ///< in printed form
  std::optional<double> deviation;  ///< ours/published − 1, for numbers only
  Verdict verdict = Verdict::exact;
  std::string why;  ///< why an unexplained row differs
};

/// One figure or table.
struct ComparedSection {
  std::string name;   ///< "table-1"
  std::string title;  ///< with its source and its unit
  std::vector<ComparedRow> rows;
  std::vector<std::string> notes;
};

/// Returns the names of all sections, in the order of the report.
std::vector<std::string> section_names();
/// Compares one section with the model. Estimates use `efficiency`; the tolerance of `near` always
/// comes from the fit. Throws Error("comparison_c1", ...), naming the nearest, on an unknown name.
ComparedSection compared(std::string_view section,
                         const Efficiency& efficiency = fitted_efficiency());

/// The number of rows of the sections, by outcome.
struct ComparedTotals {
  int rows = 0, hold = 0, unexplained = 0, failed = 0;
};
ComparedTotals totals_of(std::span<const ComparedSection> sections);

}  // namespace shardproof::cost
