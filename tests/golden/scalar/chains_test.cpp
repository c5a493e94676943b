// Chains that are added up side by side are those that are added up one by one, and so are their
// bounds: for every order, by one thread or several.
#include "golden/scalar/chains.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "golden/bounds/number/detail/running.h"
#include "golden/bounds/op/sums.h"
#include "golden/scalar/detail/adding.h"
#include "golden/scalar/order.h"
#include "golden/scalar/ring_place.h"
#include "tests/engine/random_layout.h"
#include "weights/base/bf16.h"

namespace shardproof::scalar {
namespace {

double wide(float v) { return static_cast<double>(v); }

/// An einsum with its operands.
struct Sample {
  Op op;
  Torus torus;
  std::vector<Value> values;
  std::vector<const Value*> args;
  Shape shape;  // of the result
};

struct Spec {
  const char* text;
  char contracted;   // the letter that may be cut, and go round a ring
  char left, right;  // letters of the result that may be cut
};
constexpr Spec kSpecs[] = {{"BLE,EF->BLF", 'E', 'B', 'F'},
                           {"BLHQ,HQE->BLE", 'H', 'B', 'E'},
                           {"BLF,FE->BLE + BLHQ,HQE->BLE", 'F', 'B', 'E'},
                           {"BLE,BLE->BL", 'E', 'B', 0},
                           {"BE,VE->BV", 'E', 'B', 'V'}};

/// Floats of all sizes about 2^exponent, some of them zeros.
float draw_float(std::uint64_t& state, int exponent = 0) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  const auto bits = static_cast<std::uint32_t>(state >> 32);
  if (bits % 13 == 0) return 0.0F;
  return std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F,
                    static_cast<int>(bits % 40) - 20 + exponent);
}

/// What a sample is made of.
struct Making {
  Torus torus;
  Spec spec;
  std::vector<Axes> bins;       // of no letter, the contracted, the left and the right one
  std::int64_t contracted = 2;  // extent of a chip's block over the number of chips
  std::int64_t right = 3;       // columns of a chip
  int exponent = 0;             // of the factors
  std::uint64_t seed = 0;
  Loop loop = Loop::none;
};

/// Sums whose terms are so small that what they lose is subnormal.
constexpr int kSubnormal = -75;

Making draw_making() {
  return {.torus = draw_torus(),
          .spec = kSpecs[draw_int(0, 4)],
          .bins = draw_bins(4),
          .contracted = draw_int(1, 3),
          // Columns enough for several panels now and then.
          .right = draw_int(0, 3) == 0 ? 23 : 3,
          .exponent = draw_int(0, 3) == 0 ? kSubnormal : 0,
          .seed = static_cast<std::uint64_t>(draw_int(0, 1 << 20)),
          .loop = *rc::gen::element(Loop::none, Loop::one_way, Loop::both_full, Loop::both_half)};
}

Sample made(const Making& of) {
  Sample s;
  s.torus = of.torus;
  const Spec& spec = of.spec;
  const std::vector<Axes>& bins = of.bins;
  s.op.kind = OpKind::einsum;
  s.op.spec = EinsumSpec::parse(spec.text);
  const auto axes = [&](char letter) {
    return letter == spec.contracted                    ? bins[1]
           : letter == spec.left                        ? bins[2]
           : letter == spec.right && spec.right != '\0' ? bins[3]
                                                        : Axes();
  };
  const auto extent_of = [&](char letter) -> std::int64_t {
    return s.torus.size(axes(letter)) * (letter == spec.contracted ? of.contracted * s.torus.chips()
                                         : letter == spec.right    ? of.right
                                                                   : 2);
  };
  std::uint64_t state = of.seed;
  const auto layout_of = [&](const std::string& letters) {
    std::vector<Layout::Dim> dims;
    for (const char letter : letters) dims.push_back({letter, axes(letter)});
    return Layout(dims, Axes());
  };
  for (const EinsumSpec::Term& term : s.op.spec.terms)
    for (const std::string& letters : {term.a, term.b}) {
      Value v;
      v.layout = layout_of(letters);
      for (const char letter : letters) v.shape.push_back(extent_of(letter));
      v.parts.emplace_back(static_cast<std::size_t>(element_count(v.shape)));
      for (float& x : v.parts[0]) x = draw_float(state, of.exponent);
      s.values.push_back(std::move(v));
    }
  ValueDecl& result = s.op.results.emplace_back();
  const std::string& letters = s.op.spec.terms[0].result;
  result.layout = layout_of(letters).with_partial(bins[1]);
  for (const char letter : letters) s.shape.push_back(extent_of(letter));
  // Chunks of the contracted letter that come round a ring, of axes that another letter is cut by.
  const Axes ring = bins[2].size() > 0 ? bins[2] : bins[3];
  if (of.loop != Loop::none && ring.size() > 0) {
    const std::size_t arg = bins[2].size() > 0 ? 1 : 0;
    s.values[arg].ring_dim = spec.contracted;
    s.values[arg].ring = ring;
    s.values[arg].loop = of.loop;
    s.op.looped = {arg};
  }
  return s;
}

