#pragma once

#include "golden/bounds/number/interval_tensor.h"
#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// Rounding error of an encoding: |RN(x) − x| is at most unit·|x|, or least.
struct Coarse {
  double unit = 0.0, least = 0.0;
};
inline Coarse coarse_of(NumberFormat encoding) {
  if (encoding == NumberFormat::f64) return {};  // exact, as whole numbers are
  return {row_of(encoding).unit, row_of(encoding).least};
}

}  // namespace shardproof::dump
