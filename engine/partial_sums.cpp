#include "engine/partial_sums.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/numeric/rounding_test.h"
#include "engine/runs.h"
#include "weights/error.h"

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

}  // namespace

ChipArrays<float> rounded_sums(const Partial& from, const Moves& moves, const ChipGroups& groups,
                               Threads& threads) {
  const Runs runs(moves);
  const auto count = static_cast<std::size_t>(element_count(moves.to_local));
  return made_by<float>(
      groups, from.values.size(), count, threads, [&](std::int64_t chip, float* to) {
        const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
        BlockSum sum;
        for (std::size_t r = 0; r < runs.all.size(); ++r) {
          const Run& run = runs.all[r];
          for (const Piece& piece : pieces) {
            const auto c = static_cast<std::size_t>(piece.from_chip);
            prefetch_ahead(runs, r, from.values[c].data() + piece.from);
            if (!from.bounds[c].empty())
              prefetch_ahead(runs, r, from.bounds[c].data() + piece.from);
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
            decide_each(sum.values(), bounds, n, to + run.to + done, [&](std::int64_t i) {
              std::vector<Element> elements;
              for (const Piece& piece : pieces)
                elements.push_back({piece.from_chip, piece.from + run.from + done + i});
              return from.sum_of_origins(elements);
            });
          }
        }
      });
}

Partial partial_sums(const Partial& from, const Moves& moves, const ChipGroups& groups,
                     Threads& threads) {
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
