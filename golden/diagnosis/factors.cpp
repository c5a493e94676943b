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
#include "golden/diagnosis/detail/missing.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;

/// Steps of the iteration, which is quadratic near its end; starts for values that are no multiple.
constexpr int kSteps = 10;
/// The step at which the iteration ends, what it takes slopes over, and how far from its result the
/// number may be that the factor is meant as: values on the way are rounded, to f32 or 16 bits.
struct Steps {
  double end, slope, reading;
};
constexpr Steps kOfFloat{0x1p-22, 0x1p-12, 0x1p-8}, kOfHalf{0x1p-6, 0x1p-5, 0x1p-4};
constexpr double kStarts[] = {1.0, 0.25, 4.0};

Steps steps_of(const Question& q) {
  return bounds::narrow_storage(q.declared().values) ? kOfHalf : kOfFloat;
}

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

/// Returns the readings that are not further from a factor than `most` of it, at most three
/// numbers, the nearest first.
std::vector<Reading> nearest(std::vector<Reading> all, double factor, double most) {
  const auto off = [&](const Reading& r) { return std::abs(r.number / factor - 1); };
  std::erase_if(all, [&](const Reading& r) { return !(off(r) < most); });
  stable_sort(all, [&](const Reading& a, const Reading& b) { return off(a) < off(b); });
  std::vector<Reading> some;
  for (Reading& r : all)
    if (some.size() < 3 && (some.empty() || some.back().number != r.number))
      some.push_back(std::move(r));
  return some;
}

/// What follows for the question's value from one of its operands, or itself, times a factor.
class Multiples {
 public:
  Multiples(const Question& q, std::string id)
      : q_(q), id_(std::move(id)), right_(id_ == q.id() ? q.expected() : q.replay().value(id_)) {}

  /// `smooth`: no number on the way is rounded to 16 bits, so that the result has a slope.
  std::optional<IntervalTensor> times(double factor, bool smooth) {
    if (id_ != q_.id()) return replaced(factor, smooth).implied();
    return scaled_by(factor, smooth);
  }

  /// Returns a dump in which the operand is times a factor.
  Replaced replaced(double factor, bool smooth) {
    IntervalTensor changed = scaled_by(factor, smooth);
    const NumberFormat format = q_.replay().format_at(q_.replay().place_of(id_));
    if (!smooth || !bounds::narrow_storage(format)) changed = changed.rounded(format);
    Replaced replaced(q_);
    replaced.put(id_, std::move(changed));
    return replaced;
  }

  /// Returns the factor at which the squares of the differences are least; nullopt if the value
  /// does not depend on it, or none is found.
  std::optional<double> fitted(double start) {
    double factor = start;
    const Steps by = steps_of(q_);
    for (int step = 0; step < kSteps; ++step) {
      const auto here = times(factor, true), near = times(factor * (1 + by.slope), true);
      if (!here || !near) return std::nullopt;
      double along = 0.0, squares = 0.0;
      std::size_t judged = 0;
      for (int chip = 0; chip < q_.chips(); ++chip)
        for (const std::size_t i : q_.judged(chip)) {
          const std::size_t g = q_.global(chip, i);
          const double slope = (near->center[g] - here->center[g]) / (factor * by.slope);
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
      const bool end = std::abs(next - factor) <= by.end * std::abs(factor);
      factor = next;
      if (end) return factor;
    }
    return std::nullopt;
  }

  /// Returns how often the value has been computed.
  int computed() const { return computed_; }

 private:
  IntervalTensor scaled_by(double factor, bool smooth) {
    ++computed_;
    const IntervalTensor changed = scaled(right_, factor, q_.declared());
    return smooth ? changed : rounded_or_not(changed, q_.declared());
  }

  const Question& q_;
  std::string id_;
  IntervalTensor right_;
  int computed_ = 0;
};

/// Tries the value that follows if this one, or an operand that the dump lacks, is times a number,
/// which is fitted. Returns how often the value was computed.
int try_fitted_factor(const Question& q, Search& search, const Row& row, const std::string& id) {
  Multiples multiples(q, id);
  for (const double start : kStarts) {
    const std::optional<double> factor = multiples.fitted(start);
    if (!factor) continue;
    if (*factor == 1.0) break;
    const auto tried = [&](const std::string& words, double number, bool reading) {
      Candidate c = id == q.id() ? candidate(row, words)
                                 : candidate(row, words, q.replay().place_of(id).name, kLacking);
      c.parameters += reading ? 0 : 1;
      c.fitted = !reading;
      if (id != q.id())
        Trial(q, search).try_replaced(std::move(c), multiples.replaced(number, false));
      else if (const auto value = multiples.times(number, false))
        Trial(q, search).try_value(std::move(c), *value);
    };
    // The readings near it, where its own bound may hide the difference.
    for (const Reading& r : nearest(readings(q), *factor, steps_of(q).reading))
      tried(r.words, r.number, true);
    tried(fmt::format("{:.7g}", *factor), *factor, false);
    if (search.explained_everywhere() || id == q.id()) break;
  }
  return multiples.computed();
}

}  // namespace

void try_factor(const Question& q, Search& search, const Row& row) {
  if (q.replay().dumped(q.id())) try_fitted_factor(q, search, row, q.id());
}

void try_missing_factors(const Question& q, Search& search, const Row& row) {
  const MissingOperands missing(q);
  double left = MissingOperands::kProducts;
  for (const std::string& id : missing.ids)
    if (left >= missing.products && !search.explained_everywhere())
      left -= missing.products * try_fitted_factor(q, search, row, id);
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
