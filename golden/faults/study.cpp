#include "golden/faults/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <random>

#include "engine/numeric/threads.h"
#include "golden/faults/equivalence.h"

namespace shardproof::faults {
namespace {

Result judge_one(const Study& study, const Planned& planned, OracleMemo& memo) {
  Result result{planned, {}, {}, {}};
  const TypedPlan& typed = study.plans[planned.of_case];
  try {
    result.sights = detect(typed, planned.mutant, memo);
    if (!result.sights.killed()) result.reason = equivalent_by(typed, planned.mutant, memo);
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

}  // namespace

Study plan_study(std::vector<FaultCase> cases) {
  Study study;
  study.cases = std::move(cases);
  for (const FaultCase& one : study.cases) {
    study.plans.push_back(make_typed_plan(one.source_case));
    if (!study.plans.back().types) throw FindingsError(study.plans.back().findings);
  }
  for (std::size_t i = 0; i < study.cases.size(); ++i) {
    std::vector<Mutant> all = mutants_of(study.plans[i], study.cases[i].kind);
    study.sizes.push_back(all.size());
    for (std::size_t n = 0; n < all.size(); ++n) study.mutants.push_back({i, n, std::move(all[n])});
  }
  return study;
}

void draw(Study& study, std::int64_t budget, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Planned> all = study.mutants;
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
  // Of a class the first of every strategy come before the second of any.
  std::map<std::string_view, std::map<std::pair<std::size_t, std::size_t>, Planned>> of_class;
  std::map<std::pair<std::string_view, std::string>, std::size_t> times;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string_view name = all[i].mutant.how->fault_class;
    const std::size_t turn = times[{name, study.cases[all[i].of_case].strategy}]++;
    of_class[name].emplace(std::pair(turn, i), all[i]);
  }
  study.mutants.clear();
  bool more = true;
  while (more && std::ssize(study.mutants) < budget) {
    more = false;
    for (const FaultClass& one : all_classes()) {
      auto& left = of_class[one.name];
      if (left.empty() || std::ssize(study.mutants) == budget) continue;
      study.mutants.push_back(std::move(left.begin()->second));
      left.erase(left.begin());
      more = true;
    }
  }
}

void keep_one_each(Study& study) {
  std::map<std::string_view, Planned> first;
  for (const Planned& one : study.mutants) first.try_emplace(one.mutant.how->name, one);
  std::vector<Planned> kept;
  for (const Operator& how : all_operators())
    if (const auto at = first.find(how.name); at != first.end()) kept.push_back(at->second);
  study.mutants = std::move(kept);
}

Planned of_one_case(const Study& study, Mutant mutant) {
  static_cast<void>(plant(study.plans.at(0), mutant));  // throws where it does not apply
  for (const Planned& one : study.mutants)
    if (one.mutant.how == mutant.how && one.mutant.site == mutant.site &&
        one.mutant.parameter == mutant.parameter)
      return one;
  return {0, study.sizes.at(0), std::move(mutant)};
}

std::vector<Result> judge(const Study& study, OracleMemo& memo, int threads,
                          const std::function<void(std::size_t)>& progress) {
  std::vector<Result> results(study.mutants.size());
  std::atomic<std::size_t> done{0};
  std::mutex mutex;
  Threads pool(threads);
  pool.for_each(static_cast<std::int64_t>(results.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    results[at] = judge_one(study, study.mutants[at], memo);
    const std::size_t count = ++done;
    if (!progress) return;
    const std::lock_guard lock(mutex);
    progress(count);
  });
  return results;
}

}  // namespace shardproof::faults
