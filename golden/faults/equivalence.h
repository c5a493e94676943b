#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "golden/faults/plant.h"
#include "golden/memo/oracle_memo.h"

namespace shardproof::faults {

/// A structural reason why a mutant is equivalent to the right program, from a closed list.
struct Reason {
  std::string_view name;  ///< "order-of-a-sum"
  std::string_view why;   ///< a sentence
};
const std::vector<Reason>& all_reasons();

/// Returns the name of the reason that holds of a mutant, read off the program at its site; "" if
/// none does.
std::string_view reason_of(const TypedPlan& typed, const Mutant& mutant);

/// Returns the name of the reason why a mutant that no detector sees is equivalent to the right
/// program, or "": a reason holds, and the mutant's values are the model's, bit for bit, for five
/// other seeds.
std::string equivalent_by(const TypedPlan& typed, const Mutant& mutant, OracleMemo& memo);

}  // namespace shardproof::faults
