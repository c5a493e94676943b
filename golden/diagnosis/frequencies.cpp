// Rotations by other frequencies than those of the model's tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

/// The frequencies theta^(-2j/width) that tables [PJ] of cosines and sines have.
struct Frequencies {
  std::vector<std::size_t> number;  ///< j of each column: of a pair's two columns the same
  double theta = 1.0, width = 0.0;

  /// Reads them off the angles of position 1.
  Frequencies(const Tensor& cosines, const Tensor& sines) {
    const std::size_t J = at(cosines.shape[1]);
    std::vector<double> angle(J);
    for (std::size_t j = 0; j < J; ++j)
      angle[j] = std::atan2(sines.data[J + j], cosines.data[J + j]);
    const std::set<double, std::greater<>> all(angle.begin(), angle.end());
    for (const double a : angle)
      number.push_back(static_cast<std::size_t>(std::distance(all.begin(), all.find(a))));
    width = 2.0 * static_cast<double>(all.size());
    if (all.size() < 2) return;
    // Of f32 angles; a theta has fewer digits.
    const double read = std::pow(*std::next(all.begin()), -width / 2);
    theta = std::stod(fmt::format("{:.5g}", read));
  }
};

class Rotations : Trial {
 public:
  Rotations(const Question& q, Search& search, const Row& row)
      : Trial(q, search), row_(row), operand_(turned_operand(q)) {
    for (const TextWeight* const weight : q.step().weights(WeightKind::rope_table))
      (weight->kind == TextWeightKind::sines ? sines_ : cosines_) = q.step().weight_id(*weight);
  }

  void run() {
    const std::string& letters = q_.step().lines().back().letters;
    if (cosines_.empty() || sines_.empty() || operand_.empty() || !letters.starts_with("BL") ||
        q_.value(operand_).shape != q_.shape() || q_.weight(cosines_)->shape[0] < 2)
      return;
    const Frequencies own(*q_.weight(cosines_), *q_.weight(sines_));
    if (own.theta == 1.0) return;
    int parameters = 0;
    for (const std::int64_t width : {q_.shape().back(), static_cast<std::int64_t>(own.width) / 2,
                                     static_cast<std::int64_t>(own.width) * 2})
      if (static_cast<double>(width) != own.width)
        try_frequencies(fmt::format("those of {} channels, not of {}", width, own.width),
                        parameters++, own, own.theta, static_cast<double>(width));
    // Of a value that the dump lacks the most frequent ones, as each is followed to another value.
    const bool shown = q_.replay().dumped(q_.id());
    for (const double digit : {1.0, 5.0, 2.0, 7.5, 1.5, 2.5, 8.0, 3.0, 4.0, 6.0, 7.0, 9.0})
      for (const double power : {1e4, 1e5, 1e6, 1e3, 1e7, 1e2, 1e8})
        if (digit * power != own.theta && (shown || digit == 1.0 || digit == 5.0))
          try_frequencies(fmt::format("those of theta {:g}, not of {:g}", digit * power, own.theta),
                          parameters++, own, digit * power, own.width);
  }

 private:
  void try_frequencies(const std::string& words, int parameters, const Frequencies& own,
                       double theta, double width) {
    Candidate c = candidate(row_, words);
    c.parameters = parameters;
    if (search_.explained_everywhere() || !search_.wants(c)) return;
    Tensor cosines = *q_.weight(cosines_), sines = *q_.weight(sines_);
    const std::size_t J = at(cosines.shape[1]);
    for (std::size_t i = 0; i < cosines.data.size(); ++i) {
      const std::size_t position = i / J;
      const double angle = static_cast<double>(position) *
                           std::pow(theta, -2.0 * static_cast<double>(own.number[i % J]) / width);
      cosines.data[i] = static_cast<float>(std::cos(angle));
      sines.data[i] = static_cast<float>(std::sin(angle));
    }
    bounds::IntervalTensor value =
        q_.under({.weights = {{cosines_, std::move(cosines)}, {sines_, std::move(sines)}}});
    widen(value);
    try_value(std::move(c), std::move(value));
  }

  /// Another program's tables are of angles that it rounds to f32, frequencies and products alike.
  void widen(bounds::IntervalTensor& value) const {
    const bounds::IntervalTensor& x = q_.value(operand_);
    const PassPlan& pass = q_.replay().pass(q_.place().pass);
    const std::size_t Q = at(q_.shape().back()), L = at(q_.shape()[1]),
                      tokens = value.size() / at(q_.shape()[0]) / L;
    for (std::size_t begin = 0; begin < value.size(); begin += Q) {
      double most = 0.0;
      for (std::size_t i = begin; i < begin + Q; ++i) most = std::max(most, std::abs(x.center[i]));
      const auto position =
          static_cast<double>(q_.replay().position(pass, begin / tokens / L, begin / tokens % L));
      for (std::size_t i = begin; i < begin + Q; ++i)
        value.widen(i, 4 * bounds::unit_of(NumberFormat::f32) * (1.0 + position) * 2 * most);
    }
  }

  const Row& row_;
  std::string operand_, cosines_, sines_;
};

}  // namespace

void try_frequencies(const Question& q, Search& search, const Row& row) {
  Rotations(q, search, row).run();
}

}  // namespace shardproof::diagnosis
