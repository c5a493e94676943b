#include "golden/compare/block_map.h"

namespace shardproof {

std::array<int, 3> judged_coordinates(const Torus& torus, int chip) {
  const int Y = torus.size(Axis::y);
  const int Z = torus.size(Axis::z);
  return {chip / (Y * Z), chip / Z % Y, chip % Z};
}

bool judged_divides(const Layout& layout, const Shape& shape, const Torus& torus) {
  if (layout.rank() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t blocks = 1;
    for (Axis a : layout.dims()[d].axes) blocks *= torus.size(a);
    if (shape[d] % blocks != 0) return false;
  }
  return true;
}

Shape judged_offset(const Layout& layout, const Shape& shape, const Torus& torus, int chip) {
  const std::array<int, 3> where = judged_coordinates(torus, chip);
  Shape offset;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t block = 0;
    std::int64_t blocks = 1;
    for (Axis a : layout.dims()[d].axes) {
      block = block * torus.size(a) + where[static_cast<std::size_t>(a)];
      blocks *= torus.size(a);
    }
    offset.push_back(block * (shape[d] / blocks));
  }
  return offset;
}

Shape judged_block(const Layout& layout, const Shape& shape, const Torus& torus) {
  Shape local = shape;
  for (std::size_t d = 0; d < shape.size(); ++d)
    for (Axis a : layout.dims()[d].axes) local[d] /= torus.size(a);
  return local;
}

JudgedBlocks::JudgedBlocks(const Layout& layout, const Shape& shape, const Torus& torus) {
  const Shape block = judged_block(layout, shape, torus);
  elements_ = element_count(block);
  // A run covers the last dims that a block holds whole, and its share of the dim before them.
  std::size_t outer = block.size();
  while (outer > 0) {
    run_ *= block[--outer];
    if (block[outer] != shape[outer]) break;
  }
  if (elements_ > 0) {
    runs_.reserve(static_cast<std::size_t>(elements_ / run_));
    Shape index(outer, 0);
    for (std::int64_t run = 0; run < elements_ / run_; ++run) {
      std::int64_t from = 0;
      for (std::size_t d = 0; d < shape.size(); ++d)
        from = from * shape[d] + (d < outer ? index[d] : 0);
      runs_.push_back(from);
      for (std::size_t d = outer; d-- > 0 && ++index[d] == block[d];) index[d] = 0;
    }
  }
  firsts_.reserve(static_cast<std::size_t>(torus.chips()));
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::array<int, 3> where = judged_coordinates(torus, chip);
    std::int64_t first = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t of_dim = 0;
      for (Axis a : layout.dims()[d].axes)
        of_dim = of_dim * torus.size(a) + where[static_cast<std::size_t>(a)];
      first = first * shape[d] + of_dim * block[d];
    }
    firsts_.push_back(first);
  }
}

std::vector<int> judged_group(const Layout& layout, const Torus& torus, int chip) {
  const std::array<int, 3> mine = judged_coordinates(torus, chip);
  std::vector<int> members;
  for (int other = 0; other < torus.chips(); ++other) {
    const std::array<int, 3> theirs = judged_coordinates(torus, other);
    bool same = true;
    for (Axis a : {Axis::x, Axis::y, Axis::z}) {
      const auto at = static_cast<std::size_t>(a);
      same = same && (layout.partial().has(a) || theirs[at] == mine[at]);
    }
    if (same) members.push_back(other);
  }
  return members;
}

int judged_first(const Layout& layout, const Torus& torus, int chip) {
  std::array<int, 3> where = judged_coordinates(torus, chip);
  for (Axis a : layout.partial()) where[static_cast<std::size_t>(a)] = 0;
  return (where[0] * torus.size(Axis::y) + where[1]) * torus.size(Axis::z) + where[2];
}

std::size_t judged_part(const Layout& layout, const Torus& torus, int chip) {
  const std::array<int, 3> where = judged_coordinates(torus, chip);
  int part = 0;
  for (Axis a : {Axis::x, Axis::y, Axis::z})
    if (layout.partial().has(a)) part = part * torus.size(a) + where[static_cast<std::size_t>(a)];
  return static_cast<std::size_t>(part);
}

}  // namespace shardproof
