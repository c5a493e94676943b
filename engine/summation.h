#pragma once

#include "weights/numerics.h"

namespace shardproof {

/// How the partial sums of one value are added in the f32 regime (docs/spec.md section 1.2): in
/// which order, and what is rounded to bf16 on the way.
struct Summation {
  Schedule order = Schedule::group;
  FloatType acc = FloatType::f32;   ///< bf16: after every addition
  FloatType wire = FloatType::f32;  ///< bf16: what travels

  bool rounds() const { return acc == FloatType::bf16 || wire == FloatType::bf16; }
};

}  // namespace shardproof
