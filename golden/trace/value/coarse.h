#pragma once

#include "golden/bounds/number/interval_tensor.h"
#include "golden/trace/read/dump.h"

namespace shardproof::dump {

/// Rounding error of an encoding: |RN(x) − x| is at most unit·|x|, or least.
struct Coarse {
  double unit = 0.0, least = 0.0;
};
inline Coarse coarse_of(dump::Encoding encoding) {
  const auto of = [](bounds::Format format) {
    return Coarse{bounds::unit_of(format), bounds::least_of(format)};
  };
  if (encoding == dump::Encoding::f32) return of(bounds::Format::f32);
  if (encoding == dump::Encoding::bf16) return of(bounds::Format::bf16);
  if (encoding == dump::Encoding::f16) return {0x1p-11, 0x1p-25};
  return {};  // f64 and integers are exact
}

}  // namespace shardproof::dump
