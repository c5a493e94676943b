#include "golden/scalar/order.h"

#include <fmt/format.h>

#include <cmath>

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

/// The offsets in a term's operands of its contracted elements that a place owns, in their order.
struct Owned {
  std::vector<std::int64_t> a{0}, b{0};

  Owned(const EinsumSpec::Term& term, const Value& of_a, const Value& of_b, const Torus& torus,
        const Place& place) {
    for (char letter : term.a) {
      if (term.b.find(letter) == std::string::npos || term.result.find(letter) != std::string::npos)
        continue;
      std::int64_t block = 0;
      std::int64_t blocks = 1;
      for (Axis axis : of_a.layout.axes(letter)) {
        block = block * torus.size(axis) + place[axis];
        blocks *= torus.size(axis);
      }
      const std::int64_t length = extent(of_a, letter) / blocks;
      std::vector<std::int64_t> next_a, next_b;
      for (std::size_t i = 0; i < a.size(); ++i)
        for (std::int64_t k = block * length; k < (block + 1) * length; ++k) {
          next_a.push_back(a[i] + k * stride(of_a, letter));
          next_b.push_back(b[i] + k * stride(of_b, letter));
        }
      a = std::move(next_a);
      b = std::move(next_b);
    }
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

/// The sum of a reduction's terms. On the wire are every term (group, tree) or what a hop of the
/// ring takes along; a group of one chip sends nothing.
float sum(const Setting& setting, std::vector<float> terms, std::int64_t chunk) {
  const auto K = static_cast<std::int64_t>(terms.size());
  const bool sent = setting.wire_bf16 && K > 1;
  const auto at = [&](std::int64_t i) { return terms[static_cast<std::size_t>(i)]; };
  const auto plus = [&](float a, float b) {
    return setting.acc_bf16 ? oracle::bf16(a + b) : a + b;
  };
  if (sent && setting.schedule != Schedule::ring)
    for (float& term : terms) term = oracle::bf16(term);
  switch (setting.schedule) {
    case Schedule::group: {
      float total = at(0);
      for (std::int64_t i = 1; i < K; ++i) total = plus(total, at(i));
      return total;
    }
    case Schedule::ring: {  // the owner's right neighbour starts, the owner comes last
      float total = at((chunk + 1) % K);
      for (std::int64_t hop = 2; hop <= K; ++hop)
        total = plus(sent ? oracle::bf16(total) : total, at((chunk + hop) % K));
      return total;
    }
    case Schedule::tree: {
      while (terms.size() > 1) {
        std::vector<float> above;
        for (std::size_t i = 0; i < terms.size(); i += 2)
          above.push_back(i + 1 < terms.size() ? plus(terms[i], terms[i + 1]) : terms[i]);
        terms = std::move(above);
      }
      return terms[0];
    }
  }
  return 0.0F;
}

/// The chunk of a global element in the ring of `op`: of a reduce_scatter the block it goes to, of
/// an all_reduce ⌊i·K/n⌋ for its place i among the n elements of a shard.
std::int64_t ring_chunk(const Op& op, const Shape& shape, const Torus& torus, std::int64_t K,
                        std::int64_t element) {
  const Layout& layout = op.results[0].layout;
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) at[d] = element % shape[d];
  if (op.kind == OpKind::reduce_scatter) {
    const std::size_t d = layout.find(op.dim).value();
    const std::int64_t blocks = torus.size(layout.dims()[d].axes);
    std::int64_t block = at[d] / (shape[d] / blocks);
    Place place;
    const Axes& axes = layout.dims()[d].axes;
    for (const Axis* axis = axes.end(); axis-- != axes.begin(); block /= torus.size(*axis))
      place[*axis] = block % torus.size(*axis);
    std::int64_t chunk = 0;
    for (Axis axis : op.axes) chunk = chunk * torus.size(axis) + place[axis];
    return chunk;
  }
  std::int64_t i = 0;
  std::int64_t n = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t held = shape[d] / torus.size(layout.dims()[d].axes);
    i = i * held + at[d] % held;
    n *= held;
  }
  return i * K / n;
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
    std::vector<Owned> owned;
    for (std::size_t t = 0; t < terms.size(); ++t)
      owned.emplace_back(terms[t], *args[2 * t], *args[2 * t + 1], setting.torus, place);
    std::vector<float>& part = out.parts.emplace_back(static_cast<std::size_t>(count));
    for (std::int64_t element = 0; element < count; ++element) {
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
        for (std::size_t k = 0; k < owned[t].a.size(); ++k) {
          chain = std::fma(row[owned[t].a[k]], column[owned[t].b[k]], chain);
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
      const std::int64_t chunk =
          setting.schedule == Schedule::ring
              ? ring_chunk(op, t.shape, torus, K, static_cast<std::int64_t>(i))
              : 0;
      part[i] = sum(setting, std::move(terms), chunk);
      // The second half of an all_reduce hands the finished sum round.
      if (setting.wire_bf16 && K > 1 && op.kind == OpKind::all_reduce)
        part[i] = oracle::bf16(part[i]);
    }
  });
  return out;
}

}  // namespace shardproof::scalar
