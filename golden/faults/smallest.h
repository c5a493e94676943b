#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

/// Plants faults of growing size at every value that a layer of ws2d:batch makes, partial sums too,
/// one at a time, and lets the detectors of floats judge: one element off by n units in the last
/// place, a value scaled by 1 + d, a value rounded once more to fewer bits. In bf16 the values are
/// those that are stored so.
std::vector<SizeCurve> smallest_effects(OracleMemo& memo, int threads);

}  // namespace shardproof::faults
