#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/case_weights.h"
#include "golden/corpus/golden.h"
#include "golden/corpus/golden_comparison.h"
#include "golden/corpus/model.h"
#include "golden/trace/claim/memory.h"
#include "golden/trace/verdict/field_verdict.h"
#include "golden/trace/verdict/notes.h"
#include "golden/trace/verdict/wrong_value.h"
#include "oracle/request/storage.h"
#include "tools/command/verbs.h"
#include "tools/report/comparison_text.h"
#include "weights/storage/store.h"
#include "weights/text/text_model.h"

namespace shardproof::tools {
namespace {

struct CompareFlags {
  std::string file;
  std::optional<std::string> line, weights, golden;
  std::vector<std::string> given;
  std::string fail_on = "unlikely";
  bool json = false, quiet = false;
};

/// Returns the weights as stored for the run: generated from the case's seed, or a file's.
Weights weights_of(const CompareFlags& o, const dump::Claim& claim) {
  const Case& c = claim.source_case;
  if (!o.weights) {
    if (claim.weights_of_file)
      throw Error("compare_weights",
                  fmt::format("{} was made with a weights file; name it: --weights FILE", o.file));
    return oracle::as_stored(generated_weights(c), c.numerics.weights);
  }
  const Weights given = load_weights(*o.weights);
  ModelConfig model = given.config();
  model.cache = c.model.cache;  // not part of the weights
  if (!same_model(model, c.model))
    throw Error("weights_model", fmt::format("{} is of model {}, the trace of {}", *o.weights,
                                             print_model(given.config()), print_model(c.model)));
  return oracle::as_stored(
      Weights(c.model, {given.all().begin(), given.all().end()}, given.stored_type()),
      c.numerics.weights);
}

void judge(Comparison& found, const dump::Dump& file, const Weights& weights) {
  found.values = dump::read_values(file, found.claim, weights);
  dump::Reference reference(found.values, found.claim, weights);
  found.verdict = dump::judge(found.values, found.claim, reference);
  found.notes = dump::notes_of(found.values, found.claim, reference, found.verdict);
  found.diagnosis = dump::diagnosed(found.verdict, found.values, found.claim, reference);
}

void judge_by_case(const CompareFlags& o, Comparison& found, const dump::Dump& file) {
  found.claim = dump::read_claim(file.attributes, o.line);
  found.claim.operands.insert(found.claim.operands.end(), o.given.begin(), o.given.end());
  dump::require_memory(found.claim.source_case);
  if (found.claim.in_field)
    found.verdict = dump::judge_in_field(file, found.claim, found.values);
  else
    judge(found, file, weights_of(o, found.claim));
}

/// Judges by a golden's case, weights and ids. Throws unless its values are the unsharded model's.
void judge_by_model(Comparison& found, const dump::Dump& file, const dump::Dump& golden) {
  const dump::Dump made = corpus::expected_model(golden, corpus::By::model);
  if (const auto fault = corpus::first_difference(made, golden))
    throw Error("golden_value", fmt::format("{} is damaged: {}", found.golden, *fault));
  const Case given = corpus::case_of(golden);
  const bool own_case = file.attributes.contains("case");
  found.claim = dump::read_claim(
      file.attributes, own_case ? std::nullopt : std::optional<std::string>(print_case(given)));
  dump::require_same_values(given, found.claim.source_case);
  found.claim.ids_are_given = true;
  judge(found, file, corpus::golden_weights(golden));
}

void judge_by_golden(Comparison& found, const dump::Dump& file) {
  const dump::Dump golden = dump::read_dump(found.golden);
  found.of = corpus::line_of(golden);
  if (corpus::kind_of(golden) == corpus::Kind::model) {
    judge_by_model(found, file, golden);
    return;
  }
  corpus::GoldenComparison against = corpus::judge_against(golden, file);
  found.claim.exact = true;
  found.values = std::move(against.values);
  found.verdict = std::move(against.verdict);
  found.diagnosis = std::move(against.diagnosis);
}

bounds::Fit fail_on(const CompareFlags& o) {
  const auto fit = bounds::parse_fit(o.fail_on);
  if (!fit || *fit == bounds::Fit::equal || *fit == bounds::Fit::not_judged)
    throw Error("compare_fail_on",
                fmt::format("--fail-on {}: legal: within, within 1-2^-41, near, loose, unlikely, "
                            "different",
                            o.fail_on));
  return *fit;
}

int compare(const CompareFlags& o) {
  const dump::Dump file =
      dump::read_dump(o.file, o.golden ? dump::Unread::refused : dump::Unread::left);
  Comparison found;
  found.file = o.file;
  found.fail_on = fail_on(o);
  if (o.golden) {
    found.golden = *o.golden;
    judge_by_golden(found, file);
  } else {
    judge_by_case(o, found, file);
    found.of = print_case(found.claim.source_case);
  }
  fmt::print("{}", o.json ? json_report(found) : text_report(found, o.quiet));
  return found.verdict.exit_code(found.fail_on);
}

}  // namespace

void add_compare(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<CompareFlags>();
  CLI::App* verb = app.add_subcommand("compare", "Judge values that another implementation dumped");
  verb->add_option("FILE", options->file, "A trace: HDF5 or .npz (docs/trace-format.md)")
      ->required()
      ->type_name("");
  CLI::Option* line =
      verb->add_option("--case", options->line, "The case, where the trace says none");
  line->type_name("LINE");
  CLI::Option* weights = verb->add_option("--weights", options->weights,
                                          "The weights file of the run that wrote the dump");
  weights->type_name("FILE");
  verb->add_option("--golden", options->golden,
                   "A golden, which has case, weights and ids\n(docs/golden.md)")
      ->type_name("FILE")
      ->excludes(line)
      ->excludes(weights);
  verb->add_option("--fail-on", options->fail_on,
                   "The first verdict that exits with 1: within,\n\"within 1-2^-41\", near, loose, "
                   "unlikely, different\n[unlikely]")
      ->type_name("WORD");
  verb->add_option("--given", options->given,
                   "Values used as operands of later ones and\nnot judged, as "
                   "'layers.*.moe_out'; may be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  verb->add_flag("--quiet", options->quiet, "Print no rows for inputs and for values that agree");
  verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->footer(
      "Each value is compared with the one that follows from its operands in the trace;\n"
      "the first that differs is explained, where a known fault explains it.\n"
      "The format of traces: docs/trace-format.md; how to write one: docs/compare.md.\n"
      "Exit codes: 0 all that was judged is right, 1 a value is unlikely or different\n"
      "(or as --fail-on says), an array does not fit, or none was judged,\n"
      "2 bad input.\n"
      "Example: shardproof compare mine.h5\n"
      "         shardproof compare mine.npz --weights w.h5 --quiet\n"
      "         shardproof compare mine.h5 --golden golden/v1/l1/collectives-4x2x3.h5");
  verb->callback([&chosen, options] { chosen = [options] { return compare(*options); }; });
}

}  // namespace shardproof::tools
