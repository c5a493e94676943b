#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/layout/layout.h"

namespace shardproof {

/// The judge's own implementation of the layout notation. It shares no code with the engine: a
/// common layout bug would go unnoticed. A layout and a shape passed together have the same rank.

/// Returns the coordinates (x, y, z) of chip number (x·Y + y)·Z + z.
std::array<int, 3> judged_coordinates(const Torus& torus, int chip);

/// Returns true if a tensor of this shape can have the layout: ranks match, and each dim divides.
bool judged_divides(const Layout& layout, const Shape& shape, const Torus& torus);

/// Returns the global index where a chip's block begins: `F_zyx` chip (x,y,z) holds block
/// (z·Y+y)·X+x.
Shape judged_offset(const Layout& layout, const Shape& shape, const Torus& torus, int chip);

/// Returns the shape of one chip's block.
Shape judged_block(const Layout& layout, const Shape& shape, const Torus& torus);

/// Returns the chips whose partial sums add up to the block of `chip`, in ascending order; for a
/// complete layout the chip alone.
std::vector<int> judged_group(const Layout& layout, const Torus& torus, int chip);

/// Returns the first chip of judged_group.
int judged_first(const Layout& layout, const Torus& torus, int chip);

/// Returns the index of the partial sum that a chip holds under a partial layout: its coordinates
/// on the partial axes as one number, in the order x, y, z, z fastest.
std::size_t judged_part(const Layout& layout, const Torus& torus, int chip);

/// Maps the elements of every chip's block to the global tensor, both row-major, as runs that are
/// contiguous in both.
class JudgedBlocks {
 public:
  /// The layout must divide the shape.
  JudgedBlocks(const Layout& layout, const Shape& shape, const Torus& torus);

  std::int64_t elements() const { return elements_; }  ///< elements of a block
  std::int64_t run() const { return run_; }            ///< elements of a run
  /// Offsets of a block's runs in the global tensor, relative to the block's first element.
  std::span<const std::int64_t> runs() const { return runs_; }
  /// Row-major index of the first global element of a chip's block.
  std::int64_t first(int chip) const { return firsts_[static_cast<std::size_t>(chip)]; }

 private:
  std::int64_t elements_, run_ = 1;
  std::vector<std::int64_t> runs_, firsts_;
};

/// Calls see(local element, global element), both row-major, for each element of a chip's block in
/// order, until it returns true; returns true if it did.
template <class See>
bool judged_elements(const Layout& layout, const Shape& shape, const Torus& torus, int chip,
                     See&& see) {
  const Shape block = judged_block(layout, shape, torus);
  const Shape offset = judged_offset(layout, shape, torus, chip);
  const std::int64_t count = element_count(block);
  const std::int64_t run = block.empty() ? 1 : block.back();
  Shape index(block.size(), 0);
  for (std::int64_t local = 0; local < count;) {
    std::int64_t global = 0;
    for (std::size_t d = 0; d < block.size(); ++d)
      global = global * shape[d] + offset[d] + index[d];
    for (const std::int64_t end = local + run; local < end; ++local, ++global)
      if (see(local, global)) return true;
    // The last dim is done; advance the dims before it.
    for (std::size_t d = block.size(); d-- > 1 && ++index[d - 1] == block[d - 1];) index[d - 1] = 0;
  }
  return false;
}

}  // namespace shardproof
