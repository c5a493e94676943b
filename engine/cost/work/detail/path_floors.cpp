#include "engine/cost/work/detail/path_floors.h"

#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "engine/cost/work/bounds.h"
#include "engine/program/count.h"

namespace shardproof::cost {
namespace {

constexpr std::size_t kMostFloorDims = 4;

/// Encodes axes in order, two bits each: a number below 64.
std::uint64_t floor_word(const Axes& axes) {
  std::uint64_t word = 0;
  for (const Axis a : axes) word = word << 2 | (static_cast<std::uint64_t>(a) + 1);
  return word;
}

std::vector<Axes> ordered_lists(const Torus& torus) {
  std::vector<Axes> lists{Axes()};
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (const Axis a : {Axis::x, Axis::y, Axis::z})
      if (torus.size(a) > 1 && !lists[i].has(a)) lists.push_back(lists[i].with(a));
  lists.erase(lists.begin());
  return lists;
}

}  // namespace

struct PathFloors::State {
  std::array<Axes, kMostFloorDims> dims;
  Axes partial;

  std::uint64_t key() const {
    std::uint64_t bits = floor_word(partial);
    for (const Axes& axes : dims) bits = bits << 6 | floor_word(axes);
    return bits;
  }
};

PathFloors::PathFloors(Value value, const Torus& torus, const Chip& chip)
    : value_(std::move(value)), torus_(torus), chip_(chip), runs_(ordered_lists(torus)) {}

PathFloors::State PathFloors::state_of(const Layout& layout) const {
  State state;
  for (std::size_t d = 0; d < value_.letters.size(); ++d)
    state.dims[d] = layout.axes_or_none(value_.letters[d]);
  state.partial = layout.partial();
  return state;
}

bool PathFloors::divides(std::size_t dim, const Axes& axes) const {
  return value_.extents[dim] % torus_.size(axes) == 0;
}

PathFloors::Price PathFloors::price(int kind, const Axes& axes, const Axes& as) const {
  Traffic t;
  t.kind = static_cast<OpKind>(kind);
  t.axes = axes;
  t.group = torus_.size(axes);
  t.rings = rings_of(axes, torus_);
  // With a buffer of one byte per chip of the group, the bytes that all chips send are whole.
  const auto moved = static_cast<double>(moved_elements(t.kind, axes, as, t.group, torus_));
  t.sent_bytes = moved / (static_cast<double>(t.group) * torus_.chips());
  t.hops = t.kind == OpKind::permute_axes ? 1 : times_sent(t.kind) * (t.group - 1);
  return {communication_seconds(t, chip_), t.hops * chip_.hop_latency};
}

double PathFloors::edge(const State& larger, bool partial, int kind, const Axes& axes,
                        const Axes& as) {
  const std::uint64_t op =
      (static_cast<std::uint64_t>(kind) << 6 | floor_word(axes)) << 6 | floor_word(as);
  auto at = prices_.find(op);
  if (at == prices_.end()) at = prices_.emplace(op, price(kind, axes, as)).first;
  double bytes =
      static_cast<double>(value_.behind) * (partial ? value_.partial_bytes : value_.whole_bytes);
  for (std::size_t d = 0; d < value_.letters.size(); ++d) {
    const std::int64_t block = value_.extents[d] / torus_.size(larger.dims[d]);
    bytes *= static_cast<double>(block);
  }
  return bytes * at->second.per_byte + at->second.steps;
}

PathFloors::Reached PathFloors::search(const State& from) {
  Reached reached;
  std::unordered_map<std::uint64_t, State> states;
  using Entry = std::pair<double, std::uint64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  const auto enter = [&](const State& state, double seconds) {
    const std::uint64_t key = state.key();
    const auto [at, is_new] = reached.try_emplace(key, seconds);
    if (!is_new && at->second <= seconds) return;
    at->second = seconds;
    states[key] = state;
    open.emplace(seconds, key);
  };
  enter(from, 0.0);
  const std::size_t rank = value_.letters.size();
  while (!open.empty()) {
    const auto [so_far, key] = open.top();
    open.pop();
    if (so_far > reached.at(key)) continue;
    const double seconds = so_far;  // clang cannot capture a structured binding
    const State now = states.at(key);
    const bool partial = !now.partial.empty();
    Axes used = now.partial;
    for (std::size_t d = 0; d < rank; ++d) used = used.with(now.dims[d]);
    const auto go = [&](const State& next, OpKind kind, const State& larger, const Axes& axes,
                        const Axes& as = {}) {
      const double price =
          kind == OpKind::slice ? 0.0 : edge(larger, partial, static_cast<int>(kind), axes, as);
      enter(next, seconds + price);
    };
    for (const Axes& run : runs_) {
      const bool reducible = now.partial.has_all(run);
      if (reducible && run == run.sorted()) {
        State next = now;
        next.partial = now.partial.without(run);
        go(next, OpKind::all_reduce, now, run);
      }
      for (std::size_t d = 0; d < rank; ++d) {
        if (reducible || !used.has_any(run)) {
          State next = now;
          next.dims[d] = now.dims[d].with(run);
          next.partial = now.partial.without(run);
          if (divides(d, next.dims[d]))
            go(next, reducible ? OpKind::reduce_scatter : OpKind::slice, now, run);
          continue;
        }
        if (now.dims[d].sorted() == run.sorted() && !(now.dims[d] == run)) {
          State next = now;
          next.dims[d] = run;
          go(next, OpKind::permute_axes, now, now.dims[d], run);
        }
        if (!now.dims[d].ends_with(run)) continue;
        State next = now;
        next.dims[d] = now.dims[d].without(run);
        go(next, OpKind::all_gather, next, run);
        for (std::size_t e = 0; e < rank; ++e)
          for (const Axes& as : runs_) {
            if (e == d || !(as.sorted() == run.sorted())) continue;
            State moved = next;
            moved.dims[e] = now.dims[e].with(as);
            if (divides(e, moved.dims[e])) go(moved, OpKind::all_to_all, now, run, as);
          }
      }
    }
  }
  return reached;
}

double PathFloors::seconds(const Layout& from, const Layout& to) {
  const State first = state_of(from), last = state_of(to);
  const std::uint64_t key = first.key();
  auto at = known_.find(key);
  if (at == known_.end()) at = known_.emplace(key, search(first)).first;
  const auto found = at->second.find(last.key());
  return found == at->second.end() ? std::numeric_limits<double>::infinity() : found->second;
}

}  // namespace shardproof::cost
