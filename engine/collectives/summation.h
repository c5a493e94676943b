#pragma once

#include <cstddef>

#include "weights/model/numerics.h"

namespace shardproof {

/// How the partial sums of one value are added in the f32 regime (docs/spec.md section 1.2): in
/// which order, and what is rounded to bf16 on the way.
struct Summation {
  Schedule order = Schedule::group;
  FloatType acc = FloatType::f32;   ///< bf16: after every addition
  FloatType wire = FloatType::f32;  ///< bf16: what travels
  Loop loop = Loop::none;           ///< of a looped einsum and reduce_scatter, in place of `order`
  /// The place of the dim that a reduce_scatter scatters: of it the chunks have two halves.
  std::size_t dim = 0;

  bool rounds() const { return acc == FloatType::bf16 || wire == FloatType::bf16; }
  /// The loop whose order it is; none for group and tree.
  Loop ring() const {
    if (loop != Loop::none) return loop;
    if (order == Schedule::ring) return Loop::one_way;
    return order == Schedule::biring ? Loop::both_half : Loop::none;
  }
};

}  // namespace shardproof
