#include "engine/collectives/detail/partial_sums.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "engine/collectives/detail/joint_sums.h"
#include "engine/collectives/detail/runs.h"
#include "engine/numeric/detail/rounding_test.h"
#include "engine/numeric/detail/tile_sum.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

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

/// Shards of partial sums that are in memory.
class TilesInMemory : public PartialTiles {
 public:
  explicit TilesInMemory(const Partial& partial) : partial_(partial) {}

  std::int64_t row() const override { return 1; }
  void add_to(TileSum& sum, int chip, std::int64_t begin) const override {
    const auto c = static_cast<std::size_t>(chip);
    sum.add(0, sum.size(), partial_.values[c].data() + begin,
            partial_.bounds[c].empty() ? nullptr : partial_.bounds[c].data() + begin);
  }
  float exact_sum(const std::vector<Element>& elements) const override {
    return partial_.sum_of_origins(elements);
  }

 private:
  const Partial& partial_;
};

constexpr std::int64_t kBlock = 128;

/// Up to kBlock elements of a block: a part of one run, or several short runs.
struct RunBlock {
  const Run* first;
  std::int64_t runs, length;  ///< number of runs, and elements in each
  std::int64_t skipped;       ///< elements of the run that precede these

  std::int64_t elements() const { return runs * length; }
  /// The offset of element i from the block's first element in the source shard.
  std::int64_t from(std::int64_t i) const { return first[i / length].from + skipped + i % length; }

  /// The elements, contiguous; copied only if they are not.
  template <class T>
  const T* beside(const T* data, T* copy) const {
    if (runs == 1) return data + first->from + skipped;
    switch (length) {  // known to the compiler, for the short runs of many chips
      case 1:
        copied<1>(data, copy);
        break;
      case 2:
        copied<2>(data, copy);
        break;
      case 4:
        copied<4>(data, copy);
        break;
      case 8:
        copied<8>(data, copy);
        break;
      case 16:
        copied<16>(data, copy);
        break;
      default:
        for (std::int64_t r = 0; r < runs; ++r)
          std::copy_n(data + first[r].from, length, copy + r * length);
    }
    return copy;
  }
  void put(const float* sums, float* to) const {
    for (std::int64_t r = 0; r < runs; ++r)
      std::copy_n(sums + r * length, length, to + first[r].to + skipped);
  }

 private:
  template <std::int64_t N, class T>
  void copied(const T* data, T* copy) const {
    for (std::int64_t r = 0; r < runs; ++r)
      std::memcpy(copy + r * N, data + first[r].from, static_cast<std::size_t>(N) * sizeof(T));
  }
};

template <class Visit>
void for_each_block(const Runs& runs, Visit&& visit) {
  const auto count = static_cast<std::int64_t>(runs.all.size());
  if (runs.length == 0) return;
  const std::int64_t at_once = std::max<std::int64_t>(1, kBlock / runs.length);
  for (std::int64_t r = 0; r < count; r += at_once) {
    const Run* const first = runs.all.data() + r;
    if (runs.length <= kBlock) {
      visit(RunBlock{first, std::min(at_once, count - r), runs.length, 0});
      continue;
    }
    for (std::int64_t done = 0; done < runs.length; done += kBlock)
      visit(RunBlock{first, 1, std::min(kBlock, runs.length - done), done});
  }
}

}  // namespace

ChipArrays<float> rounded_sums(const Partial& from, const Moves& moves, const ChipGroups& groups,
                               Threads& threads) {
  if (from.lazy != nullptr) return joint_sums(*from.lazy, moves, groups, threads);
  // Sums shared by several chips are computed once.
  if (threads.shares() && sums_are_joint(moves, groups))
    return joint_sums(TilesInMemory(from), moves, groups, threads);
  const Runs runs(moves);
  const auto count = static_cast<std::size_t>(element_count(moves.to_local));
  return made_by<float>(
      groups, from.values.size(), count, threads, [&](std::int64_t chip, float* to) {
        const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
        TileSum sum;
        for_each_block(runs, [&](const RunBlock& block) {
          sum.start(block.elements());
          double values[kBlock];
          float bounds[kBlock], sums[kBlock];
          for (const Piece& piece : pieces) {
            const auto c = static_cast<std::size_t>(piece.from_chip);
            const double* const v = block.beside(from.values[c].data() + piece.from, values);
            const float* const b = from.bounds[c].empty()
                                       ? nullptr
                                       : block.beside(from.bounds[c].data() + piece.from, bounds);
            sum.add(0, block.elements(), v, b);
          }
          const double* const bound = sum.finish();
          decide_each(sum.values(), bound, block.elements(), sums, [&](std::int64_t i) {
            std::vector<Element> elements;
            for (const Piece& piece : pieces)
              elements.push_back({piece.from_chip, piece.from + block.from(i)});
            return from.sum_of_origins(elements);
          });
          block.put(sums, to);
        });
      });
}

Partial partial_sums(const Partial& from, const Moves& moves, const ChipGroups& groups,
                     Threads& threads) {
  if (from.lazy != nullptr) throw std::logic_error("values were left lazy that are not completed");
  const auto count = static_cast<std::size_t>(element_count(moves.to_local));
  for (const std::vector<Piece>& pieces : moves.pieces)
    if (pieces.size() != moves.pieces.front().size())
      throw Error("transfer_c2",
                  "sums that stay partial must have equally many pieces on every chip");
  Partial to;
  to.values.resize(from.values.size());
  to.bounds.resize(from.values.size());
  to.origins.resize(from.values.size());
  to.terms = from.terms * static_cast<int>(moves.pieces.front().size());
  to.source = from.source;
  const Runs runs(moves);
  groups.for_each(threads, [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    Buffer<double>& values = to.values[c];
    Buffer<float>& bounds = to.bounds[c];
    Buffer<Origin>& origins = to.origins[c];
    values.resize(count);
    bounds.resize(count);
    origins.reserve(count * static_cast<std::size_t>(to.terms));
    for_each_sum(moves, runs, chip, [&](std::int64_t i, const std::vector<Element>& elements) {
      BoundedSum sum;
      for (const Element& element : elements) {
        sum.add(from.values[static_cast<std::size_t>(element.chip)]
                           [static_cast<std::size_t>(element.index)],
                from.bound(element.chip, element.index));
        from.append_origins(element, origins);
      }
      values[static_cast<std::size_t>(i)] = sum.value();
      bounds[static_cast<std::size_t>(i)] = stored_bound(sum.bound());
    });
  });
  groups.share(to.values);
  groups.share(to.bounds);
  groups.share(to.origins);
  return to;
}

}  // namespace shardproof
