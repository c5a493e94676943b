#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/command/output_file.h"
#include "tools/command/verbs.h"
#include "tools/report/comparison_ci.h"
#include "tools/report/comparison_json.h"
#include "tools/report/comparison_page.h"
#include "tools/report/comparison_text.h"
#include "tools/verbs/compare_pair.h"
#include "tools/verbs/import_command.h"
#include "weights/base/detail/replace_file.h"

namespace shardproof::tools {
namespace {

struct CompareFlags {
  ComparisonRequest request;
  std::string fail_on = "unlikely";
  std::string html, junit;  ///< files to write; "": none
  bool json = false, quiet = false, annotations = false;
  PairFlags pair;
};

bounds::Fit fail_on(const CompareFlags& o) {
  const auto fit = bounds::parse_fit(o.fail_on);
  if (!fit || *fit == bounds::Fit::equal || *fit == bounds::Fit::not_judged)
    throw Error("compare_fail_on",
                fmt::format("--fail-on {}: legal: within, within 1-2^-41, near, loose, unlikely, "
                            "different",
                            o.fail_on));
  return *fit;
}

void require_outputs(const CompareFlags& o) {
  require_pair_flags(o.pair);
  for (const auto& [flag, file] : {std::pair{"--html", o.html}, std::pair{"--junit", o.junit}}) {
    if (file.empty()) continue;
    require_not_input({flag, file}, {{"FILE", o.request.file},
                                     {"OTHER", o.pair.file},
                                     {"--weights", o.request.weights_file},
                                     {"--weights-of-b", o.pair.weights_file},
                                     {"--golden", o.request.golden}});
    require_replaceable(file, "file_write");
  }
}

/// Reads the trace. What another program wrote in a form of its own is refused with the command
/// that imports it.
dump::Dump trace_of(const ComparisonRequest& request) {
  try {
    return dump::read_dump(request.file,
                           !request.golden.empty() ? dump::Unread::refused : dump::Unread::left);
  } catch (const Error& error) {
    if (error.label() != "dump_open") throw;
    const std::string how = import_command(request.file);
    if (how.empty()) throw;
    throw Error("compare_import", fmt::format("{:?} {}", request.file, how));
  }
}

int compare(CompareFlags& o) {
  o.request.fail_on = fail_on(o);
  require_outputs(o);
  if (!o.pair.file.empty()) {
    ComparisonRequest of_b = o.request;
    of_b.file = o.pair.file;
    const dump::Dump a = trace_of(o.request), b = trace_of(of_b);
    return compare_two(a, b, o.request, o.pair, {o.html, o.json, o.quiet});
  }
  const Comparison found = compare(trace_of(o.request), o.request);
  if (!o.html.empty()) replace_file(o.html, comparison_page(found), "file_write");
  if (!o.junit.empty()) replace_file(o.junit, comparison_junit(found), "file_write");
  fmt::print("{}", o.json ? comparison_json(found) : comparison_text(found, o.quiet));
  if (o.annotations) fmt::print("{}", comparison_annotations(found));
  return found.exit_code();
}

}  // namespace

void add_compare(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<CompareFlags>();
  CLI::App* verb = app.add_subcommand("compare", "Judge values that another implementation dumped");
  verb->add_option("FILE", options->request.file, "A trace: HDF5 or .npz (docs/trace-format.md)")
      ->required()
      ->type_name("");
  CLI::Option* other = verb->add_option("OTHER", options->pair.file,
                                        "A second trace of the model, B: where they part");
  other->type_name("");
  CLI::Option* line =
      verb->add_option("--case", options->request.line, "The case, where the trace says none");
  line->type_name("LINE");
  CLI::Option* weights = verb->add_option("--weights", options->request.weights_file,
                                          "The weights file of the run that wrote the dump");
  weights->type_name("FILE");
  verb->add_option("--golden", options->request.golden,
                   "A golden, which has case, weights and ids\n(docs/golden.md)")
      ->type_name("FILE")
      ->excludes(other)
      ->excludes(line)
      ->excludes(weights);
  verb->add_option("--fail-on", options->fail_on,
                   "The first verdict that exits with 1: within,\n\"within 1-2^-41\", near, loose, "
                   "unlikely, different\n[unlikely]")
      ->type_name("WORD")
      ->excludes(other);
  verb->add_option("--given", options->request.given,
                   "Values used as operands of later ones and\nnot judged, as "
                   "'layers.*.moe_out'; may be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  verb->add_flag("--quiet", options->quiet, "Print no rows for inputs and for values that agree");
  CLI::Option* json = verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->add_option("--html", options->html, "Write the verdict as one HTML page")
      ->type_name("FILE");
  verb->add_option("--junit", options->junit,
                   "Write it as JUnit's XML: a test case for\neach value")
      ->type_name("FILE")
      ->excludes(other);
  verb->add_flag("--annotations", options->annotations,
                 "Also print each failure as a GitHub annotation")
      ->excludes(json)
      ->excludes(other);
  add_pair_flags(*verb, options->pair, *other);
  verb->footer(
      "Each value is compared with the one that follows from its operands in the trace;\n"
      "the first that differs is explained, where a known fault explains it.\n"
      "The format of traces: docs/trace-format.md; how to write one: docs/compare.md.\n"
      "Exit codes: 0 all that was judged is right, 1 a value is unlikely or different\n"
      "(or as --fail-on says), an array does not fit, or none was judged,\n"
      "2 bad input.\n"
      "Of two traces: 0 every value has the same bits or is apart by rounding, 1 one is\n"
      "wrong or not judged, or its operands differ, 2 not two traces of one model.\n"
      "Example: shardproof compare mine.h5\n"
      "         shardproof compare a.h5 b.h5\n"
      "         shardproof compare mine.npz --weights w.h5 --quiet\n"
      "         shardproof compare mine.h5 --golden golden/v1/l1/collectives-4x2x3.h5");
  verb->callback([&chosen, options] { chosen = [options] { return compare(*options); }; });
}

}  // namespace shardproof::tools
