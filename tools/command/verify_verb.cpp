#include <fmt/format.h>

#include <memory>
#include <optional>
#include <random>

#include "golden/cases/cases.h"
#include "golden/cases/quick_matrix.h"
#include "golden/trace/write/trace.h"
#include "golden/verify/verify.h"
#include "tools/command/case_flags.h"
#include "tools/command/command_line.h"
#include "tools/command/interrupt.h"
#include "tools/command/layer_files.h"
#include "tools/command/output_file.h"
#include "tools/command/verbs.h"
#include "tools/runner/annotation_report.h"
#include "tools/runner/json_report.h"
#include "tools/runner/junit_report.h"
#include "tools/runner/page_report.h"
#include "tools/runner/report_list.h"
#include "tools/runner/selection.h"
#include "tools/runner/text_report.h"
#include "tools/runner/verification.h"
#include "weights/base/error.h"
#include "weights/storage/generator.h"

namespace shardproof::tools {
namespace {

struct VerifyFlags {
  CaseFlags flags;
  std::optional<std::string> line;
  LayerFiles files;
  std::optional<std::int64_t> cases;
  int threads = 0;
  std::string html, junit;  ///< files to write; "": none
  bool json = false;
  bool annotations = false;
  bool quiet = false;
  bool all_findings = false;
  bool all = false;
  std::string hazards = "shared";
  std::optional<std::string> trace;
};

/// Returns the trace of the single verified case, if requested.
std::unique_ptr<Trace> trace_of(const VerifyFlags& o, const Plans& list) {
  if (!o.trace) return nullptr;
  if (o.cases || list.size() != 1)
    throw Error("verify_c4", "--trace is of one case: give --case LINE or a case's flags");
  return std::make_unique<Trace>(*list[0], *o.trace, o.flags.weights() != nullptr);
}

std::unique_ptr<Report> report_of(const VerifyFlags& o, const CaseSource& source,
                                  std::int64_t cases) {
  auto reports = std::make_unique<ReportList>();
  if (!o.html.empty()) reports->add(std::make_unique<PageReport>(source, o.html));
  if (!o.junit.empty()) reports->add(std::make_unique<JunitReport>(source, o.junit));
  if (o.json)
    reports->add(std::make_unique<JsonReport>(source));
  else
    reports->add(std::make_unique<TextReport>(source, cases, o.quiet));
  if (o.annotations) reports->add(std::make_unique<AnnotationReport>(source));
  return reports;
}

std::uint64_t fresh_seed() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

Hazards hazards_of(const std::string& word) {
  if (word == "shared") return Hazards::hostile();
  if (word == "full") return Hazards::full();
  throw Error("verify_c5", fmt::format("--hazards {}: legal: shared, full", word));
}

/// Returns the options common to all cases.
VerifyOptions common_of(const VerifyFlags& o) {
  VerifyOptions common;
  common.hazards = hazards_of(o.hazards);
  if (o.all_findings) common.until = Findings::Until::all;
  common.also_field = o.files.any();  // a user's layer is also checked for all inputs
  // Draws the seed after the layer was written, unless the user gives one.
  if (common.also_field && !o.flags.has("seed", o.line.value_or("")))
    common.field_seed = fresh_seed();
  return common;
}

int verify_random(const VerifyFlags& o, int threads) {
  if (*o.cases < 1 || *o.cases > 10'000'000)
    throw Error("verify_c2", fmt::format("--cases {}: from 1 to 10000000", *o.cases));
  if (o.line || o.files.any() || o.flags.given_besides("seed"))
    throw Error("verify_c3", "--cases draws its own cases: give it --seed only");
  if (o.all) throw Error("verify_c6", "--all is the whole standard matrix: give it no --cases");
  const std::uint64_t seed = o.flags.parse().seed;
  CaseSource source;
  source.alone = common_of(o).hazards.alone;
  Verification verification(source, *o.cases, report_of(o, source, *o.cases));
  const AtInterrupt at_interrupt([&](int signal) { verification.interrupted(signal); });
  return verification.run_random(seed, threads, common_of(o)) ? 0 : 1;
}

std::string what_all_adds() {
  return fmt::format(
      "the quick matrix: each strategy with each regime, block, kind of heads, type of\n"
      "weights and activations, and loop. --all: {} cases, on more tori and in\n"
      "pairs of strategies, with the rest of the model family, schedules, rows of\n"
      "unequal length, shared prefixes and padded dims\n",
      cases::standard_matrix().size());
}

int verify(VerifyFlags& o) {
  o.flags.load();
  for (const auto& [flag, file] : {std::pair{"--trace", o.trace.value_or("")},
                                   std::pair{"--html", o.html}, std::pair{"--junit", o.junit}})
    require_not_input({flag, file}, {{"--program", o.files.program.value_or("")},
                                     {"--program-prefill", o.files.program_prefill.value_or("")},
                                     {"--program-decode", o.files.program_decode.value_or("")},
                                     {"--layouts", o.files.layouts.value_or("")},
                                     {"--weights", o.flags.weights_file()}});
  const int threads = thread_count(o.threads);
  if (o.cases) {
    trace_of(o, {});
    return verify_random(o, threads);
  }
  Selection selected;
  std::vector<Case>& list = selected.cases;
  const Weights* weights = o.flags.weights();
  const bool matrix = !o.files.any() && !o.line && !o.flags.given() && weights == nullptr;
  if (o.all && !matrix)
    throw Error("verify_c6", "--all is the whole standard matrix: give it no case");
  if (o.files.any())
    list = {load_given_case(o.files, o.flags, o.line.value_or(""))};
  else if (!o.line && !o.flags.names_a_case() && weights != nullptr)
    selected = every_strategy([&](const std::string& line) { return o.flags.parse(line); },
                              common_of(o).until);
  else if (!matrix)
    list = {o.flags.parse(o.line.value_or(""))};
  else
    list = o.all ? cases::standard_matrix() : cases::quick_matrix();
  if (selected.plans.empty()) {
    selected.plans.resize(list.size());
    Threads(threads).for_each(std::ssize(list), [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      selected.plans[at] =
          std::make_shared<const TypedPlan>(make_typed_plan(list[at], common_of(o).until));
    });
  }
  for (const auto& plan : selected.plans)
    require_memory(*plan, list.size() == 1 ? 1 : threads, common_of(o).also_field,
                   common_of(o).hazards.placed());
  const std::unique_ptr<Trace> trace = trace_of(o, selected.plans);
  VerifyOptions common = common_of(o);
  common.weights = weights;
  common.observer = trace.get();
  const CaseSource source{o.files, o.flags.weights_file(), common.hazards.alone};
  const auto cases = static_cast<std::int64_t>(list.size());
  const std::vector<std::string> skipped = selected.skipped;
  const auto selected_plan = trace ? selected.plans[0] : nullptr;
  Verification verification(source, cases, report_of(o, source, cases));
  const AtInterrupt at_interrupt([&](int signal) { verification.interrupted(signal); });
  verification.run(std::move(selected), common, threads, [&](const Judgement& j) {
    const bool ended = j.verdict == Verdict::equal || j.verdict == Verdict::not_judged;
    // The unsharded values of floats; of the field regime `compare` has them.
    const bool floats = trace && selected_plan->plan.source_case.numerics.regime != Regime::field;
    if (floats && j.difference() != nullptr && !j.difference()->step.empty()) {
      OracleMemo memo;  // reruns the unsharded model: the judge keeps no values
      trace->expect(j.difference()->step, *memo.get(selected_plan->plan, weights));
    }
    if (trace) trace->write(ended ? "complete" : j.explanation());
  });
  const bool passed = verification.finish(skipped);
  if (matrix && !o.all && !o.json) fmt::print("{}", what_all_adds());
  return passed ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<VerifyFlags>();
  CLI::App* verb = app.add_subcommand("verify", "Prove layouts equal to the unsharded oracle");
  verb->add_option("--case", options->line,
                   "A whole case line, "
                   "\"torus=4x2x3 model=...\"; case\nflags say what it leaves out")
      ->type_name("LINE");
  options->files.add_to(*verb, true);
  add_number(*verb, "--cases", options->cases, "Draw N random cases from --seed");
  add_number(*verb, "--threads", options->threads, "Threads; 0 for all cores [0]");
  verb->add_option("--hazards", options->hazards,
                   "shared: chips that read the very same\n"
                   "buffers share one result; full: every chip\n"
                   "computes by itself, and replicas are\n"
                   "compared [shared]")
      ->type_name("MODE");
  verb->add_flag("--all", options->all,
                 "The whole standard matrix, in place of the\n"
                 "quick one");
  CLI::Option* json = verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->add_option("--html", options->html, "Write the verdicts as one HTML page")
      ->type_name("FILE");
  verb->add_option("--junit", options->junit,
                   "Write them as JUnit's XML: a test case for\neach case")
      ->type_name("FILE");
  verb->add_flag("--annotations", options->annotations,
                 "Also print each failure as a GitHub\nannotation")
      ->excludes(json);
  verb->add_flag("--quiet", options->quiet, "Rows only of cases that are not equal");
  verb->add_flag("--all-findings", options->all_findings,
                 "After the first finding go on as far as the\n"
                 "run can, and print all findings");
  verb->add_option("--trace", options->trace,
                   "Write every op's output to an HDF5 file,\n"
                   "chip by chip and as a whole, up to the\n"
                   "first that is wrong, unless\n"
                   "--all-findings is given; one case only")
      ->type_name("FILE");
  options->flags.add_to(*verb);
  verb->footer(strategies_text() +
               "Without arguments the quick matrix runs: each strategy with each regime, block,\n"
               "kind of heads, type of weights and activations, and loop. --all runs the\n"
               "standard matrix: every strategy with multiquery,\n"
               "grouped and multihead attention on four tori, and on 64 chips; five of them on\n"
               "six tori, in every pair, in the f32 regime and with the rest of the model\n"
               "family; every strategy with int8 weights, with bf16 sums, looped, as the other\n"
               "models of the family, in regime=field, for all inputs (docs/field.md), with\n"
               "rows that share prefixes, and with padded heads and ids. A case flag runs that\n"
               "one case.\n"
               "Example: shardproof verify --torus 4x2x3 --prefill wg-xyz:batch\n"
               "         shardproof verify --case \"torus=4x2x3 prefill=ws1d gen=4\"\n"
               "         shardproof verify --cases 500 --seed 1\n"
               "         shardproof verify --weights w.h5\n"
               "         shardproof verify --torus 1x2x3 --trace t.h5\n"
               "         shardproof verify --program p.txt --torus 2x2x3\n"
               "         shardproof verify --program-prefill p.txt --decode ws2d:batch\n"
               "         shardproof verify --layouts my.layouts --decode ws2d:batch\n"
               "--layouts judges strategies of your own, a file's only table as both phases\n"
               "unless --prefill or --decode name others; --program a layer of your own as\n"
               "both. Then by default torus=4x2x3 model=palm-tiny,embed_scale=0.75 gen=3, the\n"
               "smallest legal prompt of at least 4 and the smallest legal batch;\n"
               "such a layer is run in regime=field, too: for all inputs (docs/field.md);\n"
               "--program-prefill without a decode is judged with gen=1.");
  verb->callback([&chosen, options] { chosen = [options] { return verify(*options); }; });
}

}  // namespace shardproof::tools
