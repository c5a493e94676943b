#include "golden/trace/verdict/measure.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "golden/compare/reach_meter.h"
#include "golden/trace/value/detail/each_number.h"
#include "golden/trace/value/same_bits.h"
#include "golden/trace/verdict/wrong_box.h"
#include "weights/base/detail/each_part.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::dump {
namespace {

using bounds::Interval;
using bounds::Number;

/// Converts a number to the writer's units; the extra operation adds an error.
Number in_units(const Number& number, double unit, const bounds::DeclaredArithmetic& by) {
  if (unit == 1.0) return number;
  const double center = number.center / unit;
  const double own = 2 * (by.operations.unit + 0x1p-51) * std::abs(center);
  return {center, number.worst / std::abs(unit) + own, number.likely / std::abs(unit) + own};
}

/// Adds the rounding of each stored part, which may be larger than the sum.
Number with_rounded_terms(const DumpedValue& dumped, Number number, double size,
                          NumberFormat format) {
  const double count = static_cast<double>(dumped.terms) *
                       static_cast<double>(dumped.torus.size(dumped.layout.partial()));
  // The error of an infinite part is not a rounding: it must not widen the bound.
  if (count == 1 || !std::isfinite(size)) return number;
  const double own = bounds::unit_of(format) * size + count * bounds::least_of(format);
  number.worst += own, number.likely += own;
  return number;
}

/// Accumulates the comparison of one value's numbers.
class Meter {
 public:
  Meter(const DumpedValue& dumped, const Expected& expected, const bounds::DeclaredArithmetic& by,
        NumberFormat partial_sum, Row& row)
      : held_(dumped),
        expected_(expected),
        by_(by),
        partial_sum_(partial_sum),
        row_(row),
        wrong_places_(at(element_count(dumped.subject.shape)), false) {}

  void see(double v, const std::vector<int>& chips, std::int64_t place, double size) {
    row_.elements += std::ssize(chips);
    ++numbers_;
    if (std::isfinite(v)) squares_ += v * v;
    Interval ends;
    const bool right = expected_.bits != nullptr ? has_bits(v, place, ends)
                                                 : is_inside(v, chips[0], place, size, ends);
    if (!right) note_wrong(v, chips, place, ends);
  }

  /// Completes the row; returns whether any number was seen.
  bool finish() {
    row_.box = wrong_box(held_.subject.shape, wrong_places_, held_.padding);
    row_.slack = slack_.slack();
    row_.extent.outside = row_.wrong > 0;
    row_.extent.scale =
        std::sqrt(squares_ / static_cast<double>(std::max<std::int64_t>(numbers_, 1)));
    return numbers_ > 0;
  }
  std::vector<Outlier> outliers(std::size_t most) {
    const auto beyond = [](const Outlier& o) {
      return std::abs(o.actual - o.allowed.center) - o.allowed.likely;
    };
    stable_sort(outliers_,
                [&](const Outlier& a, const Outlier& b) { return beyond(a) > beyond(b); });
    if (outliers_.size() > most) outliers_.resize(most);
    return std::move(outliers_);
  }

 private:
  bool has_bits(double v, std::int64_t place, Interval& ends) const {
    ends.low = ends.high = static_cast<double>(expected_.bits->data[at(place)]);
    return same_bits(v, ends.low);
  }

  bool is_inside(double v, int chip, std::int64_t place, double size, Interval& ends) {
    const double unit = held_.unit(place);
    const Number number = with_rounded_terms(
        held_, in_units(expected_.bound->number(at(place)), unit, by_), size, partial_sum_);
    const double exact = (expected_.exact ? expected_.exact->center[at(place)]
                                          : expected_.bound->center[at(place)]) /
                         unit;
    const NumberFormat format = expected_.format;
    ends = bounds::values(number.interval(), format);
    bounds::Extent& e = row_.extent;
    e.worst = bounds::farther(e.worst, number.worst);
    e.likely = bounds::farther(e.likely, number.likely);
    if (!bounds::holds(ends, format, v) || (expected_.marks && v != 0 && v != 1)) return false;
    slack_.see(number.interval(), format, v);
    e.found = bounds::farther(e.found, bounds::distance(v, format, exact));
    if (v != bounds::nearest(exact, format)) ++row_.unequal;
    if (!bounds::holds(bounds::values(number.likely_interval(), format), format, v))
      outliers_.push_back({place, chip, v, exact, number}), ++row_.outliers;
    return true;
  }

  void note_wrong(double v, const std::vector<int>& chips, std::int64_t place,
                  const Interval& ends) {
    wrong_places_[at(place)] = true;
    const WrongElement element{chips[0], global_index(held_.subject.shape, place), ends.low,
                               ends.high, v};
    if (!row_.first) row_.first = element;
    double distance = std::max(ends.low - v, v - ends.high);
    if (!(distance >= 0)) distance = HUGE_VAL;  // also for NaN
    row_.add_wrong(chips, distance);
    if (distance > most_) most_ = distance, row_.worst = element;
  }

  const DumpedValue& held_;
  const Expected& expected_;
  const bounds::DeclaredArithmetic& by_;
  NumberFormat partial_sum_;
  Row& row_;
  std::vector<bool> wrong_places_;
  bounds::Slack slack_;
  std::vector<Outlier> outliers_;
  double squares_ = 0.0, most_ = -1.0;
  std::int64_t numbers_ = 0;
};

/// Returns whether a chip's numbers from `first` to `last`, or to its last one, have these bits.
bool has_bits_from(const Numbers& numbers, const Places& places, const Tensor& bits,
                   std::size_t first, std::size_t last) {
  bool same = true;
  places.each_run(first, std::min(last, numbers.size()),
                  [&](std::size_t i, std::int64_t place, std::size_t count) {
                    same =
                        same && std::memcmp(numbers.f32_bytes() + i * sizeof(float),
                                            bits.data.data() + place, count * sizeof(float)) == 0;
                  });
  return same;
}

}  // namespace