/// Calls see(part, element, a, b) with the factors of each chain in their order.
template <class See>
void one_by_one(const Sample& s, See&& see) {
  std::size_t part = 0;
  for_each_place(s.op.results[0].layout.partial(), s.torus, [&](const Place& place) {
    std::vector<TermOrder> orders;
    for (std::size_t t = 0; t < s.op.spec.terms.size(); ++t)
      orders.emplace_back(s.op, t, s.args, s.torus, place);
    for (std::int64_t element = 0; element < element_count(s.shape); ++element) {
      const Place chip = holder(s.op.results[0].layout, s.shape, s.torus, element);
      std::vector<float> a, b;
      for (std::size_t t = 0; t < orders.size(); ++t) {
        const OwnedTerms& owned =
            orders[t].of_chip[static_cast<std::size_t>(block_over(orders[t].ring, s.torus, chip))];
        std::int64_t rest = element, at_a = 0, at_b = 0;
        for (std::size_t d = s.shape.size(); d-- > 0; rest /= s.shape[d]) {
          const char letter = s.op.spec.terms[t].result[d];
          at_a += rest % s.shape[d] * stride(*s.args[2 * t], letter);
          at_b += rest % s.shape[d] * stride(*s.args[2 * t + 1], letter);
        }
        for (std::size_t k = 0; k < owned.a.size(); ++k) {
          a.push_back(s.args[2 * t]->whole()[static_cast<std::size_t>(at_a + owned.a[k])]);
          b.push_back(s.args[2 * t + 1]->whole()[static_cast<std::size_t>(at_b + owned.b[k])]);
        }
      }
      see(part, static_cast<std::size_t>(element), a, b);
    }
    ++part;
  });
}

/// The bound of docs/numerics.md section 10.2, operation by operation.
bounds::Interval bound_of(const std::vector<float>& a, const std::vector<float>& b,
                          const bounds::Step& step) {
  double sum = 0.0, error = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double most = (std::abs(sum) + error) * (1 + 2 * step.unit);
    const double power = bounds::power_below(most) * 0x1p896;
    error = error + (step.unit * 0x1p-896 * power + (0x1p-51 * most + step.least));
    sum += wide(a[k]) * wide(b[k]);
  }
  return bounds::interval_of(bounds::Running{sum, error}, static_cast<double>(a.size()));
}

/// Calls see(sum, bound) for each element: whether those of chains side by side are those of a
/// chain by itself; and for the shape and the count of elements.
template <class See>
void compare_chains(const Making& making, bool acc_bf16, Threads* threads, See&& see) {
  Sample s = made(making);
  for (const Value& v : s.values) s.args.push_back(&v);
  const ModelConfig config;
  Setting setting{.config = config, .torus = s.torus};
  setting.acc_bf16 = acc_bf16;
  setting.threads = threads;
  const Value sums = contraction(s.op, s.args, setting);
  const bounds::Bounds of = bounds::bounds_of_contraction(s.op, s.args, setting);
  const bounds::Step step = acc_bf16 ? bounds::Step::bf16() : bounds::Step::f32();
  std::size_t seen = 0;
  one_by_one(s, [&](std::size_t part, std::size_t i, const std::vector<float>& a,
                    const std::vector<float>& b) {
    float chain = 0.0F;
    for (std::size_t k = 0; k < a.size(); ++k) {
      chain = std::fma(a[k], b[k], chain);
      if (acc_bf16) chain = round_to_bf16(chain);
    }
    const bounds::Interval wanted = bound_of(a, b, step), bound = of.parts.at(part).at(i);
    see(std::bit_cast<std::uint32_t>(sums.parts.at(part).at(i)) ==
            std::bit_cast<std::uint32_t>(chain),
        wanted.low == bound.low && wanted.high == bound.high);
    ++seen;
  });
  see(sums.shape == s.shape && sums.parts.size() == of.parts.size(),
      seen == sums.parts.size() * sums.parts[0].size());
}

