// Faults of a table whose rows are cut over chips: the rows that each chip adds for a token.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

using Rows = std::vector<std::size_t>;

/// What chips do that look up tokens in blocks of a table: the rows that are added for one token.
struct Lookup {
  std::string_view words;
  Rows (*rows)(std::size_t id, std::size_t chips, std::size_t of_chip);
};

constexpr Lookup kLookups[] = {
    {"each chip adds a row for tokens of other chips, too: its first or its last one",
     [](std::size_t id, std::size_t chips, std::size_t of_chip) {
       Rows rows;
       for (std::size_t c = 0; c < chips; ++c)
         rows.push_back(std::clamp(id, c * of_chip, (c + 1) * of_chip - 1));
       return rows;
     }},
    {"each chip adds a row for tokens of other chips, too: the one at the same place",
     [](std::size_t id, std::size_t chips, std::size_t of_chip) {
       Rows rows;
       for (std::size_t c = 0; c < chips; ++c) rows.push_back(c * of_chip + id % of_chip);
       return rows;
     }},
    {"each chip adds its first row for tokens of other chips",
     [](std::size_t id, std::size_t chips, std::size_t of_chip) {
       Rows rows{id};
       for (std::size_t c = 0; c < chips; ++c)
         if (c != id / of_chip) rows.push_back(c * of_chip);
       return rows;
     }},
    {"a chip's first row is not subtracted: tokens behind its number of rows get its last row",
     [](std::size_t id, std::size_t, std::size_t of_chip) {
       return Rows{id / of_chip * of_chip + std::min(id, of_chip - 1)};
     }},
    {"the border counts twice: a chip's first token also adds the last row of the chip before",
     [](std::size_t id, std::size_t, std::size_t of_chip) {
       return id % of_chip == 0 && id > 0 ? Rows{id, id - 1} : Rows{id};
     }},
    {"the border counts twice: a chip's last token also adds the first row of the chip behind",
     [](std::size_t id, std::size_t chips, std::size_t of_chip) {
       return id % of_chip == of_chip - 1 && id + 1 < chips * of_chip ? Rows{id, id + 1} : Rows{id};
     }},
};

class Lookups : Trial {
 public:
  Lookups(const Question& q, Search& search) : Trial(q, search), sum_(contraction_of(q)) {}

  void run() {
    if (sum_->terms.size() != 1 || sum_->terms[0].operand != "ids") return;
    for (const Axes& set : q_.sets()) {
      const auto chips = at(q_.torus().size(set));
      if (sum_->terms[0].width % chips != 0) continue;
      for (const Lookup& lookup : kLookups) try_lookup(lookup, set, chips);
    }
  }

  void run_fitted() {
    if (q_.right() || sum_->terms.size() != 1 || sum_->terms[0].operand != "ids") return;
    for (const Axes& set : q_.sets())
      if (const auto chips = at(q_.torus().size(set)); sum_->terms[0].width % chips == 0)
        try_blocks_of_rows(set, chips);
  }

 private:
  std::size_t id_at(std::size_t global) const {
    const std::int32_t id = q_.replay().ids().at(q_.place().pass).data[global / sum_->columns];
    return id < 0 ? sum_->terms[0].width : at(id);
  }

  /// The sum of some rows of the table, with the scale of the right one.
  bounds::FunctionValue sum_of(std::size_t global, const Rows& rows) const {
    const Contraction::Term& term = sum_->terms[0];
    const double* const column = &(*term.w)[sum_->column_of(term, global) * term.width];
    bounds::FunctionValue sum{};
    for (const std::size_t row : rows) sum = plus(sum, {column[row], 0.0, 0.0}, q_.declared());
    if (sum_->scales.empty()) return sum;
    sum = times(sum, sum_->scales[global % sum_->columns]);
    sum.radius += 2 * q_.declared().operations.unit * std::abs(sum.center);
    return sum;
  }

