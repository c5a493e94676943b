#include "golden/verdict/field_equality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace shardproof {
namespace {

/// A seed has 64 bits, and no more than 60 of them are relied on.
constexpr double kLeast = -60.0;

/// The degrees of the products of denominators, by the number of what divides.
class Denominators {
 public:
  explicit Denominators(const FieldCounts& counts) {
    for (const auto& [layer, times] : counts.inverted) degrees_[layer] += 2 * times;
    // In ascending order: a divisor is made of what was divided before.
    for (const auto& [divisor, times] : counts.divided)
      degrees_[divisor.first] +=
          times * (divisor.second.a + sum(divisor.second.e) + sum(divisor.second.more));
  }

  /// Returns the degree of as many of the products.
  std::int64_t sum(const std::map<int, std::int64_t>& of) const {
    std::int64_t d = 0;
    for (const auto& [number, e] : of)
      if (const auto at = degrees_.find(number); at != degrees_.end()) d += e * at->second;
    return d;
  }

 private:
  std::map<int, std::int64_t> degrees_;
};

/// The maximum of a, and for each number those of e and of more, over all degrees.
class Greatest {
 public:
  void see(const FieldDegree& degree) {
    a_ = std::max(a_, degree.a);
    see(degree.e, e_);
    see(degree.more, more_);
  }
  /// Returns the degree of the numerators over these denominators.
  std::int64_t degree(const Denominators& of) const { return a_ + of.sum(e_) + of.sum(more_); }

 private:
  static void see(const std::map<int, std::int64_t>& of, std::map<int, std::int64_t>& most) {
    for (const auto& [number, e] : of) most[number] = std::max(most[number], e);
  }

  std::int64_t a_ = 1;
  std::map<int, std::int64_t> e_, more_;
};

}  // namespace

int FieldEquality::exponent() const { return static_cast<int>(std::floor(-log2_miss)); }

std::string FieldEquality::to_string() const {
  return fmt::format(
      "equal for {}, as formulas: all weights, tables, scales (this torus, these sizes, lengths, "
      "positions; {} of {} ids looked up{}); a program with another formula passes with "
      "probability < 2^-{} over the seed",
      distinct_ids ? "all inputs" : "these ids", ids_met, ids,
      distinct_ids ? "" : ", tokens share some", exponent());
}

void add_counts(FieldCounts& counts, const FieldCounts& more) {
  for (const auto& [name, times] : more.applied) counts.applied[name] += times;
  for (const auto& [layer, times] : more.inverted) counts.inverted[layer] += times;
  for (const auto& [divisor, times] : more.divided) counts.divided[divisor] += times;
  counts.degrees.insert(more.degrees.begin(), more.degrees.end());
}

FieldCounts counts_of(const oracle::field::Answer& answer) {
  FieldCounts counts{answer.applied, answer.inverted, {}};
  for (const oracle::field::Degree& of : answer.degrees) {
    FieldDegree degree{.a = of.a, .e = {}};
    for (std::size_t layer = 0; layer < of.e.size(); ++layer)
      if (of.e[layer] != 0) degree.e[static_cast<int>(layer)] = of.e[layer];
    counts.degrees.insert(std::move(degree));
  }
  return counts;
}

FieldEquality field_equality(const FieldSetting& setting, const FieldCounts& counts) {
  FieldEquality result;
  result.seed = setting.seed;
  Greatest greatest;
  for (const FieldDegree& degree : counts.degrees) greatest.see(degree);
  result.degree = greatest.degree(Denominators(counts));
  double pairs = 1.0;
  for (const auto& [name, times] : counts.applied) {
    result.applications += times;
    const auto N = static_cast<double>(times);
    pairs += N * (N + 1.0) / 2.0;
  }
  const double log2_p = std::log2(static_cast<double>((std::uint64_t{1} << setting.bits) - 1));
  const double root = std::log2(static_cast<double>(std::max<std::int64_t>(result.degree, 1)));
  // A second draw is a second chance to miss a fault.
  result.log2_counted = std::log2(pairs) + setting.lanes * (root - log2_p) + setting.draw;
  result.log2_miss = std::max(result.log2_counted, kLeast);
  return result;
}

}  // namespace shardproof
