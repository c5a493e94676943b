#include <fmt/format.h>

#include <memory>
#include <optional>

#include "golden/candidate/wrong_value.h"
#include "oracle/storage.h"
#include "tools/compare_report.h"
#include "tools/verbs.h"
#include "weights/generator.h"
#include "weights/store.h"

namespace shardproof::tools {
namespace {

struct Options {
  std::string file;
  std::optional<std::string> line, weights;
  bool json = false, quiet = false;
};

/// As stored for the run: of the case's seed, or a file's.
Weights weights_of(const Options& o, const candidate::Claim& claim) {
  const Case& c = claim.given;
  if (!o.weights) {
    if (claim.weights_of_file)
      throw Error("compare_weights",
                  fmt::format("{} was made with a weights file; name it: --weights FILE", o.file));
    return oracle::as_stored(generate_weights(c.model, c.seed), c.numerics.weights);
  }
  const Weights given = load_weights(*o.weights);
  ModelConfig model = given.config();
  model.cache = c.model.cache;  // no matter of weights
  if (print_model(model) != print_model(c.model))
    throw Error("weights_model", fmt::format("{} is of model {}, the trace of {}", *o.weights,
                                             print_model(given.config()), print_model(c.model)));
  return oracle::as_stored(Weights(c.model, {given.all().begin(), given.all().end()}, given.kept()),
                           c.numerics.weights);
}

int compare(const Options& o) {
  const dump::Dump file = dump::read_dump(o.file);
  Comparison found{o.file, candidate::read_claim(file.attributes, o.line), {}, {}, {}};
  const Weights weights = weights_of(o, found.claim);
  found.values = candidate::read_values(file, found.claim, weights);
  candidate::Reference reference(found.values, found.claim, weights);
  found.verdict = candidate::judge(found.values, found.claim, reference);
  if (found.verdict.first) {
    const candidate::Held& held = found.values.held[found.verdict.rows[*found.verdict.first].held];
    if (const auto wrong = candidate::wrong_value(held, found.values, found.claim.given.torus))
      found.diagnosis = diagnosis::diagnose(reference.replay(), *wrong);
  }
  fmt::print("{}", o.json ? json_report(found) : text_report(found, o.quiet));
  return found.verdict.exit_code();
}

}  // namespace

void add_compare(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("compare", "Judge values that another implementation dumped");
  verb->add_option("FILE", options->file, "A trace: HDF5 or .npz (docs/trace-format.md)")
      ->required()
      ->type_name("");
  verb->add_option("--case", options->line, "The case, where the trace says none")
      ->type_name("LINE");
  verb->add_option("--weights", options->weights, "The weights file that the values were made with")
      ->type_name("FILE");
  verb->add_flag("--quiet", options->quiet,
                 "Leave out the rows of values that are right, and of inputs");
  verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->footer(
      "Each value is held against what follows from those it is made of, as the trace\n"
      "has them; the first that does not follow is explained, where a known fault does.\n"
      "What a trace is: docs/trace-format.md; how to write one: docs/compare.md.\n"
      "Exit codes: 0 all that was judged is right, 1 a value is different or none was\n"
      "judged, 2 bad input.\n"
      "Example: shardproof compare mine.h5\n"
      "         shardproof compare mine.npz --weights w.h5 --quiet");
  verb->callback([&chosen, options] { chosen = [options] { return compare(*options); }; });
}

}  // namespace shardproof::tools
