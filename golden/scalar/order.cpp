#include "golden/scalar/order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "golden/scalar/chains.h"
#include "golden/scalar/detail/adding.h"
#include "golden/scalar/term_order.h"
#include "oracle/numeric/detail/functions.h"

namespace shardproof::scalar {
namespace {

/// Adjacent elements that are each summed in the same order.
using Neighbours = std::array<float, 32>;

/// Additions in f32, and the rounding of values that a ring sends.
struct Rounded {
  bool rounds_sums = false;  ///< to bf16
  bool rounds_hops = false;

  Neighbours plus(const Neighbours& a, const Neighbours& b) const {
    Neighbours sum;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
    return rounds_sums ? rounded(sum) : sum;
  }
  Neighbours hop(const Neighbours& sum) const { return rounds_hops ? rounded(sum) : sum; }

  static Neighbours rounded(Neighbours numbers) {
    for (float& v : numbers) v = oracle::bf16(v);
    return numbers;
  }
};

/// Chains of fma from +0, computed together.
class SideBySide {
 public:
  static constexpr std::size_t kMost = 64;

  SideBySide(bool acc_bf16, std::vector<float>& to) : acc_bf16_(acc_bf16), to_(to) {}

  void start(std::size_t) { sums_.fill(0.0F); }
  void add(std::size_t n, const float* left, const float* right, std::size_t width) {
    std::size_t k = 0;
    // Add four terms of each chain, in order, before its sum goes back to memory.
    for (; k + 4 <= n && !acc_bf16_; k += 4, right += 4 * width) {
      const float a0 = left[k], a1 = left[k + 1], a2 = left[k + 2], a3 = left[k + 3];
      const float* const b1 = right + width;
      const float* const b2 = b1 + width;
      const float* const b3 = b2 + width;
      for (std::size_t c = 0; c < width; ++c) {
        float sum = std::fma(a0, right[c], sums_[c]);
        sum = std::fma(a1, b1[c], sum);
        sum = std::fma(a2, b2[c], sum);
        sums_[c] = std::fma(a3, b3[c], sum);
      }
    }
    for (; k < n; ++k, right += width)
      for (std::size_t c = 0; c < width; ++c) {
        const float sum = std::fma(left[k], right[c], sums_[c]);
        sums_[c] = acc_bf16_ ? oracle::bf16(sum) : sum;
      }
  }
  void finish(std::int64_t row, std::span<const std::int64_t> columns) {
    for (std::size_t c = 0; c < columns.size(); ++c)
      to_[static_cast<std::size_t>(row + columns[c])] = sums_[c];
  }

 private:
  bool acc_bf16_;
  std::vector<float>& to_;
  std::array<float, kMost> sums_;
};

}  // namespace

Value contraction(const Op& op, const std::vector<const Value*>& args, const Setting& setting) {
  Value out;
  for (char letter : op.spec.terms[0].result)
    out.shape.push_back(extent(args[0]->layout.find(letter) ? *args[0] : *args[1], letter));
  require_placed(op, args, setting.torus);
  for_each_place(op.results[0].layout.partial(), setting.torus, [&](const Place& place) {
    std::vector<float>& part =
        out.parts.emplace_back(static_cast<std::size_t>(element_count(out.shape)));
    Chains(op, args, setting, place, out.shape).each<float, SideBySide::kMost>(setting.by(), [&] {
      return SideBySide(setting.acc_bf16, part);
    });
  });
  return out;
}

Value reduction(const Op& op, const Value& t, const Setting& setting) {
  const Torus& torus = setting.torus;
  const std::int64_t K = torus.size(op.axes);
  Value out{{}, t.shape, {}, {}};
  const Loop way = way_round(op, setting);
  // A ring sends the sum at each hop, other schedules all terms; a group of one chip nothing.
  const bool sent = setting.wire_bf16 && K > 1;
  const Adding<Neighbours, Rounded> adding{{setting.acc_bf16, sent && way != Loop::none}};
  for_each_place(op.results[0].layout.partial(), torus, [&](const Place& place) {
    const auto summed = members(op, t, torus, place);
    std::vector<float>& part = out.parts.emplace_back(summed[0]->size());
    each_in_ring(op, t.shape, setting, way, std::tuple_size_v<Neighbours>,
                 std::vector<Neighbours>(summed.size()),
                 [&](std::int64_t from, std::int64_t n, const InRing& at, auto& terms) {
                   for (std::size_t m = 0; m < terms.size(); ++m) {
                     std::copy_n(summed[m]->begin() + from, n, terms[m].begin());
                     if (sent && way == Loop::none) terms[m] = Rounded::rounded(terms[m]);
                   }
                   Neighbours sums = adding.sum(terms, way, setting.schedule, at);
                   // The second phase of an all_reduce sends the finished sum.
                   if (sent && op.kind == OpKind::all_reduce) sums = Rounded::rounded(sums);
                   std::copy_n(sums.begin(), n, part.begin() + from);
                 });
  });
  return out;
}

}  // namespace shardproof::scalar
