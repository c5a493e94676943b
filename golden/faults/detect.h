#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "golden/faults/others.h"
#include "golden/faults/plant.h"
#include "golden/memo/oracle_memo.h"

namespace shardproof::faults {

/// The detectors, each of which judges every mutant by itself.
enum class Seer { types, replicas, exact, field, bounds };
inline constexpr std::size_t kDetectors = 5;
/// Their names, in this order.
std::span<const std::string_view> detector_names();

/// What one detector, or one check of others, says of a mutant.
enum class Sight {
  silent,   ///< it sees nothing
  seen,     ///< it says so
  not_run,  ///< the mutant, or the case, is not for it
};

/// What all say of one mutant.
struct Sights {
  std::array<Sight, kDetectors> own{};
  OtherSights others = {};
  std::string first;  ///< the first finding, in one line
  bool killed() const { return std::find(own.begin(), own.end(), Sight::seen) != own.end(); }
};

/// Lets every detector judge a mutant of a case. Runs are on one thread.
Sights detect(const TypedPlan& typed, const Mutant& mutant, OracleMemo& memo);

/// Lets the exact regime, the bounds and others judge: what the size of a change matters to.
Sights detect_in_floats(const TypedPlan& typed, const Mutant& mutant, OracleMemo& memo);

/// Judges a run of the exact regime by its values alone: returns the first finding, "" if there is
/// none. For a case with another seed than the plan's, too. `mutant` null: a right run.
std::string judge_exact(const RunPlan& plan, const Mutant* mutant, OracleMemo& memo);

/// Returns what others say of right runs in bf16 of a case, held against the f32 model, and whether
/// the bounds say anything: the false alarms.
struct FalseAlarms {
  OtherSights others;
  bool bounds = false;
};
FalseAlarms false_alarms(const Case& c, OracleMemo& memo);

}  // namespace shardproof::faults
