#include "golden/scalar/order.h"

#include <cmath>

#include "golden/scalar/adding.h"
#include "golden/scalar/term_order.h"
#include "oracle/functions.h"

namespace shardproof::scalar {
namespace {

/// Additions on f32, and what a hop takes along.
struct Rounded {
  bool rounds_sums = false;  ///< to bf16
  bool rounds_hops = false;

  float plus(float a, float b) const { return rounds_sums ? oracle::bf16(a + b) : a + b; }
  float hop(float sum) const { return rounds_hops ? oracle::bf16(sum) : sum; }
};

}  // namespace

Value contraction(const Op& op, const std::vector<const Value*>& args, const Setting& setting) {
  const auto& terms = op.spec.terms;
  Value out;
  std::int64_t count = 1;
  for (char letter : terms[0].result) {
    out.shape.push_back(extent(args[0]->layout.find(letter) ? *args[0] : *args[1], letter));
    count *= out.shape.back();
  }
  require_placed(op, args, setting.torus);
  for_each_place(op.results[0].layout.partial(), setting.torus, [&](const Place& place) {
    std::vector<TermOrder> orders;
    // Whose element it is matters where chips take their terms in different orders.
    bool ring = false;
    std::vector<std::vector<std::int64_t>> strides;  // of every operand, by dim of the result
    for (std::size_t t = 0; t < terms.size(); ++t) {
      orders.emplace_back(op, t, args, setting.torus, place);
      ring = ring || !orders.back().ring.empty();
      for (const Value* operand : {args[2 * t], args[2 * t + 1]}) {
        strides.emplace_back();
        for (char letter : terms[t].result) strides.back().push_back(stride(*operand, letter));
      }
    }
    std::vector<float>& part = out.parts.emplace_back(static_cast<std::size_t>(count));
    for (std::int64_t element = 0; element < count; ++element) {
      const Place chip =
          ring ? holder(op.results[0].layout, out.shape, setting.torus, element) : Place{};
      float chain = 0.0F;
      for (std::size_t t = 0; t < terms.size(); ++t) {
        const Value& a = *args[2 * t];
        const Value& b = *args[2 * t + 1];
        std::int64_t rest = element;
        std::int64_t at_a = 0;
        std::int64_t at_b = 0;
        for (std::size_t d = out.shape.size(); d-- > 0; rest /= out.shape[d]) {
          at_a += rest % out.shape[d] * strides[2 * t][d];
          at_b += rest % out.shape[d] * strides[2 * t + 1][d];
        }
        const float* const row = a.whole().data() + at_a;
        const float* const column = b.whole().data() + at_b;
        const Owned& owned =
            orders[t]
                .of_chip[static_cast<std::size_t>(block_over(orders[t].ring, setting.torus, chip))];
        for (std::size_t k = 0; k < owned.a.size(); ++k) {
          chain = std::fma(row[owned.a[k]], column[owned.b[k]], chain);
          if (setting.acc_bf16) chain = oracle::bf16(chain);
        }
      }
      part[static_cast<std::size_t>(element)] = chain;
    }
  });
  return out;
}

Value reduction(const Op& op, const Value& t, const Setting& setting) {
  const Torus& torus = setting.torus;
  const std::int64_t K = torus.size(op.axes);
  Value out{{}, t.shape, {}, {}};
  const Loop way = way_round(op, setting);
  // On the wire are what each hop of a ring takes along, else all terms; of one chip nothing.
  const bool sent = setting.wire_bf16 && K > 1;
  const Adding<float, Rounded> adding{{setting.acc_bf16, sent && way != Loop::none}};
  for_each_place(op.results[0].layout.partial(), torus, [&](const Place& place) {
    const auto summed = members(op, t, torus, place);
    std::vector<float>& part = out.parts.emplace_back(summed[0]->size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      std::vector<float> terms;
      for (const auto* member : summed)
        terms.push_back(sent && way == Loop::none ? oracle::bf16((*member)[i]) : (*member)[i]);
      const InRing at = way == Loop::none
                            ? InRing{}
                            : in_ring(op, t.shape, torus, K, static_cast<std::int64_t>(i));
      part[i] = adding.sum(std::move(terms), way, setting.schedule, at);
      // The second half of an all_reduce hands the finished sum round.
      if (sent && op.kind == OpKind::all_reduce) part[i] = oracle::bf16(part[i]);
    }
  });
  return out;
}

}  // namespace shardproof::scalar
