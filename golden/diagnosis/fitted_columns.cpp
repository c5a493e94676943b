// Columns of the matrices beside a product's own, as the value shows them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "golden/bounds/number/fit.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/fused.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

/// Finds the column of a fused weight that each column of each chip is made of.
class FittedColumns : Trial {
 public:
  FittedColumns(const Question& q, Search& search)
      : Trial(q, search), fused_(std::make_shared<Fused>(q)) {}

  void run() {
    if (q_.right() || fused_->parts().empty() || search_.explained() || !fused_->read()) return;
    for (const Moved moved : {Moved::matrix, Moved::all, Moved::addends}) {
      moved_ = moved;
      tables_.clear();
      if ((moved == Moved::matrix || fused_->addends()) && find()) return propose();
    }
  }

 private:
  /// The numbers of one row by all columns: of products alone, or all that a column has.
  struct Table {
    std::vector<std::pair<double, Column>> sorted;
    double reach = 0.0;  ///< the largest radius
  };
  using OfChip = std::map<std::size_t, Column>;  ///< by the column of the value

  Column own(std::size_t column) const { return {fused_->own(), column}; }
  std::size_t column_of(std::size_t g) const { return g % fused_->sum(fused_->own()).columns; }
  bounds::FunctionValue number(std::size_t g, const Column& from) const {
    const Contraction& sum = fused_->sum(fused_->own());
    return sum.known(fused_->number(fused_->own(), g, from, moved_));
  }

  /// Returns whether a column is found for each one of all chips.
  bool find() {
    found_.assign(at(q_.chips()), {});
    for (int chip = 0; chip < q_.chips(); ++chip) {
      std::map<std::size_t, std::vector<std::size_t>> locals;
      for (const std::size_t local : q_.judged(chip))
        locals[column_of(q_.global(chip, local))].push_back(local);
      std::map<std::size_t, std::vector<Column>> possible;
      for (const auto& [column, of] : locals) {
        possible[column] = columns_that_fit(chip, column, of);
        if (possible[column].empty()) return false;
      }
      if (!choose(chip, locals, possible)) return false;
    }
    return true;
  }

  bool fits(int chip, const std::vector<std::size_t>& locals, const Column& from) const {
    return std::all_of(locals.begin(), locals.end(), [&](std::size_t local) {
      return q_.fits(chip, local, number(q_.global(chip, local), from));
    });
  }

  /// Returns the columns that explain one; its own alone if that does.
  std::vector<Column> columns_that_fit(int chip, std::size_t column,
                                       const std::vector<std::size_t>& locals) {
    const auto right = [&](std::size_t local) { return q_.right(chip, local); };
    if (std::all_of(locals.begin(), locals.end(), right)) return {own(column)};
    // What another chip has in this place it mostly has, too.
    for (int other = 0; other < chip; ++other)
      if (const auto known = found_[at(other)].find(column);
          known != found_[at(other)].end() && fits(chip, locals, known->second))
        return {known->second};
    std::vector<Column> all;
    const std::size_t g = q_.global(chip, locals[0]);
    const Table& table = table_of(g);
    const auto [near, reach] = target(g, q_.shard(chip)[locals[0]], table.reach);
    for (auto one =
             std::lower_bound(table.sorted.begin(), table.sorted.end(), near - reach,
                              [](const auto&entry, double least) { return entry.first < least; });
         one != table.sorted.end() && one->first <= near + reach; ++one)
      if (fits(chip, locals, one->second)) all.push_back(one->second);
    return all;
  }

  /// Returns what the table's number of an element's column is, and how far it may be off.
  std::pair<double, double> target(std::size_t g, double given, double reach) const {
    const Contraction& sum = fused_->sum(fused_->own());
    const std::size_t column = column_of(g);
    const bool matrix = moved_ == Moved::matrix;
    const double scale = matrix && !sum.scales.empty() ? sum.scales[column] : 1.0;
    double bias = 0.0;
    for (const Contraction::Bias& one : sum.biases) bias += matrix ? one.values[column] : 0.0;
    // At most three operations round, and what is given was rounded to its format.
    const bounds::DeclaredArithmetic& by = q_.declared();
    const double unit = 4 * std::max({bounds::unit_of(by.sums), bounds::unit_of(by.values),
                                      bounds::Operations(by).unit(), bounds::unit_of(q_.format())});
    const double rounding =
        unit * (std::abs(given) + std::abs(bias)) + 4 * bounds::least_of(q_.format());
    return {(given - bias) / scale, 2 * (reach + rounding / std::abs(scale))};
  }

