#include "golden/scalar/ring_place.h"

namespace shardproof::scalar {

Place holder(const Layout& layout, const Shape& shape, const Torus& torus, std::int64_t element) {
  Place place;
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) {
    const Axes& axes = layout.dims()[d].axes;
    std::int64_t block = element % shape[d] / (shape[d] / torus.size(axes));
    for (const Axis* axis = axes.end(); axis-- != axes.begin(); block /= torus.size(*axis))
      place[*axis] = block % torus.size(*axis);
  }
  return place;
}

std::int64_t block_over(const Axes& axes, const Torus& torus, const Place& place) {
  std::int64_t block = 0;
  for (Axis axis : axes) block = block * torus.size(axis) + place[axis];
  return block;
}

InRing in_ring(const Op& op, const Shape& shape, const Torus& torus, std::int64_t K,
               std::int64_t element) {
  const Layout& layout = op.results[0].layout;
  if (op.kind == OpKind::reduce_scatter) {
    const std::size_t d = layout.find(op.dim).value();
    const std::int64_t n = shape[d] / torus.size(layout.dims()[d].axes);
    std::int64_t inner = 1;
    for (std::size_t later = d + 1; later < shape.size(); ++later) inner *= shape[later];
    return {block_over(op.axes, torus, holder(layout, shape, torus, element)),
            element / inner % shape[d] % n >= n - n / 2};
  }
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) at[d] = element % shape[d];
  std::int64_t i = 0;
  std::int64_t n = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t held = shape[d] / torus.size(layout.dims()[d].axes);
    i = i * held + at[d] % held;
    n *= held;
  }
  const std::int64_t chunk = i * K / n;
  // The least i with i·K ≥ chunk·n, and the count up to that of the next chunk.
  const std::int64_t from = (chunk * n + K - 1) / K;
  const std::int64_t alike = (chunk * n + n + K - 1) / K - from;
  return {chunk, i - from >= alike - alike / 2};
}

Loop way_round(const Op& op, const Setting& setting) {
  if (op.loop != Loop::none) return op.loop;
  if (setting.schedule == Schedule::ring) return Loop::one_way;
  return setting.schedule == Schedule::biring ? Loop::both_half : Loop::none;
}

std::vector<const std::vector<float>*> members(const Op& op, const Value& t, const Torus& torus,
                                               Place place) {
  std::vector<const std::vector<float>*> parts;
  for (std::int64_t member = 0; member < torus.size(op.axes); ++member) {
    std::int64_t rest = member;
    for (const Axis* axis = op.axes.end(); axis-- != op.axes.begin(); rest /= torus.size(*axis))
      place[*axis] = rest % torus.size(*axis);
    parts.push_back(&t.parts.at(part_of(t.layout.partial(), torus, place)));
  }
  return parts;
}

}  // namespace shardproof::scalar
