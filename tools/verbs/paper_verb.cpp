#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/cost/paper/calibration.h"
#include "engine/cost/paper/comparison.h"
#include "tools/command/command_line.h"
#include "tools/command/verbs.h"
#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "weights/base/detail/replace_file.h"

namespace shardproof::tools {
namespace {

using cost::ComparedRow;
using cost::ComparedSection;
using cost::ComparedTotals;

struct PaperOptions {
  std::string only, out, constants;
  bool fit = false;
  bool json = false;
};

constexpr std::size_t kWhat = 31, kPublished = 13, kOurs = 14, kDeviation = 8;

std::string deviation_text(const ComparedRow& row) {
  if (!row.deviation) return "";
  constexpr double kPercent = 100.0, kShown = 0.05;
  const double percent = kPercent * *row.deviation;
  return std::abs(percent) < kShown ? "0.0 %" : fmt::format("{:+.1f} %", percent);
}

void print_row(const ComparedRow& row) {
  const std::string what = "  " + row.what;
  fmt::print("{:<{}}{:>{}}{:>{}}{:>{}} {}\n", what, kWhat, row.published, kPublished, row.ours,
             kOurs, deviation_text(row), kDeviation, to_string(row.verdict));
  if (!row.why.empty()) fmt::print("    {}\n", wrapped(row.why, kWidth - 4, "    "));
}

void print_section(const ComparedSection& section) {
  fmt::print("{}\n", wrapped(section.name + "  " + section.title, kWidth, "  "));
  for (const ComparedRow& row : section.rows) print_row(row);
  for (const std::string& note : section.notes)
    fmt::print("  {}\n", wrapped(note, kWidth - 2, "  "));
  fmt::print("\n");
}

nlohmann::json json_of(const ComparedSection& section) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ComparedRow& row : section.rows) {
    nlohmann::json one{{"what", row.what},
                       {"published", row.published},
                       {"ours", row.ours},
                       {"verdict", to_string(row.verdict)}};
    if (row.deviation) one["deviation"] = *row.deviation;
    if (!row.why.empty()) one["why"] = row.why;
    rows.push_back(std::move(one));
  }
  return {{"section", section.name},
          {"title", section.title},
          {"rows", std::move(rows)},
          {"notes", section.notes}};
}

void print_head() {
  fmt::print("{:<{}}{:>{}}{:>{}}{:>{}} verdict\n\n", "Published in the paper", kWhat, "published",
             kPublished, "ours", kOurs, "apart", kDeviation);
}

void print_end(const ComparedTotals& totals) {
  fmt::print(
      "{} numbers, choices and orders: {} hold, {} not explained, {} FAILED.\n"
      "rounding: ours rounds to what is printed. near: an estimate no farther off than\n"
      "the worst point of Tables 2 and 3 when it is left out of the fit. Not compared:\n"
      "Figures 1, B.1 and C.1 and the FasterTransformer tables D.2 to D.4, which are\n"
      "not among the data here. Sources and formulas: docs/cost.md.\n",
      totals.rows, totals.hold, totals.unexplained, totals.failed);
}

int compare_with_paper(const PaperOptions& o) {
  const cost::Efficiency efficiency =
      o.constants.empty() ? cost::fitted_efficiency() : cost::load_efficiency(o.constants);
  std::vector<ComparedSection> sections;
  if (!o.only.empty())
    sections.push_back(cost::compared(o.only, efficiency));
  else
    for (const std::string& name : cost::section_names())
      sections.push_back(cost::compared(name, efficiency));
  const ComparedTotals totals = totals_of(sections);
  if (o.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const ComparedSection& section : sections) list.push_back(json_of(section));
    fmt::print("{}\n", json_text({{"sections", std::move(list)},
                                  {"totals",
                                   {{"rows", totals.rows},
                                    {"hold", totals.hold},
                                    {"unexplained", totals.unexplained},
                                    {"failed", totals.failed}}},
                                  {"held", totals.failed == 0}}));
  } else {
    print_head();
    for (const ComparedSection& section : sections) print_section(section);
    print_end(totals);
  }
  return totals.failed == 0 ? 0 : 1;
}

int fit_constants(const PaperOptions& o) {
  const std::string text = print_calibration(cost::table_calibration());
  if (o.out.empty())
    fmt::print("{}", text);
  else
    replace_file(o.out, text, "file_write");
  return 0;
}

}  // namespace

void add_paper(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<PaperOptions>();
  CLI::App* verb = app.add_subcommand("paper", "The paper's numbers beside the cost model's");
  CLI::Option* only = verb->add_option("--only", options->only)->type_name("SECTION");
  CLI::Option* constants =
      verb->add_option("--constants", options->constants,
                       "A file of the estimate's constants, in place of\nthe fitted ones")
          ->type_name("FILE");
  CLI::Option* json = verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->add_flag("--fit", options->fit,
                 "Fit the constants of the estimate on Tables 2\nand 3 and print their file,\n"
                 "engine/cost/work/efficiency.txt")
      ->excludes(only)
      ->excludes(json)
      ->excludes(constants);
  verb->add_option("--out", options->out, "With --fit: write that file")->type_name("FILE");
  only->description("One section:\n" +
                    wrapped(fmt::format("{}", fmt::join(cost::section_names(), ", ")), 48, ""));
  verb->footer(
      "Exit codes: 0 all checks passed, 1 a check failed, 2 bad input.\n"
      "Example: shardproof paper\n"
      "         shardproof paper --only figure-3\n"
      "         shardproof paper --fit --out efficiency.txt");
  verb->callback([&chosen, verb, options] {
    if (!options->out.empty() && !options->fit)
      throw Error("flag_c7", fmt::format("paper --out needs --fit ({})", help_of(*verb)));
    chosen = [options] {
      return options->fit ? fit_constants(*options) : compare_with_paper(*options);
    };
  });
}

}  // namespace shardproof::tools
