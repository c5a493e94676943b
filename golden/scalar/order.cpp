#include "golden/scalar/order.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <numeric>

#include "oracle/functions.h"
#include "weights/error.h"

namespace shardproof::scalar {
namespace {

/// The elements apart of one dim's neighbours; 0 where the value lacks the dim.
std::int64_t stride(const Value& t, char letter) {
  const auto at = t.layout.find(letter);
  if (!at) return 0;
  std::int64_t n = 1;
  for (std::size_t d = *at + 1; d < t.shape.size(); ++d) n *= t.shape[d];
  return n;
}

std::int64_t extent(const Value& t, char letter) { return t.shape[*t.layout.find(letter)]; }

/// A range of a chip's own indices of one dim.
struct Range {
  std::int64_t from, to;
};

/// The chunks of a looped dim, or halves of them, as they come to chip j of a ring of K: `n`
/// indices each.
std::vector<Range> as_they_come(Loop loop, std::int64_t K, std::int64_t j, std::int64_t n) {
  std::vector<Range> order{{j * n, j * n + n}};
  const std::int64_t half = n - n / 2;
  std::int64_t left = (j + K - 1) % K;  // whose chunk came from the left last
  std::int64_t right = (j + 1) % K;
  for (std::int64_t used = 1; used < K; left = (left + K - 1) % K, right = (right + 1) % K) {
    if (loop == Loop::both_half) {  // each chunk comes in halves, from two sides
      order.push_back({left * n, left * n + half});
      order.push_back({right * n + half, right * n + n});
      ++used;
      continue;
    }
    order.push_back({left * n, left * n + n});
    ++used;
    if (loop == Loop::both_full && used < K) {
      order.push_back({right * n, right * n + n});
      ++used;
    }
  }
  return order;
}

/// The offsets in a term's operands of its contracted elements that a place owns, in their order:
/// of `looped` (a contracted letter, or none) range after range.
struct Owned {
  std::vector<std::int64_t> a, b;

  Owned(const EinsumSpec::Term& term, const Value& of_a, const Value& of_b, const Torus& torus,
        const Place& place, char looped = 0, const std::vector<Range>& ranges = {{0, 0}}) {
    for (const Range& range : ranges) {
      std::vector<std::int64_t> in_a{0}, in_b{0};
      for (char letter : term.a) {
        if (term.b.find(letter) == std::string::npos ||
            term.result.find(letter) != std::string::npos)
          continue;
        std::int64_t block = 0;
        std::int64_t blocks = 1;
        for (Axis axis : of_a.layout.axes(letter)) {
          block = block * torus.size(axis) + place[axis];
          blocks *= torus.size(axis);
        }
        const std::int64_t length = extent(of_a, letter) / blocks;
        const std::int64_t from = letter == looped ? range.from : 0;
        const std::int64_t to = letter == looped ? range.to : length;
        std::vector<std::int64_t> next_a, next_b;
        for (std::size_t i = 0; i < in_a.size(); ++i)
          for (std::int64_t k = block * length + from; k < block * length + to; ++k) {
            next_a.push_back(in_a[i] + k * stride(of_a, letter));
            next_b.push_back(in_b[i] + k * stride(of_b, letter));
          }
        in_a = std::move(next_a);
        in_b = std::move(next_b);
      }
      a.insert(a.end(), in_a.begin(), in_a.end());
      b.insert(b.end(), in_b.begin(), in_b.end());
    }
  }
};

/// The places on the axes of a layout whose chips hold a global element.
Place holder(const Layout& layout, const Shape& shape, const Torus& torus, std::int64_t element) {
  Place place;
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) {
    const Axes& axes = layout.dims()[d].axes;
    std::int64_t block = element % shape[d] / (shape[d] / torus.size(axes));
    for (const Axis* axis = axes.end(); axis-- != axes.begin(); block /= torus.size(*axis))
      place[*axis] = block % torus.size(*axis);
  }
  return place;
}

/// The block that a place has over some axes, major to minor.
std::int64_t block_over(const Axes& axes, const Torus& torus, const Place& place) {
  std::int64_t block = 0;
  for (Axis axis : axes) block = block * torus.size(axis) + place[axis];
  return block;
}

/// A term whose contracted elements come in an order of its own to each chip of a ring: that of
/// every place on the ring.
struct TermOrder {
  Axes ring;
  std::vector<Owned> of_chip;  ///< one without a ring

