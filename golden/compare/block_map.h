#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/layout/layout.h"

namespace shardproof {

/// The judge's own reading of the notation, a few lines that share nothing with the engine's: a
/// layout bug that the tested run and the judge have in common would stay unseen. Where a layout
/// and a shape are given together they have the same rank.

/// The coordinates (x, y, z) of a chip by its number, (x·Y + y)·Z + z.
std::array<int, 3> judged_coordinates(const Torus& torus, int chip);

/// Whether a tensor of this shape can have the layout: as many dims, and each divides.
bool judged_divides(const Layout& layout, const Shape& shape, const Torus& torus);

/// Where a chip's block of each dim of a global `shape` begins: in `F_zyx` chip (x,y,z) holds block
/// (z·Y+y)·X+x.
Shape judged_offset(const Layout& layout, const Shape& shape, const Torus& torus, int chip);

/// The shape of one chip's block.
Shape judged_block(const Layout& layout, const Shape& shape, const Torus& torus);

/// The chips whose partial shards sum up to what `chip` stands for, lowest number first; of a
/// complete layout the chip alone.
std::vector<int> judged_group(const Layout& layout, const Torus& torus, int chip);

/// The first of them.
int judged_first(const Layout& layout, const Torus& torus, int chip);

/// Which of the summands of a partial layout a chip holds: its coordinates on the partial axes as
/// one number, in the order x, y, z, z fastest.
std::size_t judged_part(const Layout& layout, const Torus& torus, int chip);

/// Where the elements of every chip's block lie in the global tensor, both row-major, in runs that
/// lie side by side in both.
class JudgedBlocks {
 public:
  /// The layout divides the shape.
  JudgedBlocks(const Layout& layout, const Shape& shape, const Torus& torus);

  std::int64_t elements() const { return elements_; }  ///< of a block
  std::int64_t run() const { return run_; }            ///< elements of a run
  /// Where the runs of a block begin in the global tensor, from where the block does.
  std::span<const std::int64_t> runs() const { return runs_; }
  /// The number of the first global element of a chip's block.
  std::int64_t first(int chip) const { return firsts_[static_cast<std::size_t>(chip)]; }

 private:
  std::int64_t elements_, run_ = 1;
  std::vector<std::int64_t> runs_, firsts_;
};

/// Calls see(local element, global element), both row-major, for each element of a chip's block in
/// its order, until it returns true; whether it did.
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
    // The last dim is done; the next of those before it.
    for (std::size_t d = block.size(); d-- > 1 && ++index[d - 1] == block[d - 1];) index[d - 1] = 0;
  }
  return false;
}

}  // namespace shardproof
