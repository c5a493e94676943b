#include "golden/diagnosis/detail/chips.h"

#include <array>

namespace shardproof::diagnosis {

int with_block(const Torus& torus, int chip, const Axes& axes, int block) {
  std::array<int, 3> where{torus.coordinate(chip, Axis::x), torus.coordinate(chip, Axis::y),
                           torus.coordinate(chip, Axis::z)};
  for (int i = axes.size(); i-- > 0;) {
    const Axis a = *(axes.begin() + i);
    where[static_cast<std::size_t>(a)] = block % torus.size(a);
    block /= torus.size(a);
  }
  return (where[0] * torus.size(Axis::y) + where[1]) * torus.size(Axis::z) + where[2];
}

Axes axes_between(const Torus& torus, int chip, int other, const Axes& axes) {
  Axes between;
  for (const Axis a : axes)
    if (torus.coordinate(chip, a) != torus.coordinate(other, a)) between = between.with(a);
  return between;
}

Axes significant(const Axes& axes, const Torus& torus) {
  Axes kept;
  for (const Axis a : axes)
    if (torus.size(a) > 1) kept = kept.with(a);
  return kept;
}

bool is_sublist(const Axes& list, const Axes& of) {
  const Axis* next = list.begin();
  for (const Axis a : of)
    if (next != list.end() && *next == a) ++next;
  return next == list.end();
}

}  // namespace shardproof::diagnosis
