// Values times a real factor, found by least squares.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/base/error.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;

/// Steps of the iteration, which is quadratic near its end; starts for values that are no multiple.
constexpr int kSteps = 10;
constexpr double kStep = 0x1p-22;  // values on the way are rounded to f32
constexpr double kStarts[] = {1.0, 0.25, 4.0};

/// A number that a factor may be meant as.
struct Reading {
  double number;
  std::string words;
};

std::vector<Reading> readings(const Question& q) {
  std::vector<Reading> all;
  const auto add = [&](double of, const std::string& words) {
    all.push_back({of, words});
    all.push_back({1 / of, "1/" + words});
    all.push_back({std::sqrt(of), fmt::format("sqrt({})", words)});
    all.push_back({1 / std::sqrt(of), fmt::format("1/sqrt({})", words)});
  };
  for (int n = 2; n <= 64; ++n) add(n, std::to_string(n));
  for (const char letter : {'E', 'F', 'H', 'K', 'Q', 'V'})
    if (const auto* const dims = &q.step().graph().lines().text().dims; std::any_of(
            dims->begin(), dims->end(), [&](const TextDim& dim) { return dim.letter == letter; }))
      add(static_cast<double>(q.step().extent(letter)), std::string(1, letter));
  return all;
}

/// What follows for the question's value from one of its operands, or itself, times a factor.
class Multiples {
 public:
  Multiples(const Question& q, std::string id)
      : q_(q), id_(std::move(id)), right_(id_ == q.id() ? q.expected() : q.replay().value(id_)) {}

  std::optional<IntervalTensor> times(double factor) {
    if (id_ == q_.id()) {
      ++computed_;
      return scaled(right_, factor, q_.declared());
    }
    try {
      return replaced(factor).expected(q_.id());
    } catch (const Error& e) {
      if (e.label() != "bounds_c1" && e.label() != "oracle_graph") throw;
      return std::nullopt;
    }
  }

  /// Returns a dump in which the operand is times a factor.
  Replaced replaced(double factor) {
    ++computed_;
    Replaced replaced(q_);
    replaced.put(id_, scaled(right_, factor, q_.declared())
                          .rounded(q_.replay().format_at(q_.replay().place_of(id_))));
    return replaced;
  }

  /// Returns the factor at which the squares of the differences are least; nullopt if the value
  /// does not depend on it, or none is found.
  std::optional<double> fitted(double start) {
    double factor = start;
    for (int step = 0; step < kSteps; ++step) {
      constexpr double kNear = 0x1p-12;
      const auto here = times(factor), near = times(factor * (1 + kNear));
      if (!here || !near) return std::nullopt;
      double along = 0.0, squares = 0.0;
      std::size_t judged = 0;
      for (int chip = 0; chip < q_.chips(); ++chip)
        for (const std::size_t i : q_.judged(chip)) {
          const std::size_t g = q_.global(chip, i);
          const double slope = (near->center[g] - here->center[g]) / (factor * kNear);
          const double off = q_.shard(chip)[i] - here->center[g];
          if (!std::isfinite(slope) || !std::isfinite(off)) return std::nullopt;
          along += slope * off;
          squares += slope * slope;
          ++judged;
        }
      // Of two numbers one is evidence.
      if (squares == 0.0 || judged < 2) return std::nullopt;
      if (id_ == q_.id()) return factor + along / squares;
      const double next = std::clamp(factor + along / squares, factor / 4, factor * 4);
      const bool end = std::abs(next - factor) <= kStep * std::abs(factor);
      factor = next;
      if (end) return factor;
    }
    return std::nullopt;
  }

  /// Returns how often the value has been computed.
  int computed() const { return computed_; }

 private:
  const Question& q_;
  std::string id_;
  IntervalTensor right_;
  int computed_ = 0;
};

}  // namespace

int try_fitted_factor(const Question& q, Search& search, const Row& row, const std::string& id,
                      const std::string& where) {
  Multiples multiples(q, id);
  for (const double start : kStarts) {
    const std::optional<double> factor = multiples.fitted(start);
    if (!factor) continue;
    if (*factor == 1.0) break;
    const auto tried = [&](const std::string& words, double number, int parameters) {
      Candidate c = candidate(row, words + where);
      c.parameters += parameters + (where.empty() ? 0 : 200);
      c.fitted = true;
      if (id != q.id())
        Trial(q, search).try_replaced(std::move(c), multiples.replaced(number));
      else if (const auto value = multiples.times(number))
        Trial(q, search).try_value(std::move(c), *value);
    };
    // The reading nearest to it, where its own bound may hide the difference.
    const std::vector<Reading> all = readings(q);
    const auto off = [&](const Reading& r) { return std::abs(r.number / *factor - 1); };
    const auto nearest =
        std::min_element(all.begin(), all.end(),
                         [&](const Reading& a, const Reading& b) { return off(a) < off(b); });
    if (off(*nearest) < 0x1p-8) tried(nearest->words, nearest->number, 0);
    tried(fmt::format("{:.7g}", *factor), *factor, 1);
    if (search.explained_everywhere() || id == q.id()) break;
  }
  return multiples.computed();
}

void try_factor(const Question& q, Search& search, const Row& row) {
  if (q.replay().dumped(q.id())) try_fitted_factor(q, search, row, q.id(), "");
}

void try_one_scale(const Question& q, Search& search, const Row& row) {
  Contraction sum = *contraction_of(q);
  if (q.right() || !sum.biases.empty()) return;
  const std::string own = sum.scale;
  sum.scales.assign(sum.columns, 1.0);
  double along = 0.0, squares = 0.0;
  std::size_t judged = 0;
  for (int chip = 0; chip < q.chips(); ++chip)
    for (const std::size_t i : q.judged(chip)) {
      const double s = sum.at(q.global(chip, i), q.declared()).center;
      along += s * q.shard(chip)[i];
      squares += s * s;
      ++judged;
    }
  if (!(squares > 0.0) || !std::isfinite(along) || judged < 2) return;
  // A scale is an f32.
  const auto scale = static_cast<double>(static_cast<float>(along / squares));
  sum.scales.assign(sum.columns, scale);
  Candidate c = candidate(row, fmt::format("{:.7g}", scale), own);
  c.fitted = true;
  c.at = q.logical([&q, sum = std::make_shared<const Contraction>(std::move(sum))](std::size_t g) {
    bounds::FunctionValue v = sum->at(g, q.declared());
    v.radius += (0x1p-23 + 2 * q.declared().operations.unit) * std::abs(v.center);
    return v;
  });
  search.consider(std::move(c));
}

}  // namespace shardproof::diagnosis
