#include "golden/field/equality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace shardproof {
namespace {

/// A seed has 64 bits, and no more than 60 of them are relied on.
constexpr double kLeast = -60.0;

std::int64_t of_numerator(const FieldDegree& degree, const std::map<int, std::int64_t>& inverted) {
  std::int64_t d = degree.a;
  for (const auto& [layer, e] : degree.e)
    if (const auto at = inverted.find(layer); at != inverted.end()) d += e * 2 * at->second;
  return d;
}

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
  result.degree = oracle.degree(inverted);
  for (const FieldDegree& degree : engine.degrees)
    result.degree = std::max(result.degree, of_numerator(degree, inverted));
  double pairs = 1.0;
  for (const auto& [name, times] : applied) {
    result.applications += times;
    const auto N = static_cast<double>(times);
    pairs += N * (N + 1.0) / 2.0;
  }
  const double log2_p = std::log2(static_cast<double>((std::uint64_t{1} << setting.bits) - 1));
  const double root = std::log2(static_cast<double>(std::max<std::int64_t>(result.degree, 1)));
  result.log2_counted = std::log2(pairs) + setting.lanes * (root - log2_p);
  result.log2_miss = std::max(result.log2_counted, kLeast);
  return result;
}

}  // namespace shardproof
