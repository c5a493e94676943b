#pragma once

#include <cstddef>

#include "weights/model/numerics.h"

namespace shardproof {

/// How the partial sums of one value are added in the f32 regime (docs/spec.md section 1.2): the
/// order, and what is rounded to bf16.
struct Summation {
  Schedule order = Schedule::group;
  NumberFormat acc = NumberFormat::f32;   ///< bf16: round after every addition
  NumberFormat wire = NumberFormat::f32;  ///< bf16: round what travels
  Loop loop = Loop::none;  ///< loop of an einsum and reduce_scatter; replaces `order`
  /// Index of the dim that a reduce_scatter scatters; halves of chunks are halves of this dim.
  std::size_t dim = 0;

  bool rounds() const { return acc == NumberFormat::bf16 || wire == NumberFormat::bf16; }
  /// The loop whose order applies; none for group and tree.
  Loop ring() const {
    if (loop != Loop::none) return loop;
    if (order == Schedule::ring) return Loop::one_way;
    return order == Schedule::biring ? Loop::both_half : Loop::none;
  }
};

}  // namespace shardproof
