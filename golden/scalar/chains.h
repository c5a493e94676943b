#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/numeric/threads.h"
#include "golden/scalar/ops.h"
#include "golden/scalar/term_order.h"

namespace shardproof::scalar {

/// The chains of an einsum at one place on its result's partial axes, one for each element of the
/// result: which chip adds which terms in which order (docs/spec.md section 1.2). If the elements
/// form rows and columns of a matrix, chains of one row whose terms come in the same order are
/// adjacent, so that several can be computed together, each in its own order.
class Chains {
 public:
  /// All references must outlive it. `shape` is the result's.
  Chains(const Op& op, const std::vector<const Value*>& args, const Setting& setting,
         const Place& place, const Shape& shape);

  /// Computes all chains, at most kColumns together. make() creates a Sum for each thread, which
  /// gets for each row: start(width); add(n, left, right, width) with the next n factors of the row
  /// and of each of its columns, right[k * width + column]; and finish(row, columns), to store the
  /// sums: column c's belongs to element row + columns[c]. Factor, float or double, is the type of
  /// `right`.
  template <class Factor, std::size_t kColumns, class Make>
  void each(Threads& threads, Make&& make) const;

 private:
  /// Rows and columns whose chains take their terms in one order.
  struct Block {
    std::vector<const OwnedTerms*> owned;  // by term
    std::vector<std::int64_t> rows, columns;
    std::size_t terms = 0;  // terms of a chain, over all terms of the spec
  };

  Place place_of(std::int64_t element) const;
  void add_block(const Place& chip, std::vector<std::int64_t> rows,
                 std::vector<std::int64_t> columns);
  /// Returns the first factor of an element in an operand.
  const float* factors(std::size_t operand, std::int64_t element) const;
  /// Writes the right factors of columns [from, from + width), term after term.
  template <class Factor>
  void pack(const Block& block, std::size_t from, std::size_t width, Factor* to) const;
  /// Returns the left factors of a row and a term: in place if they are contiguous in the operand,
  /// otherwise copied to `copy`.
  const float* row_of(const Block& block, std::size_t term, std::int64_t row,
                      std::vector<float>& copy) const;
  std::size_t terms_of(const Block& block, std::size_t term) const {
    return block.owned[term]->a.size();
  }

  const Op& op_;
  const std::vector<const Value*>& args_;
  const Torus& torus_;
  const Shape& shape_;
  std::vector<TermOrder> orders_;
  bool looped_ = false;
  std::vector<Block> blocks_;
};

template <class Factor>
void Chains::pack(const Block& block, std::size_t from, std::size_t width, Factor* to) const {
  // If row and column are one element, both are addressed by that element.
  const bool single = block.rows.size() == 1 && block.columns.size() == 1;
  for (std::size_t t = 0; t < block.owned.size(); ++t) {
    const std::vector<std::int64_t>& b = block.owned[t]->b;
    std::vector<const float*> columns;
    bool neighbours = true;
    for (std::size_t c = 0; c < width; ++c) {
      columns.push_back(factors(2 * t + 1, block.columns[from + c] + (single ? block.rows[0] : 0)));
      neighbours = neighbours && columns[c] == columns[0] + c;
    }
    if (neighbours) {
      for (const std::int64_t k : b)
        for (std::size_t c = 0; c < width; ++c)
          *to++ = static_cast<Factor>(columns[0][k + static_cast<std::int64_t>(c)]);
    } else {
      for (std::size_t c = 0; c < width; ++c)
        for (std::size_t k = 0; k < b.size(); ++k)
          to[k * width + c] = static_cast<Factor>(columns[c][b[k]]);
      to += b.size() * width;
    }
  }
}

template <class Factor, std::size_t kColumns, class Make>
void Chains::each(Threads& threads, Make&& make) const {
  constexpr std::size_t kRows = 64;  // rows that reuse columns packed once
  struct Part {
    const Block* block;
    std::size_t row, column;
  };
  std::vector<Part> parts;
  std::size_t products = 0;
  for (const Block& block : blocks_) {
    products += block.rows.size() * block.columns.size() * block.terms;
    for (std::size_t c = 0; c < block.columns.size(); c += kColumns)
      for (std::size_t r = 0; r < block.rows.size(); r += kRows) parts.push_back({&block, r, c});
  }
  // Fewer products are done before other threads have woken.
  constexpr std::size_t kWorthAThread = 1 << 15;
  Threads& by = products < kWorthAThread ? calling_thread() : threads;
  by.for_each(std::ssize(parts), [&](std::int64_t p) {
    const auto& [block, first_row, first_column] = parts[static_cast<std::size_t>(p)];
    const std::size_t width = std::min(kColumns, block->columns.size() - first_column);
    std::vector<Factor> right(block->terms * width);
    pack(*block, first_column, width, right.data());
    std::vector<float> copy;
    auto sum = make();
    for (std::size_t r = first_row; r < std::min(first_row + kRows, block->rows.size()); ++r) {
      sum.start(width);
      const Factor* of_term = right.data();
      for (std::size_t t = 0; t < block->owned.size(); ++t) {
        const std::size_t n = terms_of(*block, t);
        sum.add(n, row_of(*block, t, block->rows[r], copy), of_term, width);
        of_term += n * width;
      }
      sum.finish(block->rows[r], std::span(block->columns).subspan(first_column, width));
    }
  });
}

}  // namespace shardproof::scalar
