#include "engine/collectives.h"

#include "engine/box.h"
#include "engine/numeric/rounding_test.h"
#include "engine/scheduled_sum.h"

namespace shardproof {
namespace {

/// Every chip's new array from the pieces it receives, with `width` numbers per element.
template <class T>
ChipArrays<T> move_arrays(const ChipArrays<T>& from, const Moves& moves, std::int64_t width,
                          Threads& threads) {
  ChipArrays<T> to(from.size());
  const auto count = static_cast<std::size_t>(element_count(moves.to_local) * width);
  threads.for_each(static_cast<std::int64_t>(from.size()), [&](std::int64_t chip) {
    auto& buffer = to[static_cast<std::size_t>(chip)];
    buffer.resize(count);
    for (const Piece& piece : moves.pieces[static_cast<std::size_t>(chip)]) {
      const auto& source = from[static_cast<std::size_t>(piece.from_chip)];
      for_each_run(piece.extent, moves.from_local, piece.from_offset, moves.to_local,
                   piece.to_offset, [&](std::int64_t a, std::int64_t b, std::int64_t n) {
                     std::copy_n(source.begin() + a * width, n * width, buffer.begin() + b * width);
                   });
    }
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

ChipArrays<double> explicit_bounds(const Partial& partial) {
  ChipArrays<double> bounds = partial.bounds;
  if (!any_filled(bounds)) return bounds;
  for (std::size_t c = 0; c < bounds.size(); ++c)
    if (bounds[c].empty()) bounds[c].assign(partial.values[c].size(), 0.0);
  return bounds;
}

Partial move_partial(const Partial& from, const Moves& moves, Threads& threads) {
  Partial to;
  to.values = move_arrays(from.values, moves, 1, threads);
  const ChipArrays<double> bounds = explicit_bounds(from);
  to.bounds = any_filled(bounds) ? move_arrays(bounds, moves, 1, threads)
                                 : ChipArrays<double>(from.values.size());
  to.origins = move_arrays(explicit_origins(from), moves, from.terms, threads);
  to.terms = from.terms;
  to.source = from.source;
  return to;
}

/// Calls visit(to_index, elements) for each element of a chip's new shard.
template <class Visit>
void for_each_sum(const Moves& moves, std::int64_t chip, Visit&& visit) {
  const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
  std::vector<Element> elements(pieces.size());
  for_each_run(moves.to_local, moves.from_local, pieces.front().from_offset, moves.to_local,
               pieces.front().to_offset, [&](std::int64_t a, std::int64_t b, std::int64_t n) {
                 for (std::int64_t i = 0; i < n; ++i) {
                   for (std::size_t p = 0; p < pieces.size(); ++p)
                     elements[p] = {pieces[p].from_chip, a + i};
                   visit(b + i, elements);
                 }
               });
}

ChipArrays<float> rounded_sums(const Partial& from, const Moves& moves, Threads& threads) {
  ChipArrays<float> to(from.values.size());
  threads.for_each(static_cast<std::int64_t>(to.size()), [&](std::int64_t chip) {
    auto& buffer = to[static_cast<std::size_t>(chip)];
    buffer.resize(static_cast<std::size_t>(element_count(moves.to_local)));
    for_each_sum(moves, chip, [&](std::int64_t i, const std::vector<Element>& elements) {
      buffer[static_cast<std::size_t>(i)] = from.rounded_sum(elements);
    });
  });
  return to;
}

Partial partial_sums(const Partial& from, const Moves& moves, Threads& threads) {
  const auto count = static_cast<std::size_t>(element_count(moves.to_local));
  Partial to;
  to.values.resize(from.values.size());
  to.bounds.resize(from.values.size());
  to.origins.resize(from.values.size());
  to.terms = from.terms * static_cast<int>(moves.pieces.front().size());
  to.source = from.source;
  threads.for_each(static_cast<std::int64_t>(from.values.size()), [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    to.values[c].resize(count);
    to.bounds[c].resize(count);
    to.origins[c].reserve(count * static_cast<std::size_t>(to.terms));
    for_each_sum(moves, chip, [&](std::int64_t i, const std::vector<Element>& elements) {
      BoundedSum sum;
      for (const Element& element : elements) {
        sum.add(from.values[static_cast<std::size_t>(element.chip)]
                           [static_cast<std::size_t>(element.index)],
                from.bound(element.chip, element.index));
        from.append_origins(element, to.origins[c]);
      }
      to.values[c][static_cast<std::size_t>(i)] = sum.value();
      to.bounds[c][static_cast<std::size_t>(i)] = sum.bound();
    });
  });
  return to;
}

/// The f32 regime. In an all_reduce, whose shards keep their size, the ring's chunks are the
/// shard's own elements in K runs; in a reduce_scatter a chip receives the chunk that is its block.
ChipArrays<float> f32_sums(const ChipArrays<float>& from, const Moves& moves, Schedule schedule,
                           Threads& threads) {
  ChipArrays<float> to(from.size());
  const bool whole = moves.from_local == moves.to_local;
  const std::int64_t count = element_count(moves.to_local);
  threads.for_each(static_cast<std::int64_t>(to.size()), [&](std::int64_t chip) {
    const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    auto& buffer = to[static_cast<std::size_t>(chip)];
    buffer.resize(static_cast<std::size_t>(count));
    const auto K = static_cast<std::int64_t>(pieces.size());
    std::int64_t mine = 0;
    for (std::int64_t j = 0; j < K; ++j)
      if (pieces[static_cast<std::size_t>(j)].from_chip == chip) mine = j;
    std::vector<const float*> terms(pieces.size());
    for_each_run(moves.to_local, moves.from_local, pieces.front().from_offset, moves.to_local,
                 pieces.front().to_offset, [&](std::int64_t a, std::int64_t b, std::int64_t n) {
                   for (std::int64_t done = 0; done < n;) {
                     const std::int64_t chunk = whole ? chunk_of(b + done, count, K) : mine;
                     const std::int64_t end = whole ? chunk_begin(chunk + 1, count, K) - b : n;
                     const std::int64_t part = std::min(end, n) - done;
                     for (std::size_t j = 0; j < pieces.size(); ++j)
                       terms[j] =
                           from[static_cast<std::size_t>(pieces[j].from_chip)].data() + a + done;
                     scheduled_sum(schedule, terms, chunk, part, buffer.data() + b + done);
                     done += part;
                   }
                 });
  });
  return to;
}

}  // namespace

Sharded move(const Sharded& value, const Moves& moves, const Layout& layout, const Shape& shape,
             Threads& threads) {
  Sharded result{value.torus, layout, shape, {}};
  if (const auto* f32 = std::get_if<ChipArrays<float>>(&value.data))
    result.data = move_arrays(*f32, moves, 1, threads);
  else if (const auto* i32 = std::get_if<ChipArrays<std::int32_t>>(&value.data))
    result.data = move_arrays(*i32, moves, 1, threads);
  else
    result.data = move_partial(value.partial(), moves, threads);
  return result;
}

Sharded reduce(const Sharded& value, const Moves& moves, const Layout& layout, const Shape& shape,
               Threads& threads, Schedule schedule) {
  Sharded result{value.torus, layout, shape, {}};
  if (const auto* f32 = std::get_if<ChipArrays<float>>(&value.data))
    result.data = f32_sums(*f32, moves, schedule, threads);
  else if (layout.is_partial())
    result.data = partial_sums(value.partial(), moves, threads);
  else
    result.data = rounded_sums(value.partial(), moves, threads);
  return result;
}

Sharded completed(const Sharded& value, Threads& threads) {
  if (!value.holds_partial()) return value;
  const Partial& partial = value.partial();
  ChipArrays<float> to(partial.values.size());
  threads.for_each(static_cast<std::int64_t>(to.size()), [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    to[c].resize(partial.values[c].size());
    for (std::size_t i = 0; i < to[c].size(); ++i)
      to[c][i] = partial.rounded_sum({{static_cast<int>(chip), static_cast<std::int64_t>(i)}});
  });
  return {value.torus, value.layout, value.shape, std::move(to)};
}

}  // namespace shardproof
