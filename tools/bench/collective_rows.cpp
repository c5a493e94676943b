// Collectives on 64 chips, f32 shards, compared with one memcpy of the bytes that they write, or
// for sums, read.
#include <cstring>
#include <memory>

#include "engine/collectives/transfer.h"
#include "tools/bench/contest.h"
#include "tools/bench/ffn.h"
#include "tools/bench/row.h"

namespace shardproof::bench {
namespace {

/// A prepared collective of [256,1,F].
struct Collective {
  Sharded value;
  Moves moves;
  Layout layout;
  bool sums;
};

enum class Kind { all_gather, all_to_all, reduce_scatter };

Collective made(Kind kind) {
  const Torus torus = torus_of(64);
  const auto value = [&](const char* layout) {
    return shard(Tensor({256, 1, Ffn::F}, 1.0F), Layout::parse(layout), torus);
  };
  const Axes x = Axes::parse("x"), zyx = Axes::parse("zyx");
  if (kind == Kind::reduce_scatter) {
    Sharded whole = value("BLF_zy");
    Moves moves = reduce_scatter_moves(torus, whole.local(), 2, x);
    return {std::move(whole), std::move(moves), Layout::parse("BLF_zyx"), true};
  }
  Sharded cut = value("BLF_zyx");
  Moves moves = kind == Kind::all_gather ? all_gather_moves(torus, cut.local(), 2, x)
                                         : all_to_all_moves(torus, cut.local(), 2, 0, zyx, zyx);
  return {std::move(cut), std::move(moves),
          Layout::parse(kind == Kind::all_gather ? "BLF_zy" : "B_zyxLF"), false};
}

std::function<Sample()> against_memcpy(Kind kind) {
  const auto ours = std::make_shared<Collective>(made(kind));
  const auto count = static_cast<std::size_t>(element_count(ours->moves.to_local)) *
                     static_cast<std::size_t>(ours->value.torus().chips()) *
                     (ours->sums ? ours->moves.pieces[0].size() : 1);
  const auto from = std::make_shared<std::vector<float>>(count, 1.0F);
  const auto to = std::make_shared<std::vector<float>>(count);
  return [=] {
    Threads& one = calling_thread();
    const auto costs =
        contest({[&] {
                   if (ours->sums)
                     reduce(ours->value, ours->moves, ours->layout, ours->value.shape(), one);
                   else
                     transfer(ours->value, ours->moves, ours->layout, ours->value.shape(), one);
                 },
                 [&] { std::memcpy(to->data(), from->data(), count * sizeof(float)); }},
                Whose::thread);
    return Sample::ratio(costs[0], costs[1]);
  };
}

}  // namespace

std::vector<Row> collective_rows() {
  std::vector<Row> rows;
  const auto add = [&](const char* id, const char* what, Kind kind) {
    rows.push_back({.id = std::string("collective/") + id,
                    .group = "collectives on 64 chips / memcpy, one thread",
                    .what = what,
                    .start = [kind] { return against_memcpy(kind); }});
  };
  add("all_gather", "all_gather(F, x)", Kind::all_gather);
  add("all_to_all", "all_to_all(F->B, zyx)", Kind::all_to_all);
  add("reduce_scatter", "reduce_scatter(F, x), f32", Kind::reduce_scatter);
  return rows;
}

}  // namespace shardproof::bench
