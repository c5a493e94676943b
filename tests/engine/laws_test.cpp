// The laws of the collectives, as properties over random tori, layouts and shapes. Each comes with
// a seeded fault that it is shown to catch wherever the fault can make a difference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/collectives.h"
#include "engine/einsum.h"
#include "engine/moves.h"
#include "tests/engine/hostile_terms.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/run_program.h"

namespace shardproof {
namespace {

Axes reversed(const Axes& axes) {
  Axes result;
  for (int i = axes.size(); i > 0; --i) result = result.with(*(axes.begin() + i - 1));
  return result;
}

/// Whether two orders of the same axes number some chip's block differently.
bool reorders(const Torus& torus, const Axes& a, const Axes& b) {
  for (int chip = 0; chip < torus.chips(); ++chip)
    if (torus.block(chip, a) != torus.block(chip, b)) return true;
  return false;
}

/// A layout of B, L and E on a torus; `letter` has at least one axis, `partial` may have some.
struct Setting {
  Torus torus = draw_torus();
  Layout layout;

  explicit Setting(char letter) {
    const std::string letters = "BLE";
    std::vector<Axes> bins(4);
    std::size_t bin = letters.find(letter) + 1;
    for (Axis a : draw_order()) {
      bins[bin] = bins[bin].with(a);
      bin = static_cast<std::size_t>(draw_int(0, 3));
    }
    layout = Layout({{'B', bins[1]}, {'L', bins[2]}, {'E', bins[3]}}, Axes());
    RC_CLASSIFY(torus.size(layout.axes(letter)) > 1, "group of more than one chip");
    RC_CLASSIFY(layout.axes(letter).size() > 1, "several axes in one dim");
  }

