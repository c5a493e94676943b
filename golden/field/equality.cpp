#include "golden/field/equality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace shardproof {
namespace {

/// A seed has 64 bits, and no more than 60 of them are relied on.
constexpr double kLeast = -60.0;

/// The greatest a, and of each layer the greatest e, of all degrees.
class Greatest {
 public:
  void see(std::int64_t a) { a_ = std::max(a_, a); }
  void see(int layer, std::int64_t e) { e_[layer] = std::max(e_[layer], e); }

  /// Of the numerators where there are so many denominators in each layer.
  std::int64_t degree(const std::map<int, std::int64_t>& inverted) const {
    std::int64_t d = a_;
    for (const auto& [layer, e] : e_)
      if (const auto at = inverted.find(layer); at != inverted.end()) d += e * 2 * at->second;
    return d;
  }

 private:
  std::int64_t a_ = 1;
  std::map<int, std::int64_t> e_;
};

}  // namespace

int FieldEquality::exponent() const { return static_cast<int>(std::floor(-log2_miss)); }

std::string FieldEquality::to_string() const {
  return fmt::format(
      "equal for all inputs, as formulas: all weights, tables, scales (this torus, these sizes, "
      "lengths, positions; {} of {} ids looked up); a program with another formula passes with "
      "probability < 2^-{} over the seed",
      ids_met, ids, exponent());
}

FieldEquality field_equality(const FieldSetting& setting, const FieldCounts& engine,
                             const oracle::field::Answer& oracle) {
  std::map<std::string, std::int64_t> applied = engine.applied;
  for (const auto& [name, times] : oracle.applied) applied[name] += times;
  std::map<int, std::int64_t> inverted = engine.inverted;
  for (const auto& [layer, times] : oracle.inverted) inverted[layer] += times;

  FieldEquality result;
  Greatest greatest;
  for (const FieldDegree& degree : engine.degrees) {
    greatest.see(degree.a);
    for (const auto& [layer, e] : degree.e) greatest.see(layer, e);
  }
  for (const oracle::field::Degree& degree : oracle.degrees) {
    greatest.see(degree.a);
    for (std::size_t layer = 0; layer < degree.e.size(); ++layer)
      greatest.see(static_cast<int>(layer), degree.e[layer]);
  }
  result.degree = greatest.degree(inverted);
  double pairs = 1.0;
  for (const auto& [name, times] : applied) {
    result.applications += times;
    const auto N = static_cast<double>(times);
    pairs += N * (N + 1.0) / 2.0;
  }
  const double log2_p = std::log2(static_cast<double>((std::uint64_t{1} << setting.bits) - 1));
  const double root = std::log2(static_cast<double>(std::max<std::int64_t>(result.degree, 1)));
  // A second draw was a second try.
  result.log2_counted = std::log2(pairs) + setting.lanes * (root - log2_p) + setting.draw;
  result.log2_miss = std::max(result.log2_counted, kLeast);
  return result;
}

}  // namespace shardproof
