#include "engine/cost/paper/comparison.h"

#include <fmt/args.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "engine/cost/paper/calibration.h"
#include "engine/cost/paper/detail/comparison_rows.h"
#include "weights/base/nearest.h"

namespace shardproof::cost {
namespace {

constexpr std::array<std::string_view, 7> kVerdicts{"exact", "rounding",      "within 2 %", "holds",
                                                    "near",  "not explained", "FAILED"};

Verdict verdict_named(std::string_view name) {
  const auto at = std::find(kVerdicts.begin(), kVerdicts.end(), name);
  if (at == kVerdicts.end())
    throw std::logic_error(fmt::format("published.txt: {} is not a verdict", name));
  return static_cast<Verdict>(at - kVerdicts.begin());
}

std::string filled(const std::string& text, const std::vector<double>& numbers) {
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  for (const double number : numbers) arguments.push_back(number);
  return fmt::vformat(text, arguments);
}

/// Compares the rows of one section, one after the other.
class Comparer {
 public:
  Comparer(const PublishedSection& of, const Efficiency& efficiency)
      : of_(of), efficiency_(efficiency) {}

  ComparedSection compare() {
    section_.name = of_.name;
    section_.title = of_.title;
    for (const PublishedRow& row : of_.rows) row.verdict == "holds" ? choose(row) : measure(row);
    for (const PublishedNote& note : of_.notes) {
      std::vector<double> numbers;
      for (const Formula& formula : note.numbers) numbers.push_back(value_of(formula, efficiency_));
      section_.notes.push_back(filled(note.text, numbers));
    }
    return std::move(section_);
  }

 private:
  void choose(const PublishedRow& row) {
    const ComparedChoice choice = choice_of(row, known_, efficiency_);
    add({row.what, choice.published, choice.ours, {}, Verdict::holds, {}},
        choice.published == choice.ours, Verdict::holds, choice.numbers);
  }

  void measure(const PublishedRow& row) {
    const Range ours = range_of(row.ours, efficiency_);
    if (row.verdict == "-") {
      known_.push_back({&row, ours.value, ours.value});
      return;
    }
    const Verdict verdict = verdict_named(row.verdict);
    ComparedRow compared{row.what, row.published, {}, {}, {}, {}};
    Range published{};
    int decimals = 3;
    if (is_quantity(row.published)) {
      Formula formula = row.ours;
      formula.quantity = row.published;
      published = range_of(formula, efficiency_);
      compared.published = fmt::format("{:.{}f}", published.value, decimals);
    } else {
      const Printed printed{row.published};
      published = range_of(printed);
      decimals =
          printed.decimals() + (verdict == Verdict::rounding || verdict == Verdict::near ? 1 : 0);
    }
    compared.ours = fmt::format("{:.{}f}", ours.value, decimals);
    compared.deviation = ours.value / published.value - 1.0;
    known_.push_back({&row, published.value, ours.value});
    add(std::move(compared), agree(verdict, published, ours), verdict, {});
  }

  void add(ComparedRow row, bool holds, Verdict verdict, const std::vector<double>& numbers) {
    row.verdict = holds ? verdict : Verdict::failed;
    for (const Reason& reason : of_.reasons)
      if (row.verdict == Verdict::failed && row.what.ends_with(reason.end) &&
          (reason.ours.empty() || reason.ours == row.ours.substr(0, row.ours.find(':')))) {
        row.verdict = Verdict::unexplained;
        row.why = filled(reason.text, numbers);
      }
    section_.rows.push_back(std::move(row));
  }

  const PublishedSection& of_;
  const Efficiency& efficiency_;
  ComparedSection section_;
  std::vector<KnownRow> known_;
};

}  // namespace

std::string_view to_string(Verdict verdict) {
  return kVerdicts.at(static_cast<std::size_t>(verdict));
}

bool agree(Verdict verdict, const Range& published, const Range& ours) {
  constexpr double kAsked = 0.02;
  // A half may be rounded either way, and need not be exact in binary: the number, the printed
  // value, the half unit and the difference are each off by at most half an epsilon of the number.
  // As much again covers the few products and quotients that produce such a number.
  const double binary = 4 * std::numeric_limits<double>::epsilon() * std::abs(ours.value);
  const double deviation = std::abs(ours.value / published.value - 1.0);
  switch (verdict) {
    case Verdict::exact:
      return ours.value == published.value;
    case Verdict::rounding:
      return ours.least <= published.most + binary && published.least - binary <= ours.most;
    case Verdict::percent:
      return deviation <= kAsked;
    default:
      return deviation <= table_calibration().worst_left_out();
  }
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const PublishedSection& section : published_sections()) names.push_back(section.name);
  return names;
}

ComparedSection compared(std::string_view name, const Efficiency& efficiency) {
  for (const PublishedSection& section : published_sections())
    if (section.name == name) return Comparer(section, efficiency).compare();
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