  const Table& table_of(std::size_t g) {
    const Contraction& sum = fused_->sum(fused_->own());
    // Biases and scales alone stand beside the column's own product.
    const std::size_t row = moved_ == Moved::addends ? g : g / sum.columns;
    const auto [known, fresh] = tables_.try_emplace(row);
    Table& table = known->second;
    if (!fresh) return table;
    for (std::size_t part = 0; part < fused_->parts().size(); ++part)
      for (std::size_t column = 0; column < fused_->parts()[part].columns; ++column) {
        const bounds::FunctionValue v = moved_ == Moved::matrix
                                            ? sum.known(fused_->product(g, {part, column}))
                                            : number(g, {part, column});
        if (open(v)) continue;
        table.sorted.emplace_back(v.center, Column{part, column});
        table.reach = std::max(table.reach, v.radius);
      }
    std::sort(table.sorted.begin(), table.sorted.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return table;
  }

  /// Chooses the columns of a chip so that runs of neighbours are long; returns whether each run is
  /// more than chance.
  bool choose(int chip, const std::map<std::size_t, std::vector<std::size_t>>& locals,
              const std::map<std::size_t, std::vector<Column>>& possible) {
    OfChip& chosen = found_[at(chip)];
    const auto has = [&](std::size_t column, const Column& from) {
      const auto of = possible.find(column);
      return of != possible.end() && !(from == own(column)) &&
             std::find(of->second.begin(), of->second.end(), from) != of->second.end();
    };
    for (auto next = possible.begin(); next != possible.end();) {
      const auto& [column, all] = *next;
      if (all.front() == own(column)) {
        chosen[column] = all.front();
        ++next;
        continue;
      }
      Column best;
      std::size_t longest = 0;
      for (const Column& from : all) {
        std::size_t length = 1;
        while (has(column + length, {from.part, from.column + length})) ++length;
        if (length > longest) best = from, longest = length;
      }
      // As many columns as there are would fit by chance where each element fits by so much.
      double chance = static_cast<double>(fused_->columns());
      for (std::size_t i = 0; i < longest; ++i, ++next) {
        const Column from{best.part, best.column + i};
        chosen[next->first] = from;
        for (const std::size_t local : locals.at(next->first)) {
          const double rounding = bounds::unit_of(q_.format()) * std::abs(q_.shard(chip)[local]);
          const double reach = number(q_.global(chip, local), from).radius + rounding;
          chance *= std::min(1.0, 2 * reach / q_.scale());
        }
      }
      if (!bounds::narrow(chance, 1.0)) return false;
    }
    return true;
  }

  /// The columns of one chip, or of all of them.
  std::string words_of(const OfChip& columns) const {
    const Fused::Part& part = fused_->parts()[fused_->own()];
    std::string words;
    std::size_t left = 0;
    for (auto next = columns.begin(); next != columns.end();) {
      const auto [first, from] = *next;
      std::size_t length = 0;
      for (; next != columns.end() && next->first == first + length &&
             next->second == Column{from.part, from.column + length};
           ++next)
        ++length;
      if (from == own(first)) continue;
      const Fused::Part& of = fused_->parts()[from.part];
      const std::size_t width = part.columns / part.heads;
      const bool heads = width > 1 && width == of.columns / of.heads && first % width == 0 &&
                         length % width == 0 && from.column % width == 0;
      const std::size_t by = heads ? width : 1;
      const auto range = [&](std::size_t begin) {
        const std::size_t count = length / by;
        const std::string noun =
            fmt::format("{}{}", heads ? "head" : "column", count > 1 ? "s" : "");
        return count == 1 ? fmt::format("{} {}", noun, begin / by)
                          : fmt::format("{} {} to {}", noun, begin / by, begin / by + count - 1);
      };
      if (words.size() < 100)
        words +=
            fmt::format("{}{} of {} {} {} of {}", words.empty() ? "" : "; ", range(first),
                        part.matrix, length / by > 1 ? "are" : "is", range(from.column), of.matrix);
      else
        left += length;
    }
    return left == 0 ? words : fmt::format("{}; and {} columns more", words, left);
  }

  void propose() {
    OfChip all;
    bool alike = true, others = false;
    for (const OfChip& of : found_)
      for (const auto& [column, from] : of) {
        alike = alike && all.try_emplace(column, from).first->second == from;
        others = others || from.part != fused_->own();
      }
    // Columns of the own matrix in another order are another kind.
    if (!others) return;
    std::string words;
    for (int chip = 0; chip < q_.chips() && !alike && words.size() < 200; ++chip)
      if (!q_.right(chip))
        words += fmt::format("{}on chip {} {}", words.empty() ? "" : "; ", q_.torus().name(chip),
                             words_of(found_[at(chip)]));
    if (alike) words = words_of(all);
    if (moved_ != Moved::matrix)
      words =
          (moved_ == Moved::all ? "with biases and scales, " : "biases and scales alone, ") + words;
    search_.consider({.fault = "columns of a fused weight",
                      .detail = std::move(words),
                      .parameters = 500,
                      .at = [*this](int chip, std::size_t local) -> bounds::FunctionValue {
                        const std::size_t g = q_.global(chip, local);
                        const OfChip& of = found_[at(chip)];
                        const auto from = of.find(column_of(g));
                        if (from == of.end()) return {0.0, bounds::kInfinity, 0.0};
                        return number(g, from->second);
                      },
                      .fitted = true});
  }

  std::shared_ptr<Fused> fused_;
  Moved moved_ = Moved::matrix;
  std::map<std::size_t, Table> tables_;  // by row
  std::vector<OfChip> found_;            // by chip
};

}  // namespace

void try_fitted_columns(const Question& q, Search& search, const Row&) {
  FittedColumns(q, search).run();
}

}  // namespace shardproof::diagnosis
