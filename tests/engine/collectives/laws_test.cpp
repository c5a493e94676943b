// The laws of the collectives, as properties over random tori, layouts and shapes. Each comes with
// a seeded fault that it is shown to catch wherever the fault can make a difference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/collectives/collectives.h"
#include "engine/collectives/faults.h"
#include "engine/collectives/moves.h"
#include "engine/collectives/transfer.h"
#include "engine/ops/einsum.h"
#include "engine/shards/hazards.h"
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

/// What a program's steps run under.
struct Hostile {
  HazardScope scope{Hazards::hostile(), calling_thread()};
};

/// A layout of B, L and E on a torus; `letter` has at least one axis, `partial` may have some.
struct Setting : Hostile {
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

/// What a plan makes of a value, of the layout and shape of `like`.
Sharded carried(const Sharded& value, const Moves& moves, const Sharded& like) {
  return transfer(value, moves, like.layout(), like.shape(), calling_thread());
}
Sharded summed(const Sharded& value, const Moves& moves, const Sharded& like) {
  return reduce(value, moves, like.layout(), like.shape(), calling_thread());
}

// ---- moves of complete values: every one is a resharding of the same tensor

RC_GTEST_PROP(AllGatherLaw, IsTheTensorWithFewerAxes, ()) {
  const Setting s('E');
  const Axes axes = draw_suffix(s.axes('E'));
  const Tensor tensor = s.tensor();
  const Sharded t = shard(tensor, s.layout, s.torus);
  const Sharded out = all_gather(t, 'E', axes);
  RC_ASSERT(same_bits(out, shard(tensor, out.layout(), s.torus)));
  RC_ASSERT(assemble(out).data == tensor.data);

  const auto by = [&](const Moves& moves) { return carried(t, moves, out); };
  const Moves right = all_gather_moves(s.torus, t.local(), 2, axes);
  RC_ASSERT(same_bits(by(right), out));
  if (s.torus.size(axes) > 1) RC_ASSERT(!same_bits(by(without_transfer(right)), out));
  if (reorders(s.torus, axes, reversed(axes)))
    RC_ASSERT(!same_bits(by(all_gather_moves(s.torus, t.local(), 2, reversed(axes))), out));
}

RC_GTEST_PROP(AllGatherLaw, OfEveryDimInvertsShard, ()) {
  const Setting s('E');
  const Tensor tensor = s.tensor();
  Sharded t = shard(tensor, s.layout, s.torus);
  for (char letter : {'B', 'L', 'E'})
    if (!s.axes(letter).empty()) t = all_gather(t, letter, s.axes(letter));
  for (const auto& chip : t.f32()) RC_ASSERT(chip == tensor.data);
}

RC_GTEST_PROP(AllToAllLaw, MovesAxesFromOneDimToTheOther, ()) {
  const Setting s('B');
  const Axes axes = draw_suffix(s.axes('B'));
  const Axes as = shuffled(axes);
  const Tensor tensor = s.tensor();
  const Sharded t = shard(tensor, s.layout, s.torus);
  const Sharded out = all_to_all(t, 'B', 'E', axes, as);
  RC_ASSERT(same_bits(out, shard(tensor, out.layout(), s.torus)));
  RC_ASSERT(same_bits(all_to_all(out, 'E', 'B', as, axes), t));
  RC_CLASSIFY(!(as == axes), "in another order");

  const auto by = [&](const Moves& moves) { return carried(t, moves, out); };
  const Moves right = all_to_all_moves(s.torus, t.local(), 0, 2, axes, as);
  RC_ASSERT(same_bits(by(right), out));
  if (s.torus.size(axes) > 1) RC_ASSERT(!same_bits(by(without_transfer(right)), out));
  if (reorders(s.torus, axes, as))  // `as` forgotten
    RC_ASSERT(!same_bits(by(all_to_all_moves(s.torus, t.local(), 0, 2, axes, axes)), out));
}

RC_GTEST_PROP(PermuteAxesLaw, RenamesAndRoundTrips, ()) {
  const Setting s('E');
  const Axes axes = s.axes('E');
  const Axes as = shuffled(axes);
  const Tensor tensor = s.tensor();
  const Sharded t = shard(tensor, s.layout, s.torus);
  const Sharded out = permute_axes(t, 'E', axes, as);
  RC_ASSERT(same_bits(out, shard(tensor, out.layout(), s.torus)));
  RC_ASSERT(same_bits(permute_axes(out, 'E', as, axes), t));
  RC_CLASSIFY(reorders(s.torus, axes, as), "blocks move");

  const Moves right = permute_axes_moves(s.torus, t.local(), axes, as);
  RC_ASSERT(same_bits(carried(t, right, out), out));
  if (reorders(s.torus, axes, as))
    RC_ASSERT(!same_bits(carried(t, without_transfer(right), out), out));
}

RC_GTEST_PROP(SliceLaw, AllGatherInvertsSlice, ()) {
  const Setting s('E');  // what E has here is what slice adds
  const Axes axes = s.axes('E');
  const Layout before = s.layout.with_axes(2, Axes());
  const Tensor tensor = s.tensor();
  const Sharded t = shard(tensor, before, s.torus);
  const Sharded out = slice(t, 'E', axes);
  RC_ASSERT(same_bits(out, shard(tensor, s.layout, s.torus)));
  RC_ASSERT(same_bits(all_gather(out, 'E', axes), t));

  if (reorders(s.torus, axes, reversed(axes)))
    RC_ASSERT(!same_bits(carried(t, slice_moves(s.torus, t.local(), 2, reversed(axes)), out), out));
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
  const Sharded split = split_dim(t, 'H', Layout({{'S', major}, {'R', minor}}, Axes()));
  Tensor viewed = tensor;
  viewed.shape = split.shape();
  RC_ASSERT(split.shape()[1] == torus.size(major));
  RC_ASSERT(split.f32() == t.f32());
  RC_ASSERT(same_bits(split, shard(viewed, split.layout(), torus)));
  RC_ASSERT(same_bits(merge_dim(split, "SR", 'H'), t));
  RC_CLASSIFY(torus.size(major) > 1 && torus.size(minor) > 1, "both halves sharded");

  // Were S longer than its blocks, the same memory would be another tensor: merge_dim_c3.
  if (torus.size(minor) > 1 && viewed.shape[2] % (2 * torus.size(minor)) == 0) {
    viewed.shape[1] *= 2;
    viewed.shape[2] /= 2;
    RC_ASSERT(shard(viewed, split.layout(), torus).f32() != t.f32());
  }
}

// ---- partial sums

/// A partial of BLE: the contraction of a [BLF] and w [FE] whose F lies over the partial axes.
struct PartialSetting : Hostile {
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

RC_GTEST_PROP(ReductionLaw, ReduceScatterIsSliceOfAllReduce, ()) {
  const PartialSetting s(*rc::gen::element(Data::countable, Data::hostile));
  const SharedValue t = s.partial();
  const Axes axes = shuffled(s.p);
  RC_ASSERT(same_bits(reduce_scatter(*t, 'E', axes), slice(all_reduce(*t, s.p), 'E', axes)));
}

RC_GTEST_PROP(ReductionLaw, CatchesAReductionRemovedOrMisrouted, ()) {
  const PartialSetting s(Data::countable);
  const SharedValue t = s.partial();
  const Axes axes = shuffled(s.p);
  const Sharded block = reduce_scatter(*t, 'E', axes);
  const Sharded whole = all_reduce(*t, axes);
  const Moves scatter = reduce_scatter_moves(s.torus, t->local(), 2, axes);
  const Moves to_all = all_reduce_moves(s.torus, t->local(), axes);
  RC_ASSERT(same_bits(summed(*t, scatter, block), block));
  RC_ASSERT(same_bits(summed(*t, to_all, whole), whole));
  if (s.torus.size(axes) > 1) {
    RC_ASSERT(!same_bits(summed(*t, without_transfer(scatter), block), block));
    RC_ASSERT(!same_bits(summed(*t, without_transfer(to_all), whole), whole));
  }
  if (reorders(s.torus, axes, reversed(axes))) {
    const Moves wrong = reduce_scatter_moves(s.torus, t->local(), 2, reversed(axes));
    RC_ASSERT(!same_bits(summed(*t, wrong, block), block));
  }
}

RC_GTEST_PROP(ReductionLaw, TwoStepsAreOneStepBitForBit, ()) {
  const PartialSetting s(Data::hostile);
  const SharedValue t = s.partial();
  Sharded stepwise = *t;
  for (Axis a : shuffled(s.p)) stepwise = all_reduce(stepwise, Axes().with(a));
  RC_ASSERT(same_bits(stepwise, all_reduce(*t, s.p)));

  const Axes order = shuffled(s.p);
  Sharded scattered = *t;
  for (Axis a : order) scattered = reduce_scatter(scattered, 'E', Axes().with(a));
  RC_ASSERT(same_bits(scattered, reduce_scatter(*t, 'E', order)));
}

RC_GTEST_PROP(ReductionLaw, ATermThatArrivesTwiceCountsTwice, ()) {
  const PartialSetting s(Data::hostile);
  const SharedValue t = s.partial();
  Moves doubled = all_reduce_moves(s.torus, t->local(), s.p);
  for (auto& pieces : doubled.pieces)
    pieces.insert(pieces.end(), pieces.begin(),
                  pieces.begin() + static_cast<std::ptrdiff_t>(pieces.size()));
  const Sharded once = all_reduce(*t, s.p);
  const Sharded twice = summed(*t, doubled, once);
  for (std::size_t c = 0; c < once.f32().size(); ++c)
    for (std::size_t i = 0; i < once.f32()[c].size(); ++i)
      if (std::abs(once.f32()[c][i]) >= 0x1p-125F)  // below, doubling and rounding do not commute
        RC_ASSERT(twice.f32()[c][i] == 2 * once.f32()[c][i]);
}

using Law = std::function<Sharded(const Sharded&)>;

/// A move of a random kind that is legal on B_bLE_e partialsum-p, of a group above one chip if
/// there is one.
Law draw_move(const PartialSetting& s) {
  Axes unused;
  for (Axis a : Axes::parse("xyz"))
    if (!s.b.has(a) && !s.e.has(a) && !s.p.has(a)) unused = unused.with(a);
  std::vector<std::pair<const char*, Law>> moves{
      {"last", [](const Sharded& t) { return last(t); }}};
  if (!s.e.empty()) {
    const Axes suffix = draw_suffix(s.e);
    moves = {{"all_gather", [=](const Sharded& t) { return all_gather(t, 'E', suffix); }},
             {"all_to_all", [=](const Sharded& t) { return all_to_all(t, 'E', 'B', suffix); }},
             {"permute_axes",
              [e = s.e](const Sharded& t) { return permute_axes(t, 'E', e, reversed(e)); }}};
  }
  if (!s.b.empty())
    moves.emplace_back("all_to_all", [suffix = draw_suffix(s.b)](const Sharded& t) {
      return all_to_all(t, 'B', 'E', suffix);
    });
  if (!unused.empty())
    moves.emplace_back("slice",
                       [axes = shuffled(unused)](const Sharded& t) { return slice(t, 'B', axes); });
  const auto& [name, drawn] =
      moves[static_cast<std::size_t>(draw_int(0, static_cast<int>(moves.size()) - 1))];
  RC_TAG(std::string(name));
  return drawn;
}

RC_GTEST_PROP(MovedPartialLaw, MovingThenReducingIsReducingThenMoving, ()) {
  const PartialSetting s(*rc::gen::element(Data::countable, Data::hostile));
  const Law move = draw_move(s);
  const SharedValue t = s.partial();
  const Sharded right = move(all_reduce(*t, s.p));
  RC_ASSERT(same_bits(all_reduce(move(*t), s.p), right));
  // Also when the sum is half done before the move.
  const Axes first = Axes().with(*s.p.begin());
  const Sharded moved = move(all_reduce(*t, first));
  const Axes rest = s.p.without(first);
  RC_ASSERT(same_bits(rest.empty() ? moved : all_reduce(moved, rest), right));
}

RC_GTEST_PROP(MovedPartialLaw, CatchesARemovedMove, ()) {
  const PartialSetting s(Data::countable);
  RC_PRE(s.torus.size(s.e) > 1);
  const SharedValue t = s.partial();
  const Shape local = t->local();
  for (const auto& [moved, moves] :
       {std::pair{all_gather(*t, 'E', s.e), all_gather_moves(s.torus, local, 2, s.e)},
        std::pair{all_to_all(*t, 'E', 'B', s.e),
                  all_to_all_moves(s.torus, local, 2, 0, s.e, s.e)}}) {
    RC_ASSERT(same_bits(all_reduce(carried(*t, moves, moved), s.p), all_reduce(moved, s.p)));
    const Sharded wrong = carried(*t, without_transfer(moves), moved);
    RC_ASSERT(!same_bits(all_reduce(wrong, s.p), all_reduce(moved, s.p)));
  }
}

}  // namespace
}  // namespace shardproof
