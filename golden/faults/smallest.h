#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden/faults/cases.h"
#include "golden/faults/detect.h"

namespace shardproof::faults {

/// One size of a fault: of how many sites it was seen. Size 0 is the right run.
struct SizeSeen {
  std::string size;  ///< "2^3 ulps", "1 + 2^-9", "20 bits"
  std::int64_t sites = 0, exact = 0, bounds = 0;
  OtherCounts end_to_end{}, per_value{};
};

/// How the sights of a kind of fault grow with its size, in one storage of activations.
struct SizeCurve {
  std::string what;    ///< "one element by n units in the last place"
  std::string format;  ///< "f32" or "bf16"
  std::vector<SizeSeen> sizes;
};

/// Where faults of growing size are planted.
struct SizeSite {
  std::size_t of_case = 0;
  Site site;
};
/// Returns steps of the prefill's layers that return floats, partial sums too, other than weights
/// and caches; in bf16 those whose results are stored so. Of one case all of them; of several two
/// each, other ones from case to case.
std::vector<SizeSite> sites_of_sizes(const std::vector<TypedPlan>& cases, NumberFormat format);

/// Plants faults of growing size at these sites of the cases, one at a time, and lets the detectors
/// of floats judge: one element off by n units in the last place, a value scaled by 1 + d, a value
/// rounded once more to fewer bits; each with activations in f32 and in bf16. Throws what
/// make_typed_plan throws.
std::vector<SizeCurve> smallest_effects(const std::vector<FaultCase>& cases, OracleMemo& memo,
                                        int threads);

}  // namespace shardproof::faults