  Axes axes(char letter) const { return layout.axes(letter); }
  Tensor tensor() const { return tensor_of(draw_shape(torus, 3)); }
};

std::string call(const char* form, const auto&... values) {
  return fmt::format(fmt::runtime(form), values...);
}

// ---- moves of complete values: every one is a resharding of the same tensor

RC_GTEST_PROP(AllGatherLaw, IsTheTensorWithFewerAxes, ()) {
  const Setting s('E');
  const Axes axes = draw_suffix(s.axes('E'));
  const Tensor tensor = s.tensor();
  const Sharded t = shard(tensor, s.layout, s.torus);
  const std::string gather = call("all_gather(t, E, {})", axes.to_string());
  const Sharded out = run_op(gather, t);
  RC_ASSERT(same_bits(out, shard(tensor, out.layout, s.torus)));
  RC_ASSERT(assemble(out).data == tensor.data);

  if (s.torus.size(axes) > 1) RC_ASSERT(!same_bits(run_op(gather, t, true), out));
  if (reorders(s.torus, axes, reversed(axes))) {
    Threads one(1);
    const Moves wrong = all_gather_moves(s.torus, t.local(), 2, reversed(axes));
    RC_ASSERT(!same_bits(move(t, wrong, out.layout, out.shape, one), out));
  }
}

RC_GTEST_PROP(AllGatherLaw, OfEveryDimInvertsShard, ()) {
  const Setting s('E');
  const Tensor tensor = s.tensor();
  Sharded t = shard(tensor, s.layout, s.torus);
  for (char letter : {'B', 'L', 'E'})
    if (!s.axes(letter).empty())
      t = run_op(call("all_gather(t, {}, {})", letter, s.axes(letter).to_string()), t);
  for (const auto& chip : t.f32()) RC_ASSERT(chip == tensor.data);
}

RC_GTEST_PROP(AllToAllLaw, MovesAxesFromOneDimToTheOther, ()) {
  const Setting s('B');
  const Axes axes = draw_suffix(s.axes('B'));
  const Axes as = shuffled(axes);
  const Tensor tensor = s.tensor();
  const Sharded t = shard(tensor, s.layout, s.torus);
  const std::string there = call("all_to_all(t, B->E, {} as {})", axes.to_string(), as.to_string());
  const Sharded out = run_op(there, t);
  RC_ASSERT(same_bits(out, shard(tensor, out.layout, s.torus)));
  RC_ASSERT(same_bits(
      run_op(call("all_to_all(t, E->B, {} as {})", as.to_string(), axes.to_string()), out), t));
  RC_CLASSIFY(!(as == axes), "in another order");

  if (s.torus.size(axes) > 1) RC_ASSERT(!same_bits(run_op(there, t, true), out));
  if (reorders(s.torus, axes, as)) {  // `as` forgotten
    Threads one(1);
    const Moves wrong = all_to_all_moves(s.torus, t.local(), 0, 2, axes, axes);
    RC_ASSERT(!same_bits(move(t, wrong, out.layout, out.shape, one), out));
  }
}

RC_GTEST_PROP(PermuteAxesLaw, RenamesAndRoundTrips, ()) {
  const Setting s('E');
  const Axes axes = s.axes('E');
  const Axes as = shuffled(axes);
  const Tensor tensor = s.tensor();
  const Sharded t = shard(tensor, s.layout, s.torus);
  const std::string there = call("permute_axes(t, E, {}->{})", axes.to_string(), as.to_string());
  const Sharded out = run_op(there, t);
  RC_ASSERT(same_bits(out, shard(tensor, out.layout, s.torus)));
  RC_ASSERT(same_bits(
      run_op(call("permute_axes(t, E, {}->{})", as.to_string(), axes.to_string()), out), t));
  RC_CLASSIFY(reorders(s.torus, axes, as), "blocks move");

  if (reorders(s.torus, axes, as)) RC_ASSERT(!same_bits(run_op(there, t, true), out));
}

RC_GTEST_PROP(SliceLaw, AllGatherInvertsSlice, ()) {
  const Setting s('E');  // what E has here is what slice adds
  const Axes axes = s.axes('E');
  const Layout before = s.layout.with_axes(2, Axes());
  const Tensor tensor = s.tensor();
  const Sharded t = shard(tensor, before, s.torus);
  const Sharded out = run_op(call("slice(t, E, {})", axes.to_string()), t);
  RC_ASSERT(same_bits(out, shard(tensor, s.layout, s.torus)));
  RC_ASSERT(same_bits(run_op(call("all_gather(t, E, {})", axes.to_string()), out), t));

  if (reorders(s.torus, axes, reversed(axes))) {
    Threads one(1);
    const Moves wrong = slice_moves(s.torus, t.local(), 2, reversed(axes));
    RC_ASSERT(!same_bits(move(t, wrong, out.layout, out.shape, one), out));
  }
}

RC_GTEST_PROP(SplitDimLaw, IsAViewAndMergesBack, ()) {
  const Torus torus = draw_torus();
  const Layout layout = draw_layout("BHQ");
  const Axes axes = layout.axes('H');
  Axes major, minor;
  const int cut = draw_int(0, axes.size());
  for (int i = 0; i < axes.size(); ++i) {
    Axes& half = i < cut ? major : minor;
    half = half.with(*(axes.begin() + i));
  }
  const Tensor tensor = tensor_of(draw_shape(torus, 3));
  const Sharded t = shard(tensor, layout, torus);
  const auto dim = [](char letter, const Axes& of) {
    return Layout({{letter, of}}, Axes()).to_string();
  };
  const Sharded split = run_op(call("split_dim(t, H->{}{})", dim('S', major), dim('R', minor)), t);
  Tensor viewed = tensor;
  viewed.shape = split.shape;
  RC_ASSERT(split.shape[1] == torus.size(major));
  RC_ASSERT(split.f32() == t.f32());
  RC_ASSERT(same_bits(split, shard(viewed, split.layout, torus)));
  RC_ASSERT(same_bits(run_op("merge_dim(t, SR->H)", split), t));
  RC_CLASSIFY(torus.size(major) > 1 && torus.size(minor) > 1, "both halves sharded");

  // Were S longer than its blocks, the same memory would be another tensor: merge_dim_c3.
  if (torus.size(minor) > 1 && viewed.shape[2] % (2 * torus.size(minor)) == 0) {
    viewed.shape[1] *= 2;
    viewed.shape[2] /= 2;
    RC_ASSERT(shard(viewed, split.layout, torus).f32() != t.f32());
  }
}

// ---- partial sums

/// A partial of BLE: the contraction of a [BLF] and w [FE] whose F lies over the partial axes.
struct PartialSetting {
  Torus torus = draw_torus();
  Axes b, e, p;
  SharedValue a, w;

