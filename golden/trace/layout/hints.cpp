#include "golden/trace/layout/hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace shardproof::dump {
namespace {

constexpr Axis kAxes[] = {Axis::x, Axis::y, Axis::z};

/// Suggests a torus that splits the axis that cuts K in two: one for K, and one for replicas.
std::string on_two_axes(const Axes& axes, const Torus& torus, std::int64_t K) {
  if (axes.size() != 1 || K < 2) return "";
  const Axis cut = *axes.begin();
  int sizes[3];
  std::optional<Axis> free;
  for (const Axis a : kAxes) {
    sizes[static_cast<int>(a)] = torus.size(a);
    if (!free && torus.size(a) == 1) free = a;
  }
  if (!free || torus.size(cut) % K != 0) return "";
  sizes[static_cast<int>(*free)] = torus.size(cut) / static_cast<int>(K);
  sizes[static_cast<int>(cut)] = static_cast<int>(K);
  return fmt::format(": torus={}x{}x{}, H_{}{}, K_{}", sizes[0], sizes[1], sizes[2], to_char(cut),
                     to_char(*free), to_char(cut));
}

}  // namespace

std::string hint_of_kv_heads(const Layout& layout, const Torus& torus, std::int64_t theirs,
                             std::int64_t K) {
  const Axes axes = layout.axes('K');
  if (axes.empty() || theirs % K != 0 || theirs == K) return "";
  const std::string_view on_few = "; where chips share a kv head, it is cut over fewer";
  if (K == 1) return fmt::format("{}: without axes, K", on_few);
  return fmt::format("{}{}", on_few, on_two_axes(axes, torus, K));
}

std::string hint_of_flat_tokens(const std::string& letters, const Shape& theirs,
                                const Subject& subject) {
  const Shape& ours = subject.shape;
  if (!subject.dims.starts_with("BL")) return "";
  const std::int64_t tokens = ours[0] * ours[1];
  bool flat = theirs.size() + 1 == ours.size() && !theirs.empty() && theirs[0] == tokens;
  if (theirs.size() == ours.size() && letters.size() == theirs.size()) {
    const std::size_t B = letters.find('B'), L = letters.find('L');
    flat = B < theirs.size() && L < theirs.size() && theirs[B] * theirs[L] == tokens &&
           std::min(theirs[B], theirs[L]) == 1 && theirs[B] != ours[0];
  }
  if (!flat) return "";
  return fmt::format("; flat tokens are rows of {0} tokens: reshape {1} to B {2}, L {0}", ours[1],
                     tokens, ours[0]);
}

}  // namespace shardproof::dump
