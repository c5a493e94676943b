#include "weights/base/ieee.h"

#include <cfenv>
#include <limits>

#include "weights/base/error.h"

namespace shardproof {

void require_ieee() {
  if (std::fegetround() != FE_TONEAREST)
    throw Error("ieee_c1", "this thread does not round to nearest; fesetround(FE_TONEAREST)");
  // Volatile, so that the processor computes it now. Flushed operands and flushed results both give
  // zero.
  volatile float least = std::numeric_limits<float>::denorm_min();
  volatile float normal = std::numeric_limits<float>::min();
  const float kept = least * 1.0F;
  const float made = normal * 0.5F;
  if (kept == 0.0F || made == 0.0F)
    throw Error("ieee_c2",
                "this thread flushes subnormals to zero; was the program linked with -ffast-math?");
}

}  // namespace shardproof
