#include "engine/collectives/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/collectives/chip_groups.h"
#include "engine/collectives/detail/f32_sums.h"
#include "engine/collectives/detail/field_sums.h"
#include "engine/collectives/detail/partial_sums.h"
#include "engine/collectives/detail/runs.h"
#include "engine/numeric/larger.h"

namespace shardproof {
namespace {

/// Where a piece's block begins in the source and target buffers.
template <class T>
struct Copy {
  const T* from;
  T* to;
};

/// Copies short runs of a compile-time length. Iterates over runs first, then pieces: in a gather
/// the pieces' targets are adjacent.
template <std::size_t N, class T>
void copy_runs(const std::vector<Run>& runs, const std::vector<Copy<T>>& copies) {
  for (const Run& run : runs)
    for (const Copy<T>& copy : copies)
      std::memcpy(copy.to + run.to, copy.from + run.from, N * sizeof(T));
}

template <class T>
void copy_runs(const Runs& runs, std::int64_t width, const std::vector<Copy<T>>& copies) {
  if (width == 1) switch (runs.length) {
      case 1:
        return copy_runs<1>(runs.all, copies);
      case 2:
        return copy_runs<2>(runs.all, copies);
      case 4:
        return copy_runs<4>(runs.all, copies);
      case 8:
        return copy_runs<8>(runs.all, copies);
      case 16:
        return copy_runs<16>(runs.all, copies);
      case 32:
        return copy_runs<32>(runs.all, copies);
      default:
        break;
    }
  for (const Copy<T>& copy : copies)
    for (const Run& run : runs.all)
      std::copy_n(copy.from + run.from * width, runs.length * width, copy.to + run.to * width);
}

/// Every chip's new array from the pieces it receives, with `width` numbers per element.
template <class T>
ChipArrays<T> move_arrays(const ChipArrays<T>& from, const Moves& moves, const ChipGroups& groups,
                          std::int64_t width, Threads& threads) {
  const auto count = static_cast<std::size_t>(element_count(moves.to_local) * width);
  const Runs runs(moves);
  return made_by<T>(groups, moves.pieces.size(), count, threads, [&](std::int64_t chip, T* to) {
    const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    std::vector<Copy<T>> copies;
    copies.reserve(pieces.size());
    for (const Piece& piece : pieces)
      copies.push_back({from[static_cast<std::size_t>(piece.from_chip)].data() + piece.from * width,
                        to + piece.to * width});
    copy_runs(runs, width, copies);
  });
}

bool any_filled(const auto& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](const auto& a) { return !a.empty(); });
}

/// Returns `given` with missing buffers filled by fill(chip, buffer), once per set of values.
template <class T, class Fill>
ChipArrays<T> written_out(const ChipArrays<T>& given, const ChipArrays<double>& values,
                          Fill&& fill) {
  ChipArrays<T> all = given;
  std::unordered_map<const void*, std::size_t> first;
  for (std::size_t c = 0; c < all.size(); ++c) {
    if (!given[c].empty() || values[c].empty()) continue;
    const auto [at, is_first] = first.emplace(values.identity(c), c);
    if (is_first)
      fill(c, all[c]);
    else
      all.share(c, at->second);
  }
  return all;
}

/// Writes out implicit origins and bounds, so that blocks of different chips can share a shard.
ChipArrays<Origin> explicit_origins(const Partial& partial) {
  return written_out(partial.origins, partial.values, [&](std::size_t c, Buffer<Origin>& origins) {
    origins.reserve(partial.values[c].size());
    for (std::size_t i = 0; i < partial.values[c].size(); ++i)
      origins.push_back({static_cast<std::int32_t>(c), static_cast<std::uint32_t>(i)});
  });
}

ChipArrays<float> explicit_bounds(const Partial& partial) {
  if (!any_filled(partial.bounds)) return partial.bounds;
  return written_out(partial.bounds, partial.values, [&](std::size_t c, Buffer<float>& bounds) {
    bounds.assign(partial.values[c].size(), 0.0F);
  });
}

Partial move_partial(const Partial& from, const Moves& moves, const ChipGroups& groups,
                     Threads& threads) {
  Partial to;
  to.values = move_arrays(from.values, moves, groups, 1, threads);
  const ChipArrays<float> bounds = explicit_bounds(from);
  to.bounds = any_filled(bounds) ? move_arrays(bounds, moves, groups, 1, threads)
                                 : ChipArrays<float>(from.values.size());
  to.origins = move_arrays(explicit_origins(from), moves, groups, from.terms, threads);
  to.terms = from.terms;
  to.source = from.source;
  return to;
}

}  // namespace

Sharded transfer(const Sharded& value, const Moves& moves, const Layout& layout, const Shape& shape,
                 Threads& threads) {
  return transfer(value, moves, value.torus(), layout, shape, threads);
}

Sharded transfer(const Sharded& value, const Moves& moves, const Torus& target,
                 const Layout& layout, const Shape& shape, Threads& threads) {
  ChipGroups groups(target, threads);
  groups.split(moves, value);
  return {target, layout, shape,
          std::visit(
              [&](const auto& data) -> Sharded::Data {
                using Kind = std::decay_t<decltype(data)>;
                if constexpr (std::is_same_v<Kind, Partial>)
                  return move_partial(data, moves, groups, threads);
                else if constexpr (std::is_same_v<Kind, FieldShards>)
                  return FieldShards{move_arrays(data.values, moves, groups, 1, threads),
                                     data.field, data.sort, data.degree};
                else
                  return move_arrays(data, moves, groups, 1, threads);
              },
              value.data())};
}

Sharded reduce(const Sharded& value, const Moves& moves, const Layout& layout, const Shape& shape,
               Threads& threads, const Summation& how) {
  ChipGroups groups(value.torus(), threads);
  groups.split(moves, value);
  if (value.holds_field())
    return {value.torus(), layout, shape, field_sums(value.field(), moves, groups, threads)};
  if (!value.holds_partial())
    return {value.torus(), layout, shape, f32_sums(value.f32(), moves, how, groups, threads)};
  if (layout.is_partial())
    return {value.torus(), layout, shape, partial_sums(value.partial(), moves, groups, threads)};
  return {value.torus(), layout, shape, rounded_sums(value.partial(), moves, groups, threads)};
}

Sharded reduce_by_max(const Sharded& value, const Moves& moves, const Layout& layout,
                      const Shape& shape, Threads& threads) {
  if (value.holds_field()) return reduce(value, moves, layout, shape, threads);
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  ChipGroups groups(value.torus(), threads);
  groups.split(moves, value);
  const Runs runs(moves);
  const auto count = static_cast<std::size_t>(element_count(moves.to_local));
  auto most = made_by<float>(
      groups, moves.pieces.size(), count, threads, [&](std::int64_t chip, float* to) {
        std::fill_n(to, count, kNothing);
        for (const Piece& piece : moves.pieces[static_cast<std::size_t>(chip)]) {
          const float* const from =
              value.f32()[static_cast<std::size_t>(piece.from_chip)].data() + piece.from;
          for (const Run& run : runs.all)
            for (std::int64_t i = 0; i < runs.length; ++i) {
              float& largest = to[piece.to + run.to + i];
              largest = larger(largest, from[run.from + i]);
            }
        }
        if (!layout.is_partial() && std::find(to, to + count, kNothing) != to + count)
          throw Error("max_empty", fmt::format("an element of chip {} is of nothing that exists",
                                               value.torus().name(static_cast<int>(chip))));
      });
  return {value.torus(), layout, shape, std::move(most)};
}

}  // namespace shardproof
