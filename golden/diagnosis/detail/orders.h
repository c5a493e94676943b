#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// Chunks of a ring of n, by the index that should be where another one is.
struct Order {
  std::string words;
  int (*index)(int own, int place, int n, int k);
  int k = 0;
};
/// Reversed, rotated, with the ring's sign changed.
std::vector<Order> orders(int n);

/// Whether each of 0 to n-1 is there once.
bool is_permutation(const std::vector<int>& held);

/// Blocks of one thing, cut over a list of axes, in place of each other.
struct Exchange {
  std::string_view fault;
  std::string words;  ///< "the blocks are reversed"
  std::string axes;
  int parameters = 0;
  std::vector<int> held;  ///< for each block, which one is there in its place
};
/// Axes in another order, chunks in another order, one block for all, one block for another.
/// `gathered`: each chip has all of them. Of several lists of the same axes, where only their
/// order is tried (`order_alone`), the others are the same blocks again.
std::vector<Exchange> exchanges(const Question& question, const Axes& list, bool gathered,
                                bool order_alone);

/// Orders of heads, by what is there in the place of each: rotated, reversed, and group by group.
std::vector<std::pair<std::string, std::vector<int>>> head_orders(int heads);

}  // namespace shardproof::diagnosis
