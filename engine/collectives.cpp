#include "engine/collectives.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/box.h"
#include "engine/numeric/rounding_test.h"
#include "engine/scheduled_sum.h"

namespace shardproof {
namespace {

/// A contiguous run of a block's elements, from the block's first element there and here.
struct Run {
  std::int64_t from, to;
};

/// The runs that every piece of the moves has; all of one length.
struct Runs {
  std::vector<Run> all;
  std::int64_t length = 0;

  explicit Runs(const Moves& moves) {
    const Shape zero(moves.block.size(), 0);
    for_each_run(moves.block, moves.from_local, zero, moves.to_local, zero,
                 [&](std::int64_t from, std::int64_t to, std::int64_t n) {
                   all.push_back({from, to});
                   length = n;
                 });
  }
};

/// Asks the caches for a run a few runs before its turn: runs lie apart, which no hardware
/// foresees.
template <class T>
void prefetch_ahead(const Runs& runs, std::size_t now, const T* from) {
  constexpr std::size_t kAhead = 4;
  constexpr std::int64_t kLine = 64 / sizeof(T);
  if (now + kAhead >= runs.all.size()) return;
  const T* const at = from + runs.all[now + kAhead].from;
  for (std::int64_t i = 0; i < runs.length; i += kLine) __builtin_prefetch(at + i);
}

/// Where a piece's block begins, there and here.
template <class T>
struct Way {
  const T* from;
  T* to;
};

/// Copies of a length known to the compiler, for the short runs of many chips: run by run, and of
/// each the pieces in turn, whose targets lie side by side in a gather.
template <std::size_t N, class T>
void copy_runs(const std::vector<Run>& runs, const std::vector<Way<T>>& ways) {
  for (const Run& run : runs)
    for (const Way<T>& way : ways) std::memcpy(way.to + run.to, way.from + run.from, N * sizeof(T));
}

template <class T>
void copy_runs(const Runs& runs, std::int64_t width, const std::vector<Way<T>>& ways) {
  if (width == 1) switch (runs.length) {
      case 1:
        return copy_runs<1>(runs.all, ways);
      case 2:
        return copy_runs<2>(runs.all, ways);
      case 4:
        return copy_runs<4>(runs.all, ways);
      case 8:
        return copy_runs<8>(runs.all, ways);
      case 16:
        return copy_runs<16>(runs.all, ways);
      case 32:
        return copy_runs<32>(runs.all, ways);
      default:
        break;
    }
  for (const Way<T>& way : ways)
    for (const Run& run : runs.all)
      std::copy_n(way.from + run.from * width, runs.length * width, way.to + run.to * width);
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
    std::vector<Way<T>> ways;
    for (const Piece& piece : moves.pieces[static_cast<std::size_t>(chip)])
      ways.push_back({from[static_cast<std::size_t>(piece.from_chip)].data() + piece.from * width,
                      buffer.data() + piece.to * width});
    copy_runs(runs, width, ways);
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

/// Calls visit(to_index, elements) for each element of a chip's new shard.
template <class Visit>
void for_each_sum(const Moves& moves, const Runs& runs, std::int64_t chip, Visit&& visit) {
  const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
  std::vector<Element> elements(pieces.size());
  for (const Run& run : runs.all)
    for (std::int64_t i = 0; i < runs.length; ++i) {
      for (std::size_t p = 0; p < pieces.size(); ++p)
        elements[p] = {pieces[p].from_chip, pieces[p].from + run.from + i};
      visit(run.to + i, elements);
    }
}

/// Sums of up to kBlock elements that lie side by side, with their bounds; as BoundedSum, but that
/// beside summands with bounds every addition counts as one that rounds (docs/numerics.md section
/// 3).
class BlockSum {
 public:
  static constexpr std::int64_t kBlock = 128;

  void start(const double* values, const float* bounds, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) sum_[i] = 0.0 + values[i];
    for (std::int64_t i = 0; i < n; ++i)
      bound_[i] = bounds == nullptr ? 0.0 : static_cast<double>(bounds[i]);
    count_ = 1.0;
  }
  void add(const double* values, const float* bounds, std::int64_t n) {
    if (bounds != nullptr) {
      for (std::int64_t i = 0; i < n; ++i) {
        sum_[i] += values[i];
        bound_[i] += static_cast<double>(bounds[i]);
        bound_[i] += std::abs(sum_[i]) * kUnitRoundoff64;
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        const double old = sum_[i];
        const double next = old + values[i];
        const double virtual_value = next - old;
        const double lost = (old - (next - virtual_value)) + (values[i] - virtual_value);
        bound_[i] += lost != 0.0 ? std::abs(next) * kUnitRoundoff64 : 0.0;
        sum_[i] = next;
      }
    }
    count_ += 1.0;
  }
  const double* values() const { return sum_; }
  const double* finish(std::int64_t n) {
    const double factor = 1.0 + (count_ + 2.0) * 0x1p-50;
    for (std::int64_t i = 0; i < n; ++i) bound_[i] *= factor;
    return bound_;
  }

 private:
  double sum_[kBlock], bound_[kBlock];
  double count_ = 0.0;
};

ChipArrays<float> rounded_sums(const Partial& from, const Moves& moves, Threads& threads) {
  ChipArrays<float> to(from.values.size());
  const Runs runs(moves);
  threads.for_each(static_cast<std::int64_t>(to.size()), [&](std::int64_t chip) {
    const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    auto& buffer = to[static_cast<std::size_t>(chip)];
    buffer.resize(static_cast<std::size_t>(element_count(moves.to_local)));
    BlockSum sum;
    for (std::size_t r = 0; r < runs.all.size(); ++r) {
      const Run& run = runs.all[r];
      for (const Piece& piece : pieces) {
        const auto c = static_cast<std::size_t>(piece.from_chip);
        prefetch_ahead(runs, r, from.values[c].data() + piece.from);
        if (!from.bounds[c].empty()) prefetch_ahead(runs, r, from.bounds[c].data() + piece.from);
      }
      for (std::int64_t done = 0; done < runs.length; done += BlockSum::kBlock) {
        const std::int64_t n = std::min(BlockSum::kBlock, runs.length - done);
        for (std::size_t p = 0; p < pieces.size(); ++p) {
          const auto c = static_cast<std::size_t>(pieces[p].from_chip);
          const std::int64_t at = pieces[p].from + run.from + done;
          const double* values = from.values[c].data() + at;
          const float* bounds = from.bounds[c].empty() ? nullptr : from.bounds[c].data() + at;
          if (p == 0)
            sum.start(values, bounds, n);
          else
            sum.add(values, bounds, n);
        }
        const double* bounds = sum.finish(n);
        decide_each(sum.values(), bounds, n, buffer.data() + run.to + done, [&](std::int64_t i) {
          std::vector<Element> elements;
          for (const Piece& piece : pieces)
            elements.push_back({piece.from_chip, piece.from + run.from + done + i});
          return from.sum_of_origins(elements);
        });
      }
    }
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
  const Runs runs(moves);
  threads.for_each(static_cast<std::int64_t>(from.values.size()), [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    to.values[c].resize(count);
    to.bounds[c].resize(count);
    to.origins[c].reserve(count * static_cast<std::size_t>(to.terms));
    for_each_sum(moves, runs, chip, [&](std::int64_t i, const std::vector<Element>& elements) {
      BoundedSum sum;
      for (const Element& element : elements) {
        sum.add(from.values[static_cast<std::size_t>(element.chip)]
                           [static_cast<std::size_t>(element.index)],
                from.bound(element.chip, element.index));
        from.append_origins(element, to.origins[c]);
      }
      to.values[c][static_cast<std::size_t>(i)] = sum.value();
      to.bounds[c][static_cast<std::size_t>(i)] = stored_bound(sum.bound());
    });
  });
  return to;
}

/// to = from, or to += from, on all runs of N elements.
template <std::int64_t N>
void put_runs(const Runs& runs, const float* from, float* to, bool add) {
  for (std::size_t r = 0; r < runs.all.size(); ++r) {
    const Run& run = runs.all[r];
    prefetch_ahead(runs, r, from);
    const float* const in = from + run.from;
    float* const out = to + run.to;
    float sum[static_cast<std::size_t>(N)];
    for (std::int64_t i = 0; i < N; ++i) sum[i] = add ? out[i] + in[i] : in[i];
    for (std::int64_t i = 0; i < N; ++i) out[i] = sum[i];
  }
}

void put_runs(const Runs& runs, const float* from, float* to, bool add) {
  switch (runs.length) {
    case 4:
      return put_runs<4>(runs, from, to, add);
    case 8:
      return put_runs<8>(runs, from, to, add);
    case 16:
      return put_runs<16>(runs, from, to, add);
    case 32:
      return put_runs<32>(runs, from, to, add);
    default:
      break;
  }
  for (const Run& run : runs.all)
    for (std::int64_t i = 0; i < runs.length; ++i)
      to[run.to + i] = add ? to[run.to + i] + from[run.from + i] : from[run.from + i];
}

/// The f32 regime. In an all_reduce, whose shards keep their size, the ring's chunks are the
/// shard's own elements in K runs; in a reduce_scatter a chip receives the chunk that is its block.
ChipArrays<float> f32_sums(const ChipArrays<float>& from, const Moves& moves, Schedule schedule,
                           Threads& threads) {
  ChipArrays<float> to(from.size());
  const bool whole = moves.from_local == moves.to_local;
  const std::int64_t count = element_count(moves.to_local);
  const Runs runs(moves);
  threads.for_each(static_cast<std::int64_t>(to.size()), [&](std::int64_t chip) {
    const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    auto& buffer = to[static_cast<std::size_t>(chip)];
    buffer.resize(static_cast<std::size_t>(count));
    const auto K = static_cast<std::int64_t>(pieces.size());
    std::int64_t mine = 0;
    for (std::int64_t j = 0; j < K; ++j)
      if (pieces[static_cast<std::size_t>(j)].from_chip == chip) mine = j;
    if (schedule == Schedule::group || (schedule == Schedule::ring && !whole)) {
      // One order for the whole shard: term after term is added to all of it.
      const std::int64_t first = schedule == Schedule::ring ? (mine + 1) % K : 0;
      for (std::int64_t j = 0; j < K; ++j) {
        const Piece& piece = pieces[static_cast<std::size_t>((first + j) % K)];
        put_runs(runs, from[static_cast<std::size_t>(piece.from_chip)].data() + piece.from,
                 buffer.data(), j > 0);
      }
      return;
    }
    std::vector<const float*> terms(pieces.size());
    const std::int64_t n = runs.length;
    for (const Run& run : runs.all)
      for (std::int64_t done = 0; done < n;) {
        const std::int64_t chunk = whole ? chunk_of(run.to + done, count, K) : mine;
        const std::int64_t end = whole ? chunk_begin(chunk + 1, count, K) - run.to : n;
        const std::int64_t part = std::min(end, n) - done;
        for (std::size_t j = 0; j < pieces.size(); ++j)
          terms[j] = from[static_cast<std::size_t>(pieces[j].from_chip)].data() + pieces[j].from +
                     run.from + done;
        scheduled_sum(schedule, terms, chunk, part, buffer.data() + run.to + done);
        done += part;
      }
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