  void try_lookup(const Lookup& lookup, const Axes& set, std::size_t chips) {
    const std::size_t of_chip = sum_->terms[0].width / chips;
    std::set<std::size_t> wrong;
    for (std::size_t g = 0; g < q_.expected().size(); g += sum_->columns)
      if (const std::size_t id = id_at(g); id < sum_->terms[0].width)
        if (lookup.rows(id, chips, of_chip) != Rows{id}) wrong.insert(id);
    if (wrong.empty()) return;
    search_.consider(
        {.fault = "rows of other shards",
         .detail = fmt::format("{}; {} rows on each of {} chips, tokens {}", lookup.words, of_chip,
                               chips, first_of(wrong)),
         .parameters = static_cast<int>(&lookup - kLookups),
         .axes = set.to_string(),
         .at = q_.logical([this_ = *this, rows = lookup.rows, chips, of_chip](std::size_t g) {
           const std::size_t id = this_.id_at(g);
           return id < chips * of_chip ? this_.sum_of(g, rows(id, chips, of_chip))
                                       : bounds::FunctionValue{0.0, bounds::kInfinity, 0.0};
         })});
  }

  static std::string first_of(const std::set<std::size_t>& ids) {
    constexpr std::ptrdiff_t kShown = 6;
    const auto shown = std::min<std::ptrdiff_t>(std::ssize(ids), kShown);
    return fmt::format("{}{}", fmt::join(ids.begin(), std::next(ids.begin(), shown), ", "),
                       std::ssize(ids) > kShown ? ", ..." : "");
  }

  /// Blocks of rows that stand in each other's places: of tokens of one block all rows are those of
  /// another.
  void try_blocks_of_rows(const Axes& set, std::size_t chips) {
    const std::size_t of_chip = sum_->terms[0].width / chips;
    std::set<std::size_t> all;
    for (std::size_t c = 0; c < chips; ++c) all.insert(c);
    std::vector<std::set<std::size_t>> possible(chips, all);
    int wrong = 0;
    while (q_.right(wrong)) ++wrong;
    std::vector<bool> seen(chips, false);
    for (const std::size_t local : q_.judged(wrong)) {
      const std::size_t g = q_.global(wrong, local), id = id_at(g);
      if (id >= chips * of_chip) continue;
      seen[id / of_chip] = true;
      std::erase_if(possible[id / of_chip], [&](std::size_t other) {
        return !q_.fits(wrong, local, sum_of(g, {other * of_chip + id % of_chip}));
      });
    }
    std::vector<int> held;
    for (std::size_t c = 0; c < chips; ++c) {
      if (possible[c].empty()) return;
      held.push_back(
          static_cast<int>(!seen[c] || possible[c].contains(c) ? c : *possible[c].begin()));
    }
    const bool each = std::set<int>(held.begin(), held.end()).size() == chips;
    search_.consider({.fault = each ? "chunks in another order" : "another chip's block",
                      .detail = fmt::format("blocks of {} rows of {}: {}", of_chip,
                                            sum_->terms[0].matrix, fmt::join(held, ",")),
                      .parameters = 500,
                      .axes = set.to_string(),
                      .at = q_.logical([this_ = *this, held, of_chip](std::size_t g) {
                        const std::size_t id = this_.id_at(g);
                        if (id >= held.size() * of_chip)
                          return bounds::FunctionValue{0.0, bounds::kInfinity, 0.0};
                        return this_.sum_of(g, {at(held[id / of_chip]) * of_chip + id % of_chip});
                      }),
                      .fitted = true});
  }

  std::shared_ptr<const Contraction> sum_;
};

}  // namespace

void try_lookups(const Question& q, Search& search, const Row&) { Lookups(q, search).run(); }
void try_fitted_lookups(const Question& q, Search& search, const Row&) {
  Lookups(q, search).run_fitted();
}

}  // namespace shardproof::diagnosis
