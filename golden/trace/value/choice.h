#pragma once

#include <cstddef>

#include "golden/bounds/number/interval_tensor.h"

namespace shardproof::dump {

/// How a token can be the argmax of a block: only it can; others can, too; it cannot, as in the
/// case of a number that is not an id of the block.
enum class ArgmaxFit { certain, ambiguous, impossible };

/// The argmax of logits known to within a radius, the first of equals: over a whole row, or in each
/// of equal blocks of the vocabulary.
class Choice {
 public:
  /// `logits` [BV] outlives it. Blocks have `width` ids, the last one fewer if V ends before;
  /// without a width `blocks` divides V.
  Choice(const bounds::IntervalTensor& logits, std::size_t blocks, std::size_t width = 0);

  /// Returns the most likely argmax of block `at`, counted through all rows, as a token id.
  std::size_t best(std::size_t at) const;

  /// Returns how a token can be the argmax of block `at`.
  ArgmaxFit of(std::size_t at, double token) const;

  /// Returns the largest logit of each block, [BC].
  bounds::IntervalTensor largest() const;

 private:
  /// A block of a row: its first id, and the range of its logits.
  struct Block {
    std::size_t id, first, last;
  };
  Block block(std::size_t at) const;

  const bounds::IntervalTensor& logits_;
  std::size_t blocks_, V_, width_;
};

}  // namespace shardproof::dump