std::vector<Outlier> measure(const DumpedValue& dumped, const Expected& expected,
                             const MaskedSlots& masked, const bounds::DeclaredArithmetic& by,
                             NumberFormat partial_sum, Row& row, std::size_t outliers) {
  Meter meter(dumped, expected, by, partial_sum, row);
  each_number(dumped,
              [&](double v, const std::vector<int>& chips, std::int64_t place, double size) {
                if (masked(place)) return;
                const bool known = expected.unknown.empty() || !expected.bound ||
                                   std::isfinite(expected.bound->radius[at(place)]);
                if (known)
                  meter.see(v, chips, place, size);
                else
                  row.unknown += std::ssize(chips), row.why = expected.unknown;
              });
  const bool any = meter.finish();
  row.fit = !any                                        ? Fit::not_judged
            : row.wrong > 0 || expected.bits == nullptr ? bounds::fit_of(row.extent)
                                                        : Fit::equal;
  if (!any && row.unknown == 0) row.why = "it holds no number of the model's";
  row.copies_differ = !dumped.layout.is_partial() && copies_differ(dumped);
  return meter.outliers(outliers);
}

bool has_all_bits(const DumpedValue& dumped, const Tensor& bits, Row& row) {
  if (dumped.layout.is_partial() || !dumped.units.empty() || dumped.terms > 1) return false;
  std::size_t elements = 0;
  for (std::size_t chip = 0; chip < dumped.shards.size(); ++chip) {
    const Numbers& numbers = dumped.shards[chip];
    if (numbers.empty()) continue;
    if (numbers.f32_bytes() == nullptr || !dumped.places[chip].of_block()) return false;
    elements += numbers.size();
  }
  if (elements == 0) return false;
  std::atomic<bool> same = true;
  constexpr std::size_t kLeast = std::size_t{1} << 18;  // numbers for which a thread is started
  each_part(elements, kLeast, [&](std::size_t first, std::size_t last) {
    std::size_t before = 0;  // numbers of earlier chips
    for (std::size_t chip = 0; chip < dumped.shards.size() && before < last && same; ++chip) {
      const Numbers& numbers = dumped.shards[chip];
      const std::size_t from = std::max(first, before) - before;
      if (from < numbers.size() &&
          !has_bits_from(numbers, dumped.places[chip], bits, from, last - before))
        same = false;
      before += numbers.size();
    }
  });
  if (!same) return false;
  row.elements = static_cast<std::int64_t>(elements);
  row.fit = Fit::equal;
  return true;
}

std::optional<RoundingReport> report_rounding(
    const DumpedValue& dumped, const MaskedSlots& masked, NumberFormat format,
    const std::vector<bounds::Derivation::Variant>& variants) {
  if (variants.size() < 2) return std::nullopt;
  std::vector<std::int64_t> misses(variants.size(), 0);
  // Hashes of each way's results: ways are equal if the model lacks what distinguishes them, such
  // as a mean or a bias.
  std::vector<std::uint64_t> prints(variants.size(), 0);
  RoundingReport report;
  each_number(dumped, [&](double v, const std::vector<int>&, std::int64_t place, double) {
    if (masked(place)) return;
    ++report.elements;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const Interval ends = bounds::values(variants[i].value.number(at(place)).interval(), format);
      if (!bounds::holds(ends, format, v)) ++misses[i];
      for (const double end : {ends.low, ends.high})
        prints[i] = (prints[i] ^ std::bit_cast<std::uint64_t>(end + 0.0)) * 0x9e3779b97f4a7c15U;
    }
  });
  if (std::equal(prints.begin() + 1, prints.end(), prints.begin())) return std::nullopt;
  const std::size_t best =
      static_cast<std::size_t>(std::min_element(misses.begin(), misses.end()) - misses.begin());
  report.best = variants[best].words;
  report.misses = misses[best];
  report.others = report.elements;
  for (std::size_t i = 0; i < misses.size(); ++i)
    if (prints[i] != prints[best]) report.others = std::min(report.others, misses[i]);
  return report;
}

bool copies_differ(const DumpedValue& dumped) {
  // Of blocks that have no replicas nothing can differ.
  std::int64_t numbers = 0;
  bool blocks = true;
  for (std::size_t chip = 0; chip < dumped.shards.size(); ++chip) {
    numbers += std::ssize(dumped.shards[chip]);
    blocks = blocks && (dumped.shards[chip].empty() || dumped.places[chip].of_block());
  }
  if (blocks && dumped.complete() && numbers == element_count(dumped.subject.shape)) return false;
  std::vector<double> first(at(element_count(dumped.subject.shape)));
  std::vector<bool> seen(first.size(), false);
  bool differ = false;
  for (std::size_t chip = 0; chip < dumped.shards.size() && !differ; ++chip) {
    if (dumped.shards[chip].empty()) continue;
    dumped.places[chip].each([&](std::size_t i, std::int64_t place) {
      const double v = dumped.shards[chip][i];
      differ = differ || (seen[at(place)] && !same_bits(first[at(place)], v));
      first[at(place)] = v;
      seen[at(place)] = true;
    });
  }
  return differ;
}

}  // namespace shardproof::dump