RC_GTEST_PROP(Chains, SideBySideAreThoseOneByOne, ()) {
  static Threads threads(3);
  compare_chains(draw_making(), draw_int(0, 3) == 0, draw_int(0, 1) == 0 ? nullptr : &threads,
                 [](bool sum, bool bound) {
                   RC_ASSERT(sum);
                   RC_ASSERT(bound);
                 });
}

// Of one chip: one column more than are added up at once, and terms besides those of fours.
TEST(Chains, OfMoreColumnsAndTermsThanAreAddedAtOnce) {
  for (const Spec& spec : kSpecs)
    for (const int exponent : {0, kSubnormal})
      for (const bool acc_bf16 : {false, true})
        compare_chains({.torus = Torus(1, 1, 1),
                        .spec = spec,
                        .bins = std::vector<Axes>(4),
                        .contracted = 7,
                        .right = 65,
                        .exponent = exponent},
                       acc_bf16, nullptr, [&](bool sum, bool bound) {
                         ASSERT_TRUE(sum) << spec.text << exponent << acc_bf16;
                         ASSERT_TRUE(bound) << spec.text << exponent << acc_bf16;
                       });
}

/// A sum in a reduction's order, of one element.
struct One {
  float plus(float a, float b) const { return a + b; }
  float hop(float sum) const { return sum; }
};

RC_GTEST_PROP(Reductions, SideBySideAreThoseOneByOne, ()) {
  static Threads threads(3);
  const Torus torus = draw_torus();
  const std::vector<Axes> bins = draw_bins(4);
  const Axes summed = bins[1];
  if (summed.size() == 0) RC_DISCARD("nothing is summed");
  Op op;
  op.kind = draw_int(0, 1) == 0 ? OpKind::all_reduce : OpKind::reduce_scatter;
  op.axes = summed;
  op.dim = 'E';
  op.loop = *rc::gen::element(Loop::none, Loop::one_way, Loop::both_full, Loop::both_half);
  const Layout before({{'B', bins[2]}, {'E', bins[3]}}, summed);
  Axes after = bins[3];
  if (op.kind == OpKind::reduce_scatter)
    for (const Axis axis : summed) after = after.with(axis);
  Value t;
  t.layout = before;
  t.shape = {torus.size(bins[2]) * draw_int(1, 3),
             torus.size(after) * draw_int(1, draw_int(0, 3) == 0 ? 400 : 5)};
  std::uint64_t state = static_cast<std::uint64_t>(draw_int(0, 1 << 20));
  for_each_place(summed, torus, [&](const Place&) {
    std::vector<float>& part =
        t.parts.emplace_back(static_cast<std::size_t>(element_count(t.shape)));
    for (float& v : part) v = draw_float(state);
  });
  op.results.emplace_back().layout = Layout({{'B', bins[2]}, {'E', after}}, Axes());
  const ModelConfig config;
  Setting setting{.config = config, .torus = torus};
  setting.schedule =
      *rc::gen::element(Schedule::group, Schedule::tree, Schedule::ring, Schedule::biring);
  setting.threads = draw_int(0, 1) == 0 ? nullptr : &threads;
  const Value sums = reduction(op, t, setting);
  const bounds::Bounds of = bounds::bounds_of_reduction(op, t, setting);
  const Loop way = way_round(op, setting);
  const auto parts = members(op, t, torus, Place{});
  RC_ASSERT(sums.parts.size() == 1U);
  RC_ASSERT(sums.whole().size() == t.parts[0].size());
  for (std::size_t i = 0; i < sums.whole().size(); ++i) {
    std::vector<float> terms;
    std::vector<bounds::Growing> growing;
    for (const std::vector<float>* part : parts) {
      terms.push_back((*part)[i]);
      growing.push_back({{wide(terms.back())}});
    }
    const InRing at = way == Loop::none ? InRing{}
                                        : in_ring(op, t.shape, torus, torus.size(op.axes),
                                                  static_cast<std::int64_t>(i));
    const float sum = Adding<float, One>{}.sum(terms, way, setting.schedule, at);
    RC_ASSERT(std::bit_cast<std::uint32_t>(sums.whole()[i]) == std::bit_cast<std::uint32_t>(sum));
    const bounds::Interval wanted = bounds::interval_of(
        Adding<bounds::Growing, bounds::GrowingSums>{}.sum(growing, way, setting.schedule, at));
    RC_ASSERT(of.parts.at(0).at(i).low == wanted.low);
    RC_ASSERT(of.parts.at(0).at(i).high == wanted.high);
  }
}

}  // namespace
}  // namespace shardproof::scalar
