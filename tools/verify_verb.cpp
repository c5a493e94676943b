#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "golden/cases.h"
#include "golden/coverage.h"
#include "golden/trace/trace.h"
#include "golden/verify.h"
#include "tools/batch.h"
#include "tools/case_flags.h"
#include "tools/command_line.h"
#include "tools/interrupt.h"
#include "tools/layer_files.h"
#include "tools/output_file.h"
#include "tools/verbs.h"
#include "tools/verify_report.h"
#include "weights/error.h"
#include "weights/generator.h"

namespace shardproof::tools {
namespace {

struct Options {
  CaseFlags flags;
  std::optional<std::string> line;
  LayerFiles files;
  GivenLayers layers;  // what the files of programs hold, for as long as the verb runs
  std::optional<std::int64_t> cases;
  int threads = 0;
  bool json = false;
  bool quiet = false;
  std::optional<std::string> trace;
};

/// The cases a weights file is verified on: every strategy on the standard tori its model divides.
std::vector<Case> cases_for(const CaseFlags& flags, std::vector<std::string>& skipped) {
  std::vector<Case> all;
  for (const char* torus : {"1x1x1", "2x2x2", "4x2x3", "3x2x2", "2x3x1", "1x4x2"})
    for (const Strategy& s : all_strategies()) {
      const Case c =
          flags.parse(fmt::format("torus={} prefill={} decode={} gen=3", torus, s.to_string(),
                                  decodes(s) ? s.to_string() : Strategy().to_string()));
      try {
        require_legal(c);
        all.push_back(c);
      } catch (const Error& error) {
        // Without the legal model that it suggests: here the file has fixed the model.
        const std::string why = error.what();
        skipped.push_back(why.substr(0, why.find("; the nearest legal")));
      }
    }
  if (all.empty())
    throw Error("verify_c1",
                "no strategy is legal for this model on any standard torus; " + skipped[0]);
  return all;
}

/// The trace of the one case that is verified, if one is asked for.
std::unique_ptr<Trace> trace_of(const Options& o, const std::vector<Case>& list) {
  if (!o.trace) return nullptr;
  if (o.cases || list.size() != 1)
    throw Error("verify_c4", "--trace is of one case: give --case LINE or a case's flags");
  const Case& c = list[0];
  return std::make_unique<Trace>(c, generate_prompt(c.model, c.seed, c.batch, c.prompt), *o.trace,
                                 Trace::Source{o.flags.weights() != nullptr, o.layers});
}

VerifyReport::Options report_options(const Options& o) {
  return {o.json, o.quiet, o.cases.has_value(), o.files, o.layers, o.flags.weights_file()};
}

int verify_random(const Options& o, int threads) {
  if (*o.cases < 1 || *o.cases > 10'000'000)
    throw Error("verify_c2", fmt::format("--cases {}: from 1 to 10000000", *o.cases));
  if (o.line || o.files.any() || o.flags.given_besides("seed"))
    throw Error("verify_c3", "--cases draws its own cases: give it --seed only");
  const std::uint64_t seed = o.flags.parse().seed;
  constexpr std::int64_t kAtOnce = 1000;
  VerifyReport report(report_options(o), *o.cases);
  const AtInterrupt at_interrupt([&](int signal) { report.interrupted(signal); });
  cases::Coverage coverage;
  for (std::int64_t begin = 0; begin < *o.cases; begin += kAtOnce) {
    std::vector<Case> list;
    for (std::int64_t i = begin; i < std::min(begin + kAtOnce, *o.cases); ++i) {
      list.push_back(cases::draw(seed, static_cast<std::uint64_t>(i)));
      coverage.add(list.back());
    }
    Batch(list, {}, threads, *o.cases == 1, [&](const Case& c) {
      return report.command(c);
    }).run([&](std::size_t i, const Answered& answered) { report.add(list[i], answered); });
  }
  return report.finish(coverage, {});
}

int verify(Options& o) {
  o.flags.load();
  require_not_input({"--trace", o.trace.value_or("")},
                    {{"--program", o.files.program.value_or("")},
                     {"--program-prefill", o.files.program_prefill.value_or("")},
                     {"--program-decode", o.files.program_decode.value_or("")},
                     {"--layouts", o.files.layouts.value_or("")},
                     {"--weights", o.flags.weights_file()}});
  const int threads = thread_count(o.threads);
  if (o.cases) {
    trace_of(o, {});
    return verify_random(o, threads);
  }
  std::vector<Case> list;
  std::vector<std::string> skipped;
  const Weights* weights = o.flags.weights();
  GivenCase given;
  if (o.files.any()) {
    given = load_given_case(o.files, o.flags, o.line.value_or(""));
    o.layers = given.layers();
    list = {given.c};
    validate(given.c.model);
    require_legal(given.inference());
  } else if (!o.line && !o.flags.names_a_case() && weights != nullptr) {
    list = cases_for(o.flags, skipped);
  } else if (o.line || o.flags.given()) {
    list = {o.flags.parse(o.line.value_or(""))};
    require_legal(list[0]);
  } else {
    list = cases::standard_matrix();
  }
  if (o.layers.any()) check(build_programs(given.inference()), given.inference());
  for (const Case& c : list) require_memory(c, list.size() == 1 ? 1 : threads, o.layers);
  const std::unique_ptr<Trace> trace = trace_of(o, list);
  VerifyOptions common;
  common.weights = weights;
  common.observer = trace.get();
  common.layers = o.layers;
  VerifyReport report(report_options(o), static_cast<std::int64_t>(list.size()));
  const AtInterrupt at_interrupt([&](int signal) { report.interrupted(signal); });
  Batch(list, common, threads, list.size() == 1, [&](const Case& c) {
    return report.command(c);
  }).run([&](std::size_t i, const Answered& answered) {
    const Judgement& j = answered.judgement;
    const bool ended = j.verdict == Verdict::equal || j.verdict == Verdict::not_judged;
    if (trace) trace->write(ended ? "complete" : j.explanation());
    report.add(list[i], answered);
  });
  return report.finish({}, skipped);
}

}  // namespace

void add_verify(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("verify", "Prove layouts equal to the unsharded oracle");
  verb->add_option("--case", options->line,
                   "A whole case line, "
                   "\"torus=4x2x3 model=...\"; case\nflags say what it leaves out")
      ->type_name("LINE");
  options->files.add_to(*verb, true);
  add_number(*verb, "--cases", options->cases, "Draw N random cases from --seed");
  add_number(*verb, "--threads", options->threads, "Threads; 0 for all cores [0]");
  verb->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  verb->add_flag("--quiet", options->quiet, "Rows only of cases that are not equal");
  verb->add_option("--trace", options->trace,
                   "Write every op's output to an HDF5 file,\n"
                   "chip by chip and as a whole, up to the\n"
                   "first that is wrong; one case only")
      ->type_name("FILE");
  options->flags.add_to(*verb);
  verb->footer(strategies_text() +
               "Without arguments the standard matrix runs: every strategy with multiquery,\n"
               "grouped and multihead attention on four tori, and on 64 chips; five of them on\n"
               "six tori, in every pair, in the f32 regime and with the rest of the model\n"
               "family. A case flag runs that one case.\n"
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
               "--program-prefill without a decode is judged with gen=1.");
  verb->callback([&chosen, options] { chosen = [options] { return verify(*options); }; });
}

}  // namespace shardproof::tools
