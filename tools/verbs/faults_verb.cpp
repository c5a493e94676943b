#include <fmt/format.h>

#include <memory>
#include <optional>

#include "golden/faults/matrix.h"
#include "tools/command/case_flags.h"
#include "tools/command/command_line.h"
#include "tools/command/verbs.h"

namespace shardproof::tools {
namespace {

struct FaultsFlags {
  std::int64_t budget = 0;
  std::uint64_t seed = 1;
  bool all = false, zoo = false;
  int threads = 0;
};

int judge_faults(const FaultsFlags& o) {
  faults::Study study = faults::plan_study(faults::all_cases());
  if (o.budget > 0) faults::draw(study, o.budget, o.seed);
  if (o.zoo) faults::keep_one_each(study);
  std::map<std::string, int> counts;
  fmt::print("{} cases, {} mutants\n", study.cases.size(), study.mutants.size());
  OracleMemo memo;
  const auto results = faults::judge(study, memo, thread_count(o.threads));
  const faults::Matrix matrix = faults::matrix_of(study, results);
  std::map<std::string, int> shown;
  for (const auto& r : results) {
    if (!r.error.empty() && shown[std::string(r.planned.mutant.how->name) + "e"]++ < 2)
      fmt::print("ERROR {} in {}: {}\n", r.planned.mutant.to_string(),
                 print_case(study.cases[r.planned.of_case].source_case), r.error);
    if (r.error.empty() && r.survives() && shown[std::string(r.planned.mutant.how->name)]++ < 3)
      fmt::print("SURVIVES {} in {} {}\n", r.planned.mutant.to_string(),
                 study.cases[r.planned.of_case].kind, study.cases[r.planned.of_case].strategy);
  }
  for (const auto& how : faults::all_operators()) {
    const auto at = matrix.by_operator.find(std::string(how.name));
    const faults::Count c = at == matrix.by_operator.end() ? faults::Count{} : at->second;
    fmt::print("{:4} {:36} {:6} killed {:6} eq {:4} surv {:4} | {:5} {:5} {:5} {:5} {:5}\n",
               how.fault_class, how.name, c.mutants, c.killed, c.equivalent, c.survivors, c.own[0],
               c.own[1], c.own[2], c.own[3], c.own[4]);
  }
  return 0;
}

}  // namespace

void add_faults(CLI::App& app, Action& chosen) {
  CLI::App* verb = app.add_subcommand("faults", "Plant faults, and see which detectors see them");
  const auto o = std::make_shared<FaultsFlags>();
  verb->add_option("--budget", o->budget, "N mutants");
  verb->add_option("--seed", o->seed, "seed");
  verb->add_flag("--all", o->all, "all");
  verb->add_flag("--zoo", o->zoo, "zoo");
  verb->add_option("--threads", o->threads, "threads");
  verb->callback([&chosen, o] { chosen = [o] { return judge_faults(*o); }; });
}

}  // namespace shardproof::tools
