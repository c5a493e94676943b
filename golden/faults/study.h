#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "golden/faults/cases.h"
#include "golden/faults/detect.h"
#include "weights/base/error.h"

namespace shardproof::faults {

/// One mutant of one case.
struct Planned {
  std::size_t of_case = 0;  ///< index of Study::cases
  std::size_t number = 0;   ///< among all mutants of its case
  Mutant mutant;
};

/// What became of it.
struct Result {
  Planned planned;
  Sights sights;
  std::string reason;  ///< why it is equivalent, or "" (equivalence.h)
  std::string
      error;  ///< what the machinery could not do: a fault of the table; "" if all went well

  bool survives() const { return !sights.killed() && reason.empty(); }
};

/// The cases of a study, typed, and its mutants.
struct Study {
  std::vector<FaultCase> cases;
  std::vector<TypedPlan> plans;    ///< one for each case
  std::vector<std::size_t> sizes;  ///< of each case, how many mutants it has
  std::vector<Planned> mutants;
};

/// Returns every mutant of the cases. Throws what make_typed_plan throws, and a FindingsError if
/// the programs of a case are not well typed.
Study plan_study(std::vector<FaultCase> cases);

/// Keeps `budget` mutants, drawn by `seed` class by class and strategy by strategy in turn, so that
/// each is met as often as the others; all if there are fewer.
void draw(Study& study, std::int64_t budget, std::uint64_t seed);
/// Keeps of each operator, in each class, one mutant: the first of the smallest case.
void keep_one_each(Study& study);

/// Returns a mutant of the study's only case. Throws Error("faults_only", ...) if it has no such
/// mutant.
Planned of_one_case(const Study& study, Mutant mutant);

/// Judges all mutants, on `threads` threads; results are in the order of the mutants. `progress` is
/// told how many are done.
std::vector<Result> judge(const Study& study, OracleMemo& memo, int threads,
                          const std::function<void(std::size_t)>& progress = {});

}  // namespace shardproof::faults
