#include "engine/cost/plan/tori.h"

#include <algorithm>

namespace shardproof::cost {
namespace {

int sum_of_axes(const Torus& torus) {
  return torus.size(Axis::x) + torus.size(Axis::y) + torus.size(Axis::z);
}

template <class Test>
bool every_axis(const Torus& torus, const Test& test) {
  return test(torus.size(Axis::x)) && test(torus.size(Axis::y)) && test(torus.size(Axis::z));
}

}  // namespace

std::vector<Torus> all_tori(int chips) {
  static_cast<void>(Torus(chips, 1, 1));  // throws if no torus has so many chips
  std::vector<Torus> tori;
  for (int X = 1; X <= chips; ++X) {
    if (chips % X != 0) continue;
    for (int Y = 1; Y <= chips / X; ++Y)
      if (chips / X % Y == 0) tori.emplace_back(X, Y, chips / X / Y);
  }
  return tori;
}

std::vector<Torus> slice_tori(int chips, std::int64_t min_axis) {
  std::vector<Torus> whole, small;
  for (const Torus& torus : all_tori(chips)) {
    if (every_axis(torus, [&](int size) { return size % min_axis == 0; })) whole.push_back(torus);
    if (every_axis(torus, [&](int size) { return min_axis % size == 0; })) small.push_back(torus);
  }
  if (!whole.empty() || small.empty()) return whole;
  int least = sum_of_axes(small.front());
  for (const Torus& torus : small) least = std::min(least, sum_of_axes(torus));
  std::erase_if(small, [&](const Torus& torus) { return sum_of_axes(torus) != least; });
  return small;
}

std::vector<int> slice_sizes(std::int64_t min_axis, int most) {
  std::vector<int> sizes;
  for (int chips = 1; chips <= std::min(most, Torus::kMaxChips); ++chips)
    if (!slice_tori(chips, min_axis).empty()) sizes.push_back(chips);
  return sizes;
}

}  // namespace shardproof::cost
