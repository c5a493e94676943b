#include "weights/base/ieee.h"

#include <gtest/gtest.h>

#include <cfenv>

#include "tests/weights/expect_error.h"
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace shardproof {
namespace {

TEST(RequireIeee, HoldsAsAProcessStarts) { EXPECT_EQ(label_of(require_ieee), ""); }

TEST(RequireIeee, RefusesEveryOtherRoundingMode) {
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const std::string label = label_of(require_ieee);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(label, "ieee_c1") << mode;
  }
}

#ifdef __SSE2__
TEST(RequireIeee, RefusesFlushedSubnormals) {
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  for (unsigned bits : {kFlushToZero, kDenormalsAreZero, kFlushToZero | kDenormalsAreZero}) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | bits);
    const std::string label = label_of(require_ieee);
    _mm_setcsr(before);
    EXPECT_EQ(label, "ieee_c2") << bits;
  }
}
#endif

}  // namespace
}  // namespace shardproof
