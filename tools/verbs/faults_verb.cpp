#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "golden/faults/matrix.h"
#include "golden/faults/smallest.h"
#include "tools/command/case_flags.h"
#include "tools/command/command_line.h"
#include "tools/command/layer_files.h"
#include "tools/command/output_file.h"
#include "tools/command/verbs.h"
#include "tools/faults/outcomes.h"
#include "tools/faults/tables.h"
#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "weights/base/detail/replace_file.h"

namespace shardproof::tools {
namespace {

struct FaultsFlags {
  std::optional<std::int64_t> budget;
  std::uint64_t seed = 1;
  bool all = false, zoo = false, list = false, smallest = false;
  std::string only, from, against, line, json, html, docs;
  LayerFiles files;
  CaseFlags flags;
  int threads = 0;
};

/// Reads the words of --only.
faults::Mutant mutant_of(const std::string& text) {
  const auto first = text.find(' ');
  const auto second = first == std::string::npos ? first : text.find(' ', first + 1);
  if (second == std::string::npos)
    throw Error("faults_only", fmt::format("'{}' is not OPERATOR SITE PARAMETER, as \"lose-a-part "
                                           "decode.layer.yr first\"",
                                           text));
  return {&faults::find_operator(text.substr(0, first)),
          faults::Site::parse(std::string_view(text).substr(first + 1, second - first - 1)),
          text.substr(second + 1)};
}

/// The case that the flags name.
faults::FaultCase own_case(FaultsFlags& o) {
  name_phases(o.files, o.flags, o.line);
  Case c = o.flags.parse(o.line);
  require_one_torus(c, "faults");
  return {std::string(faults::kOwnCase), c.prefill.to_string(), std::move(c)};
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool names_a_case(const FaultsFlags& o) {
  return o.flags.given() || !o.line.empty() || o.files.layouts;
}

/// The case that the flags name, or those of every strategy.
std::vector<faults::FaultCase> cases_of(FaultsFlags& o) {
  return names_a_case(o) ? std::vector{own_case(o)} : faults::all_cases();
}

/// Prints where faults of growing size are seen, of the case that the flags name, or of every
/// strategy's plain one.
void judge_sizes(FaultsFlags& o, OracleMemo& memo, int threads) {
  std::vector<faults::FaultCase> cases = cases_of(o);
  std::erase_if(cases, [](const faults::FaultCase& one) {
    return one.kind != "plain" && one.kind != faults::kOwnCase;
  });
  const std::vector<faults::SizeCurve> curves = faults::smallest_effects(cases, memo, threads);
  for (const faults::SizeCurve& curve : curves) fmt::print("{}\n", as_text(size_table(curve)));
  const std::string where = sites_sentence(cases, curves);
  fmt::print("{}\n", wrapped(where, kWidth, ""));
  if (!o.docs.empty())
    replace_file(o.docs, with_part(text_of(o.docs), "smallest", sizes_markdown(where, curves)),
                 "file_write");
}

faults::Study study_of(FaultsFlags& o) {
  if (!o.only.empty() && !names_a_case(o))
    throw Error("flag_c7", "--only needs the case that it is of: --case LINE");
  faults::Study study = faults::plan_study(cases_of(o));
  if (o.budget) faults::draw(study, *o.budget, o.seed);
  if (o.zoo) faults::keep_one_each(study);
  if (!o.only.empty()) study.mutants = {faults::of_one_case(study, mutant_of(o.only))};
  return study;
}

std::string command_of(const faults::Study& study, const faults::Result& one) {
  return fmt::format("shardproof faults --only \"{}\" --case \"{}\"",
                     one.planned.mutant.to_string(),
                     print_case(study.cases[one.planned.of_case].source_case));
}

/// What all say of one mutant, a line each.
void print_one(const faults::Result& one) {
  const faults::Operator& how = *one.planned.mutant.how;
  fmt::print("{} ({}): {}\n", one.planned.mutant.to_string(), how.fault_class,
             wrapped(std::string(how.what), kWidth - 8, "  "));
  for (std::size_t i = 0; i < faults::kDetectors; ++i) {
    const faults::Sight sight = one.sights.own[i];
    fmt::print("  {:<10} {}\n", faults::detector_names()[i],
               sight == faults::Sight::seen     ? "seen"
               : sight == faults::Sight::silent ? "-"
                                                : "not run");
  }
  for (std::size_t i = 0; i < faults::kOtherChecks; ++i)
    fmt::print("  {:<10} end to end: {}; of any value: {}\n", faults::other_check_names()[i],
               one.sights.others.end_to_end[i] ? "seen" : "-",
               one.sights.others.per_value[i] ? "seen" : "-");
  if (!one.sights.first.empty())
    fmt::print("first: {}\n", wrapped(one.sights.first, kWidth - 7, "  "));
  if (!one.reason.empty()) fmt::print("equivalent: {}\n", one.reason);
}

void write_files(const FaultsFlags& o, const faults::Study& study,
                 const std::vector<faults::Result>& results, const faults::Matrix& matrix,
                 const std::vector<std::string>& left) {
  if (!o.json.empty())
    replace_file(o.json, json_text(faults_json(study, results, matrix, left)) + "\n", "file_write");
  if (!o.html.empty()) replace_file(o.html, faults_page(matrix, left), "file_write");
  if (!o.docs.empty())
    replace_file(o.docs, with_part(text_of(o.docs), "matrix", matrix_markdown(matrix)),
                 "file_write");
}

int judge_faults(FaultsFlags& o) {
  if (int{o.budget.has_value()} + int{o.all} + int{o.zoo} + int{o.smallest} + int{!o.only.empty()} +
          int{!o.from.empty()} !=
      1)
    throw Error("flag_c7",
                "faults needs one of --budget N, --all, --zoo, --only MUTANT, --from FILE, "
                "--smallest (see shardproof faults --help)");
  for (const std::string& file : {o.json, o.html, o.docs})
    if (!file.empty()) require_replaceable(file, "file_write");
  if (!o.docs.empty())  // before anything runs
    static_cast<void>(with_part(text_of(o.docs), o.smallest ? "smallest" : "matrix", ""));
  const int threads = thread_count(o.threads);
  OracleMemo memo;
  if (o.smallest) {
    judge_sizes(o, memo, threads);
    return 0;
  }
  const faults::Study study = study_of(o);
  if (o.list) {
    for (const faults::Planned& one : study.mutants)
      fmt::print("{} in {} {}\n", one.mutant.to_string(), study.cases[one.of_case].kind,
                 study.cases[one.of_case].strategy);
    return 0;
  }
  const std::string known_file = o.from.empty() ? o.against : o.from;
  std::optional<KnownOutcomes> known;
  if (!known_file.empty()) known = read_outcomes(known_file, study);
  std::vector<faults::Result> results;
  faults::Matrix matrix;
  if (!o.from.empty()) {
    results = results_of(*known, study);
    matrix = matrix_of(*known, study);
  } else {
    results = faults::judge(study, memo, threads);
    matrix = faults::matrix_of(study, results);
    if (o.only.empty()) faults::add_false_alarms(matrix, study, memo, threads);
  }
  std::vector<std::string> left;
  for (const faults::Result& one : results)
    if (one.survives())
      left.push_back(command_of(study, one) + (one.error.empty() ? "" : "  # " + one.error));
  write_files(o, study, results, matrix, left);
  if (!o.only.empty()) {
    print_one(results.at(0));
  } else {
    fmt::print("{}\n", as_text(classes_table()));
    for (const FaultTable& table : tables_of(matrix)) fmt::print("{}\n", as_text(table));
  }
  fmt::print("{}\n", sentence_of(matrix));
  for (const std::string& line : left) fmt::print("left: {}\n", line);
  std::vector<std::string> changed;
  if (!o.against.empty()) {
    changed = differences(*known, results);
    for (const std::string& line : changed) fmt::print("differs from {}: {}\n", o.against, line);
    fmt::print("{} of {} agree with {}\n", results.size() - changed.size(), results.size(),
               o.against);
  }
  return left.empty() && changed.empty() ? 0 : 1;
}

}  // namespace

void add_faults(CLI::App& app, Action& chosen) {
  CLI::App* verb = app.add_subcommand("faults", "Plant faults, and see which detectors see them");
  const auto o = std::make_shared<FaultsFlags>();
  add_number(*verb, "--budget", o->budget,
             "N mutants, drawn by --seed over classes and\nstrategies", 1, 1'000'000)
      ->type_name("N");
  add_number(*verb, "--seed", o->seed, "The seed of --budget [1]", 0, kMostCounted)->type_name("S");
  verb->add_flag("--all", o->all, "Every mutant");
  verb->add_flag("--zoo", o->zoo, "One mutant by each operator, on the first case\nthat has it");
  verb->add_option("--only", o->only, "One mutant, \"OPERATOR SITE PARAMETER\", of --case")
      ->type_name("MUTANT");
  verb->add_option("--from", o->from, "No runs: the results that --all --json FILE wrote")
      ->type_name("FILE");
  verb->add_flag("--smallest", o->smallest,
                 "The smallest fault that each detector sees,\nin f32 and bf16, in two steps of "
                 "each strategy\nor in all steps of --case");
  verb->add_option("--against", o->against, "Hold results against those of --all --json FILE")
      ->type_name("FILE");
  verb->add_flag("--list", o->list, "Print the mutants, and run none");
  verb->add_option("--json", o->json, "Write every result as JSON (docs/json.md)")
      ->type_name("FILE");
  verb->add_option("--html", o->html, "Write the tables as one HTML page")->type_name("FILE");
  verb->add_option("--docs", o->docs, "Write the tables between the marks of a document")
      ->type_name("FILE");
  o->files.add_to(*verb, /*programs=*/false);
  add_number(*verb, "--threads", o->threads, "Threads; 0 for all cores [0]");
  verb->add_option("--case", o->line, "One case in place of those of every strategy")
      ->type_name("LINE");
  o->flags.add_to(*verb, {"seed", "regime", "decode_torus", "weights"});
  verb->footer(
      "A mutant is one operator at one step, weight or cache of a case's programs. The\n"
      "type check, the comparison of replicas, the exact and the field regime and the\n"
      "bounds judge each by themselves; beside them stand checks that others use. What\n"
      "each operator and class is, and the whole matrix: docs/faults.md.\n"
      "Exit codes: 0 every mutant is seen, or equivalent for a reason that is checked;\n"
      "1 one is left, or is not as in --against; 2 bad input.\n"
      "Example: shardproof faults --zoo\n"
      "         shardproof faults --budget 300 --seed 2 --html faults.html\n"
      "         shardproof faults --all --prefill ws2d:batch\n"
      "         shardproof faults --all --layouts my.layouts --torus 2x2x3");
  verb->callback([&chosen, o] { chosen = [o] { return judge_faults(*o); }; });
}

}  // namespace shardproof::tools