  TermOrder(const Op& op, std::size_t t, const std::vector<const Value*>& args, const Torus& torus,
            const Place& place) {
    const EinsumSpec::Term& term = op.spec.terms[t];
    const Value& a = *args[2 * t];
    const Value& b = *args[2 * t + 1];
    const Value* looped = nullptr;
    for (const std::size_t arg : op.looped)
      if (arg / 2 == t) looped = args[arg];
    if (looped == nullptr || looped->loop == Loop::none ||
        EinsumSpec::contracted(term).find(looped->ring_dim) == std::string::npos) {
      of_chip.emplace_back(term, a, b, torus, place);
      return;
    }
    ring = looped->ring;
    const std::int64_t K = torus.size(ring);
    const char dim = looped->ring_dim;
    const std::int64_t n = extent(a, dim) / torus.size(a.layout.axes(dim)) / K;
    for (std::int64_t j = 0; j < K; ++j)
      of_chip.emplace_back(term, a, b, torus, place, dim, as_they_come(looped->loop, K, j, n));
  }
};

/// Whose shards the chips of a place hold must follow from the place alone.
void require_placed(const Op& op, const EinsumSpec::Term& term, const Value& a, const Value& b,
                    const Torus& torus) {
  for (char letter : EinsumSpec::contracted(term)) {
    bool placed = a.layout.axes(letter) == b.layout.axes(letter);
    for (Axis axis : a.layout.axes(letter))
      placed = placed && (torus.size(axis) == 1 || op.results[0].layout.partial().has(axis));
    if (!placed)
      throw Error("scalar_c2",
                  fmt::format("{}: no order of {} is defined for {} and {}", op.to_string(), letter,
                              a.layout.to_string(), b.layout.to_string()));
  }
}

/// The sums of a reduction's partials: what its additions make, and what a hop takes along.
struct Adding {
  bool rounds_sums = false;  ///< to bf16
  bool rounds_hops = false;

  float plus(float a, float b) const { return rounds_sums ? oracle::bf16(a + b) : a + b; }
  float hop(float sum) const { return rounds_hops ? oracle::bf16(sum) : sum; }

  float in_turn(const std::vector<float>& terms, const std::vector<std::int64_t>& order) const {
    float total = terms[static_cast<std::size_t>(order.front())];
    for (std::size_t i = 1; i < order.size(); ++i)
      total = plus(hop(total), terms[static_cast<std::size_t>(order[i])]);
    return total;
  }

  /// A chunk's sum that goes round a ring and ends on its owner, chip c of K. Halved, the two
  /// halves go round in opposite ways; both ways at once, two sums meet at the owner.
  float ring_sum(Loop loop, const std::vector<float>& terms, std::int64_t c,
                 bool second_half) const {
    const auto K = static_cast<std::int64_t>(terms.size());
    std::vector<std::int64_t> order;
    if (loop != Loop::both_full) {
      const std::int64_t next = loop == Loop::both_half && second_half ? K - 1 : 1;
      for (std::int64_t chip = (c + next) % K; std::ssize(order) < K; chip = (chip + next) % K)
        order.push_back(chip);
      return in_turn(terms, order);
    }
    // The owner last of those before it; of an even number of others the odd one is before it.
    for (std::int64_t before = K / 2; before >= 0; --before) order.push_back((c + K - before) % K);
    const float total = in_turn(terms, order);
    order.clear();
    for (std::int64_t behind = K - 1 - K / 2; behind >= 1; --behind)
      order.push_back((c + behind) % K);
    return order.empty() ? total : plus(total, hop(in_turn(terms, order)));
  }

  float tree_sum(std::vector<float> terms) const {
    while (terms.size() > 1) {
      std::vector<float> above;
      for (std::size_t i = 0; i < terms.size(); i += 2)
        above.push_back(i + 1 < terms.size() ? plus(terms[i], terms[i + 1]) : terms[i]);
      terms = std::move(above);
    }
    return terms[0];
  }
};

/// Where a global element is in the ring of a reduction.
struct InRing {
  std::int64_t chunk = 0;
  bool second_half = false;
};

/// Of a reduce_scatter the block it goes to, and the half of that; of an all_reduce ⌊i·K/n⌋ for its
/// place i among the n elements of a shard, and the half of those with the same.
InRing in_ring(const Op& op, const Shape& shape, const Torus& torus, std::int64_t K,
               std::int64_t element) {
  const Layout& layout = op.results[0].layout;
  if (op.kind == OpKind::reduce_scatter) {
    const std::size_t d = layout.find(op.dim).value();
    const std::int64_t n = shape[d] / torus.size(layout.dims()[d].axes);
    std::int64_t inner = 1;
    for (std::size_t later = d + 1; later < shape.size(); ++later) inner *= shape[later];
    return {block_over(op.axes, torus, holder(layout, shape, torus, element)),
            element / inner % shape[d] % n >= n - n / 2};
  }
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) at[d] = element % shape[d];
  std::int64_t i = 0;
  std::int64_t n = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t held = shape[d] / torus.size(layout.dims()[d].axes);
    i = i * held + at[d] % held;
    n *= held;
  }
  const std::int64_t chunk = i * K / n;
  // The least i with i·K ≥ chunk·n, and that of the next chunk.
  const std::int64_t from = (chunk * n + K - 1) / K;
  const std::int64_t alike = (chunk * n + n + K - 1) / K - from;
  return {chunk, i - from >= alike - alike / 2};
}

}  // namespace

