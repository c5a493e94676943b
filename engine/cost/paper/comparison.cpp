#include "engine/cost/paper/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/cost/paper/calibration.h"
#include "engine/cost/paper/detail/comparison_rows.h"
#include "weights/base/detail/word_table.h"
#include "weights/base/nearest.h"

namespace shardproof::cost {
namespace {

constexpr std::pair<std::string_view, Verdict> kVerdicts[] = {
    {"exact", Verdict::exact},        {"rounding", Verdict::rounding},
    {"within 2 %", Verdict::percent}, {"holds", Verdict::holds},
    {"near", Verdict::near},          {"not explained", Verdict::unexplained},
    {"FAILED", Verdict::failed}};

struct SectionMaker {
  std::string_view name;
  ComparedSection (*make)(const Efficiency& efficiency);
};
constexpr std::array<SectionMaker, 13> kSections{{{"table-1", compared_table_1},
                                                  {"figure-3", compared_figure_3},
                                                  {"optima", compared_optima},
                                                  {"parameters", compared_parameters},
                                                  {"mfu", compared_mfu},
                                                  {"cost", compared_cost},
                                                  {"times", compared_times},
                                                  {"volumes", compared_volumes},
                                                  {"layouts", compared_layouts},
                                                  {"figure-6", compared_figure_6},
                                                  {"figure-7", compared_figure_7},
                                                  {"figure-8", compared_figure_8},
                                                  {"serial", compared_serial}}};

/// Formats a number with `more` decimals beyond those of the printed one.
std::string shown(Printed published, double number, int more) {
  const auto point = published.text.find('.');
  const auto decimals =
      point == std::string_view::npos ? std::size_t{0} : published.text.size() - point - 1;
  return fmt::format("{:.{}f}", number, static_cast<int>(decimals) + more);
}

ComparedRow number_row(std::string what, Printed published, double ours, int more) {
  ComparedRow row;
  row.what = std::move(what);
  row.published = published.text;
  row.ours = shown(published, ours, more);
  row.deviation = ours / published.value() - 1.0;
  return row;
}

ComparedRow judged(ComparedRow row, bool held, Verdict verdict, std::string why) {
  row.verdict = held ? verdict : why.empty() ? Verdict::failed : Verdict::unexplained;
  if (!held) row.why = std::move(why);
  return row;
}

}  // namespace

std::string_view to_string(Verdict verdict) { return word_in(kVerdicts, verdict); }

ComparedRow exact_row(std::string what, Printed published, double ours) {
  return judged(number_row(std::move(what), published, ours, 0), ours == published.value(),
                Verdict::exact, "");
}

ComparedRow rounded_row(std::string what, Printed published, double ours) {
  return rounded_row(std::move(what), published, ours, ours, ours);
}

ComparedRow rounded_row(std::string what, Printed published, double ours, double least,
                        double most) {
  const bool held = published.rounds(std::clamp(published.value(), least, most));
  return judged(number_row(std::move(what), published, ours, 1), held, Verdict::rounding, "");
}

ComparedRow percent_row(std::string what, Printed published, double ours) {
  constexpr double kAsked = 0.02;
  ComparedRow row = number_row(std::move(what), published, ours, 0);
  const bool held = std::abs(*row.deviation) <= kAsked;
  return judged(std::move(row), held, Verdict::percent, "");
}

ComparedRow estimate_row(std::string what, Printed published, double ours, std::string why) {
  ComparedRow row = number_row(std::move(what), published, ours, 1);
  const bool held = std::abs(*row.deviation) <= table_calibration().worst_left_out();
  return judged(std::move(row), held, Verdict::near, std::move(why));
}

ComparedRow choice_row(std::string what, std::string published, std::string ours, std::string why) {
  ComparedRow row;
  row.what = std::move(what);
  const bool held = published == ours;
  row.published = std::move(published);
  row.ours = std::move(ours);
  return judged(std::move(row), held, Verdict::holds, std::move(why));
}

std::string column_name(const MeasuredPass& pass) {
  constexpr double kGiga = 1e9;
  return fmt::format("{:.0f}B {}", pass.parameters / kGiga, pass.column);
}

std::string lesser(Named a, Named b) {
  return std::string(b.second < a.second ? b.first : a.first);
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const SectionMaker& section : kSections) names.emplace_back(section.name);
  return names;
}

ComparedSection compared(std::string_view name, const Efficiency& efficiency) {
  for (const SectionMaker& section : kSections) {
    if (section.name != name) continue;
    ComparedSection made = section.make(efficiency);
    made.name = section.name;
    return made;
  }
  const std::string near = nearest(name, section_names());
  throw Error("comparison_c1", fmt::format("the paper has no section '{}' here{} legal: {}", name,
                                           near.empty() ? ";" : ", did you mean " + near + "?",
                                           fmt::join(section_names(), " ")));
}

ComparedTotals totals_of(std::span<const ComparedSection> sections) {
  ComparedTotals totals;
  for (const ComparedSection& section : sections)
    for (const ComparedRow& row : section.rows) {
      ++totals.rows;
      if (row.verdict == Verdict::failed)
        ++totals.failed;
      else if (row.verdict == Verdict::unexplained)
        ++totals.unexplained;
      else
        ++totals.hold;
    }
  return totals;
}

}  // namespace shardproof::cost