  /// Countable terms: element (r, e) is F·(r+1)·(1000e+1) and differs from any other and from the
  /// sum of fewer terms. Hostile ones make sums cancel, tie and spread.
  enum class Data { countable, hostile };

  explicit PartialSetting(Data data) {
    std::vector<Axes> bins(4);
    std::size_t bin = 3;
    for (Axis axis : draw_order()) {
      bins[bin] = bins[bin].with(axis);
      bin = static_cast<std::size_t>(draw_int(0, 3));
    }
    b = bins[1];
    e = bins[2];
    p = bins[3];
    const std::int64_t B = torus.chips();
    const std::int64_t L = draw_int(1, 2);
    const std::int64_t E = torus.chips() * draw_int(1, 2);
    Tensor ta, tw;
    if (data == Data::countable) {
      const std::int64_t F = torus.size(p) * draw_int(1, 2);
      ta = Tensor({B, L, F});
      tw = Tensor({F, E});
      for (std::int64_t i = 0; i < B * L * F; ++i)
        ta.data[static_cast<std::size_t>(i)] = static_cast<float>(i / F + 1);
      for (std::int64_t i = 0; i < F * E; ++i)
        tw.data[static_cast<std::size_t>(i)] = static_cast<float>(i % E * 1000 + 1);
    } else {
      HostileTerms draw(static_cast<std::uint64_t>(draw_int(0, 1 << 30)));
      const auto kind = *rc::gen::element(HostileTerms::Kind::normal, HostileTerms::Kind::ties,
                                          HostileTerms::Kind::cancelling);
      RC_TAG(HostileTerms::name(kind));
      const HostileMatrices m(draw, draw.draw(kind, 3 * torus.size(p)), B * L, E, torus.size(p));
      ta.shape = {B, L, m.K};
      ta.data = m.a;
      tw.shape = {m.K, E};
      tw.data = m.b;
    }
    a = shared(shard(ta, Layout({{'B', b}, {'L', {}}, {'F', p}}, {}), torus));
    w = shared(shard(tw, Layout({{'F', p}, {'E', e}}, {}), torus));
    RC_CLASSIFY(torus.size(p) > 1, "summed over more than one chip");
    RC_CLASSIFY(p.size() > 1, "partial over several axes");
  }