Value contraction(const Op& op, const std::vector<const Value*>& args, const Setting& setting) {
  const auto& terms = op.spec.terms;
  Value out;
  std::int64_t count = 1;
  for (char letter : terms[0].result) {
    out.shape.push_back(extent(args[0]->layout.find(letter) ? *args[0] : *args[1], letter));
    count *= out.shape.back();
  }
  for (std::size_t t = 0; t < terms.size(); ++t)
    require_placed(op, terms[t], *args[2 * t], *args[2 * t + 1], setting.torus);
  for_each_place(op.results[0].layout.partial(), setting.torus, [&](const Place& place) {
    std::vector<TermOrder> orders;
    for (std::size_t t = 0; t < terms.size(); ++t)
      orders.emplace_back(op, t, args, setting.torus, place);
    std::vector<float>& part = out.parts.emplace_back(static_cast<std::size_t>(count));
    for (std::int64_t element = 0; element < count; ++element) {
      const Place chip = holder(op.results[0].layout, out.shape, setting.torus, element);
      float chain = 0.0F;
      for (std::size_t t = 0; t < terms.size(); ++t) {
        const Value& a = *args[2 * t];
        const Value& b = *args[2 * t + 1];
        std::int64_t rest = element;
        std::int64_t at_a = 0;
        std::int64_t at_b = 0;
        for (std::size_t d = out.shape.size(); d-- > 0; rest /= out.shape[d]) {
          at_a += rest % out.shape[d] * stride(a, terms[t].result[d]);
          at_b += rest % out.shape[d] * stride(b, terms[t].result[d]);
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
  for_each_place(op.results[0].layout.partial(), torus, [&](Place place) {
    std::vector<const std::vector<float>*> members;
    for (std::int64_t member = 0; member < K; ++member) {
      std::int64_t rest = member;
      for (const Axis* axis = op.axes.end(); axis-- != op.axes.begin(); rest /= torus.size(*axis))
        place[*axis] = rest % torus.size(*axis);
      members.push_back(&t.parts.at(part_of(t.layout.partial(), torus, place)));
    }
    std::vector<float>& part = out.parts.emplace_back(members[0]->size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      std::vector<float> terms;
      for (const auto* member : members) terms.push_back((*member)[i]);
      Loop loop = op.loop;
      if (loop == Loop::none && setting.schedule == Schedule::ring) loop = Loop::one_way;
      if (loop == Loop::none && setting.schedule == Schedule::biring) loop = Loop::both_half;
      // On the wire are what each hop of a ring takes along, else all terms; of one chip nothing.
      const bool sent = setting.wire_bf16 && K > 1;
      const Adding adding{setting.acc_bf16, sent && loop != Loop::none};
      if (sent && loop == Loop::none)
        for (float& term : terms) term = oracle::bf16(term);
      if (loop != Loop::none) {
        const InRing at = in_ring(op, t.shape, torus, K, static_cast<std::int64_t>(i));
        part[i] = adding.ring_sum(loop, terms, at.chunk, at.second_half);
      } else if (setting.schedule == Schedule::tree) {
        part[i] = adding.tree_sum(std::move(terms));
      } else {
        std::vector<std::int64_t> order(terms.size());
        std::iota(order.begin(), order.end(), 0);
        part[i] = adding.in_turn(terms, order);
      }
      // The second half of an all_reduce hands the finished sum round.
      if (sent && op.kind == OpKind::all_reduce) part[i] = oracle::bf16(part[i]);
    }
  });
  return out;
}

}  // namespace shardproof::scalar
