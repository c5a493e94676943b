#pragma once

#include <cstddef>

#include "golden/bounds/number/carried.h"

namespace shardproof::candidate {

/// Which of some logits is the largest, the first of equals, as far as they are known: of all of a
/// row, or of each of equal blocks of the vocabulary.
class Choice {
 public:
  /// `logits` [BV] outlives it. Blocks are of `width` ids, the last one of fewer where V ends
  /// before; without a width `blocks` divides V.
  Choice(const bounds::Carried& logits, std::size_t blocks, std::size_t width = 0);

  /// Of block `at`, counted through all rows: the token id that is nearest to being the largest.
  std::size_t best(std::size_t at) const;

  /// Whether the token may be the largest of block `at`: no other one may, another one may as well,
  /// or it may not, as what is no id of the block may not.
  enum class May { alone, among_others, not_be };
  May of(std::size_t at, double token) const;

  /// The largest of each block, [BC].
  bounds::Carried largest() const;

 private:
  /// A block of a row: its first id, and where its logits are.
  struct Block {
    std::size_t id, first, last;
  };
  Block block(std::size_t at) const;

  const bounds::Carried& logits_;
  std::size_t blocks_, V_, width_;
};

}  // namespace shardproof::candidate