  SharedValue partial() const { return shared(run_op("einsum(BLF,FE->BLE; a, w)", {a, w})); }
};

using Data = PartialSetting::Data;

Sharded reduced(const Sharded& partial, const Axes& axes) {
  return run_op(call("all_reduce(t, {})", axes.to_string()), partial);
}

RC_GTEST_PROP(ReductionLaw, ReduceScatterIsSliceOfAllReduce, ()) {
  const PartialSetting s(*rc::gen::element(Data::countable, Data::hostile));
  const SharedValue t = s.partial();
  const std::string axes = shuffled(s.p).to_string();
  const std::string scatter = call("reduce_scatter(t, E, {})", axes);
  const Sharded out = run_op(scatter, {t});
  RC_ASSERT(same_bits(out, run_op(call("slice(t, E, {})", axes), reduced(*t, s.p))));
}

RC_GTEST_PROP(ReductionLaw, CatchesAReductionRemovedOrMisrouted, ()) {
  const PartialSetting s(Data::countable);
  const SharedValue t = s.partial();
  const Axes axes = shuffled(s.p);
  const std::string scatter = call("reduce_scatter(t, E, {})", axes.to_string());
  const std::string reduce_all = call("all_reduce(t, {})", axes.to_string());
  const Sharded out = run_op(scatter, {t});
  if (s.torus.size(axes) > 1) {
    RC_ASSERT(!same_bits(run_op(scatter, {t}, true), out));
    RC_ASSERT(!same_bits(run_op(reduce_all, {t}, true), run_op(reduce_all, {t})));
  }
  if (reorders(s.torus, axes, reversed(axes))) {
    Threads one(1);
    const Moves wrong = reduce_scatter_moves(s.torus, t->local(), 2, reversed(axes));
    RC_ASSERT(!same_bits(reduce(*t, wrong, out.layout, out.shape, one), out));
  }
}

RC_GTEST_PROP(ReductionLaw, TwoStepsAreOneStepBitForBit, ()) {
  const PartialSetting s(Data::hostile);
  const SharedValue t = s.partial();
  const Sharded once = reduced(*t, s.p);
  Sharded stepwise = *t;
  for (Axis a : shuffled(s.p)) stepwise = reduced(stepwise, Axes().with(a));
  RC_ASSERT(same_bits(stepwise, once));

  const Axes order = shuffled(s.p);
  Sharded scattered = *t;
  for (Axis a : order) scattered = run_op(call("reduce_scatter(t, E, {})", to_char(a)), scattered);
  RC_ASSERT(same_bits(scattered, run_op(call("reduce_scatter(t, E, {})", order.to_string()), {t})));
}

RC_GTEST_PROP(ReductionLaw, ATermThatArrivesTwiceCountsTwice, ()) {
  const PartialSetting s(Data::hostile);
  const SharedValue t = s.partial();
  Threads one(1);
  Moves doubled = all_reduce_moves(s.torus, t->local(), s.p);
  for (auto& pieces : doubled.pieces)
    pieces.insert(pieces.end(), pieces.begin(),
                  pieces.begin() + static_cast<std::ptrdiff_t>(pieces.size()));
  const Sharded once = reduced(*t, s.p);
  const Sharded twice = reduce(*t, doubled, once.layout, once.shape, one);
  for (std::size_t c = 0; c < once.f32().size(); ++c)
    for (std::size_t i = 0; i < once.f32()[c].size(); ++i)
      if (std::abs(once.f32()[c][i]) >= 0x1p-125F)  // below, doubling and rounding do not commute
        RC_ASSERT(twice.f32()[c][i] == 2 * once.f32()[c][i]);
}

/// A move of a random kind that is legal on B_bLE_e partialsum-p, of a group above one chip if
/// there is one.
std::string draw_move(const PartialSetting& s) {
  Axes unused;
  for (Axis a : Axes::parse("xyz"))
    if (!s.b.has(a) && !s.e.has(a) && !s.p.has(a)) unused = unused.with(a);
  std::vector<std::string> moves{"last(t)"};
  if (!s.e.empty()) {
    const std::string suffix = draw_suffix(s.e).to_string();
    moves = {call("all_gather(t, E, {})", suffix), call("all_to_all(t, E->B, {})", suffix),
             call("permute_axes(t, E, {}->{})", s.e.to_string(), reversed(s.e).to_string())};
  }
  if (!s.b.empty()) moves.push_back(call("all_to_all(t, B->E, {})", draw_suffix(s.b).to_string()));
  if (!unused.empty()) moves.push_back(call("slice(t, B, {})", shuffled(unused).to_string()));
  const std::string move = *rc::gen::elementOf(moves);
  RC_TAG(move.substr(0, move.find('(')));
  return move;
}

RC_GTEST_PROP(MovedPartialLaw, MovingThenReducingIsReducingThenMoving, ()) {
  const PartialSetting s(*rc::gen::element(Data::countable, Data::hostile));
  const std::string move = draw_move(s);
  const SharedValue t = s.partial();
  RC_ASSERT(same_bits(reduced(run_op(move, {t}), s.p), run_op(move, reduced(*t, s.p))));
  // Also when the sum is half done before the move.
  const Axes first = Axes().with(*s.p.begin());
  const Sharded moved = run_op(move, reduced(*t, first));
  const Axes rest = s.p.without(first);
  RC_ASSERT(same_bits(rest.empty() ? moved : reduced(moved, rest), run_op(move, reduced(*t, s.p))));
}

RC_GTEST_PROP(MovedPartialLaw, CatchesARemovedMove, ()) {
  const PartialSetting s(Data::countable);
  RC_PRE(s.torus.size(s.e) > 1);
  const SharedValue t = s.partial();
  for (const char* form : {"all_gather(t, E, {})", "all_to_all(t, E->B, {})"}) {
    const std::string move = call(form, s.e.to_string());
    // Below execute(), which would see the replicas differ.
    const Sharded wrong = run_op(move, {t}, true);
    const Sharded right = reduced(run_op(move, {t}), s.p);
    Threads one(1);
    RC_ASSERT(!same_bits(reduce(wrong, all_reduce_moves(s.torus, wrong.local(), s.p), right.layout,
                                wrong.shape, one),
                         right));
  }
}

// ---- the origins of partial sums, by eye

// Two chips of z add 1 + 2^-24 and 2^-53 + 2^-80 in column 0: just above half an ulp of f64 above
// half an ulp of f32 above 1, which no f64 sum with a bound decides. Column 1 is the opposite.
struct Tie {
  Torus torus{1, 1, 2};
  SharedValue x = shared(shard(tensor_of({1, 1, 4}, {1, 0x1p-24F, 0x1p-53F, 0x1p-80F}),
                               Layout::parse("BLE_z"), torus));
  SharedValue w =
      shared(shard(tensor_of({4, 2}, {1, -1, 1, -1, 1, -1, 1, -1}), Layout::parse("E_zF"), torus));
  SharedValue partial = shared(run_op("einsum(BLE,EF->BLF; x, w)", {x, w}));
};
constexpr float kUp = 1 + 0x1p-23F;

TEST(Origins, DecideWhatF64CannotAndCountDoubles) {
  const Tie tie;
  EXPECT_EQ(run_op("all_reduce(p, z)", {tie.partial}).f32(), ChipArrays<float>(2, {kUp, -kUp}));
  // As a set the origins would give the single sum where the double is undecided.
  Threads one(1);
  Moves doubled = all_reduce_moves(tie.torus, tie.partial->local(), Axes::parse("z"));
  for (auto& pieces : doubled.pieces) pieces = {pieces[0], pieces[1], pieces[0], pieces[1]};
  EXPECT_EQ(reduce(*tie.partial, doubled, Layout::parse("BLF"), {1, 1, 2}, one).f32(),
            ChipArrays<float>(2, {2 * kUp, -2 * kUp}));
}

TEST(Origins, TravelWithTheirElements) {
  // Column 1 alone: its origin is index 1, not its new place 0.
  const Torus torus(1, 2, 2);
  const SharedValue x = shared(shard(tensor_of({1, 1, 4}, {1, 0x1p-24F, 0x1p-53F, 0x1p-80F}),
                                     Layout::parse("BLE_z"), torus));
  const SharedValue w =
      shared(shard(tensor_of({4, 2}, {1, -1, 1, -1, 1, -1, 1, -1}), Layout::parse("E_zF"), torus));
  Sharded sliced = run_op("slice(p, F, y)", run_op("einsum(BLE,EF->BLF; x, w)", {x, w}));
  const ChipArrays<float> right{{kUp}, {kUp}, {-kUp}, {-kUp}};
  EXPECT_EQ(run_op("all_reduce(p, z)", sliced).f32(), right);
  auto& partial = std::get<Partial>(sliced.data);
  for (auto& origins : partial.origins) origins.clear();
  EXPECT_NE(run_op("all_reduce(p, z)", sliced).f32(), right) << "the origins were not looked at";
}

TEST(Origins, AreRecomputedFromTheChipsOwnOperands) {
  // Chip 1 holds a weight of its own making, which turns its term round: 1 + 2^-24 - 2^-53 - 2^-80.
  Tie tie;
  Sharded mutated = *tie.w;
  std::get<ChipArrays<float>>(mutated.data)[1] = {-1, 1, -1, 1};
  const auto out = run_op("all_reduce(p, z)",
                          run_op("einsum(BLE,EF->BLF; x, w)", {tie.x, shared(std::move(mutated))}));
  EXPECT_EQ(out.f32(), ChipArrays<float>(2, {1, -1}));
}

}  // namespace
}  // namespace shardproof
