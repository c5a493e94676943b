#include "golden/judged_layout.h"

namespace shardproof {

std::array<int, 3> judged_coordinates(const Torus& torus, int chip) {
  const int Y = torus.size(Axis::y);
  const int Z = torus.size(Axis::z);
  return {chip / (Y * Z), chip / Z % Y, chip % Z};
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

}  // namespace shardproof
