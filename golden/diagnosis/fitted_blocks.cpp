// Faults that are read off the value itself: the position of each token, the block of a gain.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/orders.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;

/// Rotations by other rows of the tables, compared with the value token by token.
class Positions : Trial {
 public:
  Positions(const Question& q, Search& search)
      : Trial(q, search), inner_(inner_of(q.shape(), 1)), tokens_(q.expected().size() / inner_) {}

  void run() {
    const std::string& letters = q_.step().lines().back().letters;
    if (q_.right() || !letters.starts_with("BL") || q_.rank() != letters.size()) return;
    const std::int64_t reach = reach_of_tables();
    off_.assign(at(q_.chips()), std::vector<std::optional<std::int64_t>>(tokens_));
    std::size_t open = find(0);
    for (std::int64_t by = 1; by <= reach && open > 0; ++by)
      for (const std::int64_t offset : {by, -by}) open = std::min(open, find(offset));
    if (open == 0) propose();
  }

 private:
  /// Returns the largest offset that is tried: twice the keys of a row, or 64, within the tables.
  std::int64_t reach_of_tables() const {
    const auto table =
        q_.weight(q_.step().weight_id(*q_.step().weights(WeightKind::rope_table).front()));
    const PassPlan& pass = q_.replay().pass(q_.place().pass);
    const std::int64_t keys = pass.prefix.length + pass.cached + pass.L;
    return std::min(table->shape[0] - 1, std::max<std::int64_t>(64, 2 * keys));
  }

  /// Returns the value whose positions are so much larger; unknown numbers beyond the tables.
  IntervalTensor moved(std::int64_t offset) const {
    Step::Change change;
    for (const TextWeight* const weight : q_.step().weights(WeightKind::rope_table)) {
      const std::string id = q_.step().weight_id(*weight);
      const std::shared_ptr<const Tensor> own = q_.weight(id);
      Tensor table = *own;
      const std::int64_t P = table.shape[0], J = table.shape[1];
      for (std::int64_t i = 0; i < P * J; ++i) {
        const std::int64_t from = i + offset * J;
        table.data[at(i)] = from < 0 || from >= P * J ? std::numeric_limits<float>::quiet_NaN()
                                                      : own->data[at(from)];
      }
      change.weights.emplace(id, std::move(table));
    }
    return q_.under(change);
  }

  /// Notes the tokens of each chip that an offset fits; returns how many are left.
  std::size_t find(std::int64_t offset) {
    const Prediction value = q_.logical(offset == 0 ? q_.expected() : moved(offset));
    std::size_t left = 0;
    bool used = false;
    for (int chip = 0; chip < q_.chips(); ++chip) {
      std::vector<bool> fits(tokens_, true), there(tokens_, false);
      for (const std::size_t local : q_.judged(chip)) {
        const std::size_t g = q_.global(chip, local);
        const bounds::FunctionValue number = value(chip, local);
        there[g / inner_] = true;
        fits[g / inner_] =
            fits[g / inner_] && !diagnosis::open(number) && q_.fits(chip, local, number);
      }
      for (std::size_t token = 0; token < tokens_; ++token) {
        std::optional<std::int64_t>& off = off_[at(chip)][token];
        if (there[token] && !off && fits[token]) off = offset, used = true;
        left += there[token] && !off ? 1U : 0U;
      }
    }
    if (used) values_.emplace(offset, value);
    return left;
  }

