// Faults of caches that the dump lacks, found at what attention makes of them.
#include <fmt/format.h>

#include <functional>
#include <optional>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

/// A head of a slot of a row.
struct Cell {
  std::size_t row, slot, head;
};
/// Returns what a cell holds; nullopt: zeros.
using Held = std::function<std::optional<Cell>(Cell cell, std::size_t old)>;

class MissingCaches : Trial {
 public:
  MissingCaches(const Question& q, Search& search) : Trial(q, search) {
    const char letter = q.step().lines().back().letters.at(2);
    if (q.rank() == 4 && q.step().graph().heads(letter)) heads_ = at(q.shape()[2]);
  }

  void run() {
    const std::size_t B = at(q_.shape()[0]), M = at(q_.shape()[1]);
    with("old slots hold zeros", 0,
         [](Cell c, std::size_t old) { return c.slot < old ? std::nullopt : std::optional(c); });
    with("new slots hold zeros: they are not written", 1,
         [](Cell c, std::size_t old) { return c.slot < old ? std::optional(c) : std::nullopt; });
    for (std::size_t by = 1; by < B; ++by)
      of_old(fmt::format("old slots of row b hold what belongs in row (b+{}) mod {}", B - by, B),
             by, [=](Cell c, std::size_t) {
               return Cell{(c.row + B - by) % B, c.slot, c.head};
             });
    for (std::size_t by = 1; by < M; ++by)
      of_old(fmt::format("old slots are shifted by {}", by), by, [=](Cell c, std::size_t old) {
        return Cell{c.row, (c.slot + old - by % old) % old, c.head};
      });
    const std::size_t K = heads_;
    for (std::size_t k = 0; k < K && K > 1; ++k)
      of_old(
          fmt::format("all heads of old slots hold what belongs in head {}", k), k,
          [=](Cell c, std::size_t) {
            return Cell{c.row, c.slot, k};
          },
          "head order");
    for (std::size_t by = 1; by < K; ++by)
      of_old(
          fmt::format("the heads of old slots are rotated by {}", by), K + by,
          [=](Cell c, std::size_t) {
            return Cell{c.row, c.slot, (c.head + by) % K};
          },
          "head order");
  }

 private:
  template <class Of>
  void of_old(std::string detail, std::size_t parameters, Of&& of,
              std::string_view fault = "stale slot") {
    with(
        std::move(detail), 10 + parameters,
        [of](Cell c, std::size_t old) { return std::optional(c.slot < old ? of(c, old) : c); },
        fault);
  }

  void with(std::string detail, std::size_t parameters, const Held& held,
            std::string_view fault = "stale slot") {
    const bounds::IntervalTensor& right = q_.expected();
    const PassPlan& pass = q_.replay().pass(q_.place().pass);
    bounds::IntervalTensor other = right;
    const std::size_t M = at(q_.shape()[1]), inner = inner_of(q_.shape(), 1) / heads_;
    for (std::size_t i = 0; i < right.size(); ++i) {
      const Cell own{i / inner / heads_ / M, i / inner / heads_ % M, i / inner % heads_};
      const std::int64_t start = q_.replay().position(pass, own.row, 0) - pass.prefix.length;
      const std::optional<Cell> from = held(own, at(start));
      other.set(i, from
                       ? right.number(((from->row * M + from->slot) * heads_ + from->head) * inner +
                                      i % inner)
                       : bounds::Number{});
    }
    try_value({fault, std::move(detail), static_cast<int>(parameters)}, std::move(other));
  }

  std::size_t heads_ = 1;
};

}  // namespace

void try_missing_caches(const Question& q, Search& search, const Row&) {
  if (!q.replay().dumped(q.id()) && q.step().lines().back().letters.starts_with("BM"))
    MissingCaches(q, search).run();
}

}  // namespace shardproof::diagnosis
