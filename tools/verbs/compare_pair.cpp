#include "tools/verbs/compare_pair.h"

#include <fmt/format.h>

#include <utility>

#include "tools/command/command_line.h"
#include "tools/report/pair_json.h"
#include "tools/report/pair_page.h"
#include "tools/report/pair_text.h"
#include "weights/base/detail/replace_file.h"

namespace shardproof::tools {
namespace {

/// Throws Error("compare_model", ...) if a flag says something of the model.
void require_no_model(const ComparisonRequest& a, const PairFlags& flags) {
  const std::pair<const char*, bool> given[] = {
      {"--case", a.line.has_value()},         {"--case-of-b", flags.line.has_value()},
      {"--weights", !a.weights_file.empty()}, {"--weights-of-b", !flags.weights_file.empty()},
      {"--given", !a.given.empty()},          {"--runs", flags.runs >= 0}};
  for (const auto& [flag, is_given] : given)
    if (is_given)
      throw Error("compare_model",
                  fmt::format("{} is of a model, and --model none compares without one: leave one "
                              "of them out",
                              flag));
}

}  // namespace

void add_pair_flags(CLI::App& verb, PairFlags& flags, CLI::Option& other) {
  verb.add_flag("--same", flags.same,
                "Match two traces by rows and positions:\nchunked and whole, a row alone and in a "
                "batch")
      ->needs(&other);
  verb.add_option(
          "--model", flags.model,
          "none: two traces of a model that is not known;\nbits, replicas and layouts alone")
      ->type_name("WORD")
      ->needs(&other);
  verb.add_option("--case-of-b", flags.line, "The case of the second, where it says none")
      ->type_name("LINE")
      ->needs(&other);
  verb.add_option("--weights-of-b", flags.weights_file, "The weights file of its run, if another")
      ->type_name("FILE")
      ->needs(&other);
  add_number(verb, "--runs", flags.runs,
             "Runs in random orders of sums, whose drift is\nprinted beside [at most 32]", 0, 1024)
      ->needs(&other);
}

void require_pair_flags(const PairFlags& flags) {
  if (!flags.model.empty() && flags.model != "none")
    throw Error("compare_model",
                fmt::format("--model {}: legal: none; a model that is known is said by the case of "
                            "the trace, or by --case",
                            flags.model));
}

int compare_two(const dump::Dump& a, const dump::Dump& b, const ComparisonRequest& of_a,
                const PairFlags& flags, const PairOutput& output) {
  if (flags.model == "none") require_no_model(of_a, flags);
  PairComparisonRequest request{of_a, of_a, flags.same, flags.model == "none", flags.runs};
  request.b.file = flags.file;
  if (flags.line) request.b.line = flags.line;
  if (!flags.weights_file.empty()) request.b.weights_file = flags.weights_file;
  const PairComparison found = compare_pair(a, b, std::move(request));
  dump::require_unchanged(a);
  dump::require_unchanged(b);
  if (!output.html.empty()) replace_file(output.html, pair_page(found), "file_write");
  fmt::print("{}", output.json ? pair_json(found) : pair_text(found, output.quiet));
  return found.exit_code();
}

}  // namespace shardproof::tools