  void propose() {
    const std::size_t L = at(q_.shape()[1]);
    const PassPlan& pass = q_.replay().pass(q_.place().pass);
    const auto position = [&](int chip, std::size_t token) {
      return q_.replay().position(pass, token / L, token % L) + off_[at(chip)][token].value_or(0);
    };
    bool alike = true, constant = true;
    std::optional<std::int64_t> only;
    std::string words;
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (std::size_t token = 0; token < tokens_; ++token) {
        if (!off_[at(chip)][token]) continue;
        constant = constant && off_[at(chip)][token] == only.value_or(*off_[at(chip)][token]);
        only = off_[at(chip)][token];
        alike = alike && position(chip, token) == position(0, token);
      }
    if (constant && only) {
      words = fmt::format("position {:+}", *only);
    } else {
      for (int chip = 0; chip < (alike ? 1 : q_.chips()) && words.size() < 100; ++chip)
        for (std::size_t row = 0; row < tokens_ / L && words.size() < 100; ++row) {
          std::vector<std::int64_t> of_row;
          for (std::size_t l = 0; l < L; ++l)
            if (alike || off_[at(chip)][row * L + l]) of_row.push_back(position(chip, row * L + l));
          if (!of_row.empty())
            words += fmt::format("{}row {}{} at {}", words.empty() ? "" : "; ", row,
                                 alike ? "" : " on chip " + q_.torus().name(chip),
                                 fmt::join(of_row, ","));
        }
      words = "positions of tokens: " + words;
    }
    search_.consider({.fault = "position off",
                      .detail = words,
                      .parameters = constant ? 99 : 500,
                      .at = [&q = q_, off = off_, values = values_, inner = inner_](
                                int chip, std::size_t local) -> bounds::FunctionValue {
                        const std::size_t g = q.global(chip, local);
                        const auto& by = off[at(chip)][g / inner];
                        if (!by) return {0.0, bounds::kInfinity, 0.0};
                        return values.at(*by)(chip, local);
                      },
                      .fitted = true});
  }

  std::size_t inner_, tokens_;
  std::vector<std::vector<std::optional<std::int64_t>>> off_;  // by chip and token
  std::map<std::int64_t, Prediction> values_;
};

/// The blocks of a weight of one dim, over some axes, as the value shows them.
void try_blocks_of(const Question& q, Search& search, const std::string& id, char letter,
                   const Axes& set) {
  const std::shared_ptr<const Tensor> own = q.weight(id);
  const int n = q.torus().size(set);
  const std::int64_t extent = own->shape[0];
  const std::size_t dim = q.step().lines().back().letters.find(letter);
  if (extent % n != 0 || dim >= q.rank()) return;
  const auto in_place = [&](const std::vector<int>& held) {
    Tensor other = *own;
    const std::vector<std::size_t> from = reordered(own->data.size(), extent / n, held);
    for (std::size_t i = 0; i < from.size(); ++i) other.data[i] = own->data[from[i]];
    return other;
  };
  std::vector<int> found(at(n), -1), turned(at(n));
  for (int by = 0; by < n; ++by) {
    for (int r = 0; r < n; ++r) turned[at(r)] = (r + by) % n;
    const Prediction value = q.logical(q.under({.weights = {{id, in_place(turned)}}}));
    std::vector<bool> fits(at(n), true), there(at(n), false);
    for (int chip = 0; chip < q.chips(); ++chip)
      for (const std::size_t local : q.judged(chip)) {
        const std::size_t g = q.global(chip, local);
        const std::size_t r = g / inner_of(q.shape(), dim) % at(extent) / at(extent / n);
        there[r] = true;
        fits[r] = fits[r] && q.fits(chip, local, value(chip, local));
      }
    for (int r = 0; r < n; ++r)
      if (there[at(r)] && fits[at(r)] && found[at(r)] < 0) found[at(r)] = turned[at(r)];
  }
  if (std::find(found.begin(), found.end(), -1) != found.end()) return;
  Trial(q, search).try_change(
      {.fault = is_permutation(found) ? "chunks in another order" : "another chip's block",
       .detail = fmt::format("{} of {}: its blocks are {}", letter, id, fmt::join(found, ",")),
       .parameters = 500,
       .axes = set.to_string(),
       .fitted = true},
      {.weights = {{id, in_place(found)}}});
}

}  // namespace

void try_fitted_positions(const Question& q, Search& search, const Row&) {
  Positions(q, search).run();
}

Edit fitted_blocks_of(WeightKind kind) {
  return [=](const Question& q, Search& search, const Row&) {
    if (q.right()) return;
    for (const TextWeight* const weight : q.step().weights(kind))
      for (const Axes& set : q.sets())
        if (weight->letters.size() == 1)
          try_blocks_of(q, search, q.step().weight_id(*weight), weight->letters[0], set);
  };
}

}  // namespace shardproof::diagnosis
