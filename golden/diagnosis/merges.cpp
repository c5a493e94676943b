// Attention in parts of the slots, merged with wrong weights.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/softmax.h"

namespace shardproof::diagnosis {
namespace {

/// As many parts as are tried: blocks of other dims are read off up to as many, too.
constexpr std::size_t kMostParts = 16;

struct Parts {
  std::size_t count = 0;
  std::string words;
  std::function<std::size_t(std::size_t slot)> of;
};

std::vector<Parts> parts_of(const PassPlan& pass, std::size_t slots) {
  std::vector<Parts> all;
  for (const std::int64_t border : {pass.prefix.length, pass.prefix.length + pass.cached})
    if (const std::size_t first = at(border); first > 0 && first < slots)
      all.push_back({2, fmt::format("slots 0 to {} and the others", first - 1),
                     [first](std::size_t m) -> std::size_t { return m < first ? 0 : 1; }});
  for (std::size_t n = 2; n <= std::min(slots, kMostParts); ++n) {
    const std::size_t extent = (slots + n - 1) / n;
    all.push_back({n, fmt::format("{} parts, slot m in part m mod {}", n, n),
                   [n](std::size_t m) { return m % n; }});
    all.push_back({n, fmt::format("{} parts of {} slots", n, extent),
                   [extent](std::size_t m) { return m / extent; }});
  }
  return all;
}

struct Range {
  double low = 0.0, high = 0.0;
};
Range quotient(const Range& a, const Range& b) { return {a.low / b.high, a.high / b.low}; }

/// What the exponentials of a part are to the same reference: their sum, and the largest.
struct Share {
  Range sum, largest;
  bool empty() const { return !(sum.low > 0.0); }
};

/// By what a part's exponentials are multiplied in place of 1, of the parts of one query. A part
/// whose weight is w, as its sum is for a right merge, multiplies them by w over its sum.
using Factor = Range (*)(const std::vector<Share>& parts, std::size_t part);

Range powers_of(const Range& of, double power) {
  return power < 0.0 ? Range{std::pow(of.high, power), std::pow(of.low, power)}
                     : Range{std::pow(of.low, power), std::pow(of.high, power)};
}
Range of_base_2(const std::vector<Share>& parts, std::size_t r) {
  return powers_of(parts[r].sum, kLn2 - 1.0);
}
Range of_base_e(const std::vector<Share>& parts, std::size_t r) {
  return powers_of(parts[r].sum, kLog2E - 1.0);
}
Range of(const Share& other, const Share& own) {
  return other.empty() ? Range{} : quotient(other.sum, own.sum);
}
Range of_next(const std::vector<Share>& parts, std::size_t r) {
  return of(parts[(r + 1) % parts.size()], parts[r]);
}
Range of_previous(const std::vector<Share>& parts, std::size_t r) {
  return of(parts[(r + parts.size() - 1) % parts.size()], parts[r]);
}
Range of_opposite(const std::vector<Share>& parts, std::size_t r) {
  return of(parts[parts.size() - 1 - r], parts[r]);
}
Range all_alike(const std::vector<Share>& parts, std::size_t r) {
  return quotient({1.0, 1.0}, parts[r].sum);
}
Range without_largest(const std::vector<Share>& parts, std::size_t r) {
  return quotient({1.0, 1.0}, parts[r].largest);
}
Range of_largest(const std::vector<Share>& parts, std::size_t r) {
  return quotient(parts[r].largest, parts[r].sum);
}

constexpr struct {
  const char* words;
  Factor factor;
  bool of_more;  ///< of two parts it is the one before
} kMerges[] = {
    {"their log-sum-exps, of base e, are taken for those of base 2", of_base_2, false},
    {"their log-sum-exps, of base 2, are taken for those of base e", of_base_e, false},
    {"each has the log-sum-exp of the next one", of_next, false},
    {"each has the log-sum-exp of the one before", of_previous, true},
    {"they have one another's log-sum-exps, in the opposite order", of_opposite, true},
    {"all weigh the same", all_alike, false},
    {"they are weighed by their sums, without their maxima", without_largest, false},
    {"they are weighed by their maxima, without their sums", of_largest, false},
};

/// Returns exponentials of M slots with the factors of their parts.
bounds::IntervalTensor merged(const Question& q, const Parts& parts, Factor factor) {
  const std::string& letters = q.step().lines().back().letters;
  const std::size_t dim = letters.find('M'), inner = inner_of(q.shape(), dim),
                    slots = at(q.shape()[dim]);
  bounds::IntervalTensor value = q.expected();
  // Each weight has been through a logarithm, an exponential, a product and a quotient.
  const double rounding = 4 * q.declared().operations.unit;
  std::vector<Share> of(parts.count);
  for (std::size_t begin = 0; begin < value.size(); begin += slots * inner)
    for (std::size_t i = begin; i < begin + inner; ++i) {
      of.assign(parts.count, {});
      const auto exponential = [&](std::size_t m) -> Range {
        const std::size_t g = i + m * inner;
        return {std::max(0.0, value.center[g] - value.radius[g]),
                value.center[g] + value.radius[g]};
      };
      for (std::size_t m = 0; m < slots; ++m) {
        Share& part = of[parts.of(m)];
        const Range e = exponential(m);
        part.sum = {part.sum.low + e.low, part.sum.high + e.high};
        part.largest = {std::max(part.largest.low, e.low), std::max(part.largest.high, e.high)};
      }
      for (std::size_t m = 0; m < slots; ++m) {
        const std::size_t r = parts.of(m);
        if (of[r].empty()) continue;
        const Range e = exponential(m), by = factor(of, r);
        const double low = e.low * by.low, high = e.high * by.high;
        value.set(i + m * inner,
                  bounds::FunctionValue{(low + high) / 2, (high - low) / 2 + rounding * high, 0.0});
      }
    }
  return value;
}

}  // namespace

void try_merges(const Question& q, Search& search, const Row& row) {
  const std::size_t dim = q.step().lines().back().letters.find('M');
  if (dim == std::string::npos) return;
  for (const Parts& parts : parts_of(q.replay().pass(q.place().pass), at(q.shape()[dim])))
    for (const auto& merge : kMerges) {
      if (merge.of_more && parts.count == 2) continue;
      Candidate c = candidate(row, parts.words, merge.words);
      c.parameters += static_cast<int>(parts.count);
      if (search.wants(c)) Trial(q, search).try_value(std::move(c), merged(q, parts, merge.factor));
    }
}

}  // namespace shardproof::diagnosis
