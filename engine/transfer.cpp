#include "engine/transfer.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <variant>
#include <vector>

#include "engine/f32_sums.h"
#include "engine/field_sums.h"
#include "engine/partial_sums.h"
#include "engine/runs.h"

namespace shardproof {
namespace {

/// Where a piece's block begins, there and here.
template <class T>
struct Copy {
  const T* from;
  T* to;
};

/// Copies of a length known to the compiler, for the short runs of many chips: run by run, and of
/// each the pieces in turn, whose targets lie side by side in a gather.
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
ChipArrays<T> move_arrays(const ChipArrays<T>& from, const Moves& moves, std::int64_t width,
                          Threads& threads) {
  ChipArrays<T> to(from.size());
  const auto count = static_cast<std::size_t>(element_count(moves.to_local) * width);
  const Runs runs(moves);
  threads.for_each(static_cast<std::int64_t>(from.size()), [&](std::int64_t chip) {
    auto& buffer = to[static_cast<std::size_t>(chip)];
    buffer.resize(count);
    std::vector<Copy<T>> copies;
    for (const Piece& piece : moves.pieces[static_cast<std::size_t>(chip)])
      copies.push_back({from[static_cast<std::size_t>(piece.from_chip)].data() + piece.from * width,
                        buffer.data() + piece.to * width});
    copy_runs(runs, width, copies);
  });
  return to;
}

bool any_filled(const auto& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](const auto& a) { return !a.empty(); });
}

/// Origins and bounds written out, so that blocks of different chips can lie side by side.
ChipArrays<Origin> explicit_origins(const Partial& partial) {
  ChipArrays<Origin> origins = partial.origins;
  for (std::size_t c = 0; c < origins.size(); ++c) {
    if (!origins[c].empty()) continue;
    origins[c].reserve(partial.values[c].size());
    for (std::size_t i = 0; i < partial.values[c].size(); ++i)
      origins[c].push_back({static_cast<std::int32_t>(c), static_cast<std::uint32_t>(i)});
  }
  return origins;
}

ChipArrays<float> explicit_bounds(const Partial& partial) {
  ChipArrays<float> bounds = partial.bounds;
  if (!any_filled(bounds)) return bounds;
  for (std::size_t c = 0; c < bounds.size(); ++c)
    if (bounds[c].empty()) bounds[c].assign(partial.values[c].size(), 0.0F);
  return bounds;
}

Partial move_partial(const Partial& from, const Moves& moves, Threads& threads) {
  Partial to;
  to.values = move_arrays(from.values, moves, 1, threads);
  const ChipArrays<float> bounds = explicit_bounds(from);
  to.bounds = any_filled(bounds) ? move_arrays(bounds, moves, 1, threads)
                                 : ChipArrays<float>(from.values.size());
  to.origins = move_arrays(explicit_origins(from), moves, from.terms, threads);
  to.terms = from.terms;
  to.source = from.source;
  return to;
}

}  // namespace

Sharded transfer(const Sharded& value, const Moves& moves, const Layout& layout, const Shape& shape,
                 Threads& threads) {
  return {value.torus(), layout, shape,
          std::visit(
              [&](const auto& data) -> Sharded::Data {
                using Kind = std::decay_t<decltype(data)>;
                if constexpr (std::is_same_v<Kind, Partial>)
                  return move_partial(data, moves, threads);
                else if constexpr (std::is_same_v<Kind, FieldShards>)
                  return FieldShards{move_arrays(data.values, moves, 1, threads), data.field,
                                     data.sort, data.degree};
                else
                  return move_arrays(data, moves, 1, threads);
              },
              value.data())};
}

Sharded reduce(const Sharded& value, const Moves& moves, const Layout& layout, const Shape& shape,
               Threads& threads, const Summation& how) {
  if (value.holds_field())
    return {value.torus(), layout, shape, field_sums(value.field(), moves, threads)};
  if (!value.holds_partial())
    return {value.torus(), layout, shape, f32_sums(value.f32(), moves, how, threads)};
  if (layout.is_partial())
    return {value.torus(), layout, shape, partial_sums(value.partial(), moves, threads)};
  return {value.torus(), layout, shape, rounded_sums(value.partial(), moves, threads)};
}

}  // namespace shardproof
