#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// A reordering of the chunks of a ring of n: index() returns the chunk found at `place`.
struct Order {
  std::string words;
  int (*index)(int own, int place, int n, int k);
  int k = 0;
};
/// Returns the orders reversed, ring sign changed, and rotated.
std::vector<Order> orders(int n);

/// Returns whether 0 to n-1 each occur once.
bool is_permutation(const std::vector<int>& held);

/// A reordering of the blocks of a dim that is cut over a list of axes.
struct Exchange {
  std::string_view fault;
  std::string words;  ///< "the blocks are reversed"
  std::string axes;
  int parameters = 0;
  std::vector<int> held;  ///< held[r]: the block found in place of block r
};
/// Returns the candidate reorderings: axes in another order, chunks in another order, one block
/// everywhere, one block in place of another. `gathered`: each chip has all blocks. `order_alone`:
/// only axes in another order; another list of the same axes has the rest.
std::vector<Exchange> exchanges(const Question& question, const Axes& list, bool gathered,
                                bool order_alone);

/// Returns indices in which each run of held.size() blocks is reordered: held[r] in place of r.
std::vector<std::size_t> reordered(std::size_t size, std::int64_t length,
                                   const std::vector<int>& held);

/// Calls with(candidate, held) for each reordering of the blocks of a dim of the value, of this
/// extent.
void each_exchange(const Question& question, char letter, std::int64_t extent,
                   const std::function<void(Candidate, const std::vector<int>& held)>& with);

/// What blocks of a contracted dim add of another place in a dim of the result.
struct Misplaced {
  std::string words;
  int parameters = 0;
  /// The index in the dim of what a block adds; from 0 to its extent after mod.
  std::function<std::int64_t(std::int64_t own, int block)> from;
};
/// Returns what some of n blocks may add of a number of rows or tokens before, and each of its own
/// part of a dim.
std::vector<Misplaced> misplaced_blocks(char letter, std::int64_t extent, int n);

/// Returns orders of heads (the head in each place): reversed, rotated, across groups.
std::vector<std::pair<std::string, std::vector<int>>> head_orders(int heads);

}  // namespace shardproof::diagnosis
