#include "golden/bounds/op/scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace shardproof::bounds {
namespace {

/// Maps floats to integers in ascending order, −0 before +0; NaNs map beyond both infinities.
std::int32_t place_among_floats(float v) {
  const auto bits = std::bit_cast<std::int32_t>(v);
  return bits < 0 ? std::numeric_limits<std::int32_t>::min() - bits - 1 : bits;
}

/// Returns the mask of the bits that are zero in every value of the format.
std::uint32_t cut_of(NumberFormat format) { return format == NumberFormat::bf16 ? 0xffffU : 0U; }

/// Checks a range of a part's elements, on one thread.
class Range {
 public:
  Range(const Bounds& of, const scalar::Value& held, const std::vector<bool>& padding,
        std::size_t part)
      : of_(of), in_(of.parts[part]), held_(held.parts[part]), padding_(padding), part_(part) {}

  Scan scan(std::size_t from, std::size_t to) {
    for (std::size_t at = from; at < to; at += kBlock) {
      const std::size_t n = std::min(kBlock, to - at);
      if (!all_between(at, n))
        for (std::size_t i = at; i < at + n; ++i)
          look_.outside = look_.outside || (judged(i) && !allows(of_, part_, i, held_[i]));
      measure(at, n);
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      look_.reach = std::max(look_.reach, reach_[lane]);
      look_.squares += squares_[lane];
    }
    return look_;
  }

 private:
  static constexpr std::size_t kBlock = 256, kLanes = 8;

  bool judged(std::size_t i) const { return padding_.empty() || !padding_[i]; }

  /// Returns true if all elements are certainly allowed; if false, each is checked on its own.
  bool all_between(std::size_t from, std::size_t n) const {
    std::array<float, kBlock> low, high;
    if (of_.format == NumberFormat::f32) {
      for (std::size_t i = 0; i < n; ++i) low[i] = static_cast<float>(in_[from + i].low);
      for (std::size_t i = 0; i < n; ++i) high[i] = static_cast<float>(in_[from + i].high);
    } else {
      for (std::size_t i = 0; i < n; ++i) {
        const Interval ends = values(in_[from + i], of_.format);
        low[i] = static_cast<float>(ends.low);
        high[i] = static_cast<float>(ends.high);
      }
    }
    const std::uint32_t cut = cut_of(of_.format);
    std::uint32_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float v = held_[from + i];
      const std::int32_t place = place_among_floats(v);
      wrong |= place < place_among_floats(low[i]) ? 1U : 0U;
      wrong |= place > place_among_floats(high[i]) ? 1U : 0U;
      // NaN ends mean unknown, although they map beyond all numbers: check one by one.
      wrong |= low[i] == low[i] && high[i] == high[i] ? 0U : 1U;
      wrong |= std::bit_cast<std::uint32_t>(v) & cut;
    }
    return wrong == 0;
  }

  double error_of(std::size_t i) const {
    const Interval& in = in_[i];
    return std::abs(static_cast<double>(held_[i]) - 0.5 * (in.low + in.high));
  }

  void measure(std::size_t from, std::size_t n) {
    // One accumulator per lane lets the compiler vectorize; comparisons with NaN are false.
    std::array<double, kLanes> errors{};
    const auto see = [&](std::size_t i, std::size_t lane) {
      const double error = error_of(i), reach = 0.5 * (in_[i].high - in_[i].low);
      const auto v = static_cast<double>(held_[i]);
      errors[lane] = error > errors[lane] ? error : errors[lane];
      reach_[lane] = reach > reach_[lane] ? reach : reach_[lane];
      squares_[lane] += v * v;
    };
    std::size_t i = from;
    if (padding_.empty())
      for (; i + kLanes <= from + n; i += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane) see(i + lane, lane);
    for (; i < from + n; ++i)
      if (judged(i)) see(i, i % kLanes);
    // An infinite error (overflow) says nothing about how tight a bound is.
    if (const double most = *std::max_element(errors.begin(), errors.end()); most > look_.error)
      for (std::size_t e = from; e < from + n; ++e)
        if (const double error = error_of(e);
            judged(e) && error > look_.error && !std::isinf(error)) {
          look_.error = error;
          look_.worst = {part_, e};
        }
  }

  const Bounds& of_;
  const std::vector<Interval>& in_;
  const std::vector<float>& held_;
  const std::vector<bool>& padding_;
  std::size_t part_;
  Scan look_;
  std::array<double, kLanes> reach_{}, squares_{};
};

}  // namespace

bool allows(const Bounds& of, std::size_t part, std::size_t i, float v) {
  const Interval ends = values(of.parts[part][i], of.format);
  const bool known = ends.low != -kInfinity || ends.high != kInfinity;
  const std::int32_t place = place_among_floats(v);
  if (known && (place < place_among_floats(static_cast<float>(ends.low)) ||
                place > place_among_floats(static_cast<float>(ends.high))))
    return false;
  return std::isnan(v) || (std::bit_cast<std::uint32_t>(v) & cut_of(of.format)) == 0;
}

Scan scan(const Bounds& of, const scalar::Value& held, const std::vector<bool>& padding,
          Threads& threads) {
  constexpr std::size_t kOfAThread = 1 << 13;
  struct Part {
    std::size_t part, from, to;
    Scan found;
  };
  std::vector<Part> parts;
  for (std::size_t part = 0; part < of.parts.size(); ++part)
    for (std::size_t from = 0; from < of.parts[part].size(); from += kOfAThread)
      parts.push_back({part, from, std::min(from + kOfAThread, of.parts[part].size()), {}});
  threads.for_each(std::ssize(parts), [&](std::int64_t i) {
    Part& p = parts[static_cast<std::size_t>(i)];
    p.found = Range(of, held, padding, p.part).scan(p.from, p.to);
  });
  Scan all;
  for (const Part& p : parts) {
    all.outside = all.outside || p.found.outside;
    if (p.found.error > all.error) all.error = p.found.error, all.worst = p.found.worst;
    all.reach = std::max(all.reach, p.found.reach);
    all.squares += p.found.squares;
  }
  return all;
}

}  // namespace shardproof::bounds
