#include "engine/layouts/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "engine/program/count.h"

namespace shardproof {
namespace {

const Torus& price_torus() {
  static const Torus torus(4, 4, 4);
  return torus;
}
constexpr std::int64_t kExtent = 64;  // per dim on the price torus: every layout divides it
constexpr std::size_t kMostDims = 8;

/// An ordered list of axes, and the same axes sorted.
struct Run {
  Axes axes, set;
};

/// All non-empty ordered lists of axes.
const std::vector<Run>& all_runs() {
  static const std::vector<Run> runs = [] {
    std::vector<Run> all;
    for (const char* text : {"x", "y", "z", "xy", "yx", "xz", "zx", "yz", "zy", "xyz", "xzy", "yxz",
                             "yzx", "zxy", "zyx"})
      all.push_back({Axes::parse(text), Axes::parse(text).sorted()});
    return all;
  }();
  return runs;
}

/// Encodes a subscript as a number below 64: two bits per axis, in order.
std::size_t word(const Axes& axes) {
  std::size_t word = 0;
  for (Axis a : axes) word = word << 2 | (static_cast<std::size_t>(a) + 1);
  return word;
}

/// How many chips of the price torus send their block when subscript `axes` becomes `as`.
/// Precomputed, since every step of every search asks for one of these few pairs.
std::int64_t permuted(const Axes& axes, const Axes& as) {
  static const auto chips = [] {
    std::array<std::array<std::int64_t, 64>, 64> all{};
    for (const Run& from : all_runs())
      for (const Run& to : all_runs())
        if (from.set == to.set)
          all[word(from.axes)][word(to.axes)] =
              moved_elements(OpKind::permute_axes, from.axes, to.axes, 1, price_torus());
    return all;
  }();
  return chips[word(axes)][word(as)];
}

/// The subscripts of a layout on the path.
struct State {
  std::array<Axes, kMostDims> dims;
  Axes partial;

  /// Packs six bits per subscript.
  std::uint64_t key(std::size_t rank) const {
    std::uint64_t bits = 0;
    for (std::size_t d = 0; d < rank; ++d) bits = bits << 6 | word(dims[d]);
    return bits << 6 | word(partial);
  }
};

State state_of(const Layout& layout) {
  State state;
  for (std::size_t d = 0; d < layout.rank(); ++d) state.dims[d] = layout.dims()[d].axes;
  state.partial = layout.partial();
  return state;
}

/// An op from one state to another. `d` and `e` are dim indices.
struct Edge {
  OpKind kind{};
  std::size_t d = 0, e = 0;
  Axes axes, as;
};

struct Node {
  State state;
  std::int64_t price = 0;
  int steps = 0;
  std::uint64_t before = 0;
  Edge edge;
  bool done = false;
};

class Search {
 public:
  Search(const Layout& from, const Layout& to, const Shape& shape, const Torus& torus)
      : from_(from), to_(to), shape_(shape), torus_(torus), rank_(from.rank()) {
    for (std::size_t d = 0; d < rank_; ++d) {
      total_ *= kExtent;
      if (!(from.dims()[d].axes == to.dims()[d].axes)) changing_.push_back(d);
    }
  }

  std::optional<Path> run() {
    const std::uint64_t first = enter(state_of(from_), {}, 0, 0, 0);
    const std::uint64_t last = state_of(to_).key(rank_);
    while (!queue_.empty()) {
      const std::uint64_t key = std::get<3>(queue_.top());
      queue_.pop();
      Node& node = nodes_.at(key);
      if (node.done) continue;
      node.done = true;
      if (key == last) return walked(first, last);
      const Node at = node;  // a copy: entering other nodes may move it
      leave(at, key);
    }
    return std::nullopt;
  }

 private:
  using Entry = std::tuple<std::int64_t, int, int, std::uint64_t>;  // price, steps, when, state

  bool divides(const State& state, std::size_t d) const {
    return shape_[d] % torus_.size(state.dims[d]) == 0;
  }

  std::uint64_t enter(const State& state, const Edge& edge, std::uint64_t before,
                      std::int64_t price, int steps) {
    const std::uint64_t key = state.key(rank_);
    const auto [at, is_new] = nodes_.try_emplace(key);
    Node& node = at->second;
    if (!is_new && std::tie(node.price, node.steps) <= std::tie(price, steps)) return key;
    node = {state, price, steps, before, edge, false};
    queue_.emplace(price, steps, entered_++, key);
    return key;
  }

  /// Elements that all chips of the price torus send; `larger` is the state of the larger buffer.
  std::int64_t sent(const Edge& edge, const State& larger) const {
    std::int64_t buffer = total_;
    for (std::size_t d = 0; d < rank_; ++d) buffer /= price_torus().size(larger.dims[d]);
    if (edge.kind == OpKind::permute_axes) return buffer * permuted(edge.axes, edge.as);
    return moved_elements(edge.kind, edge.axes, edge.as, buffer, price_torus());
  }

  /// Follows every op that is legal in the state.
  void leave(const Node& node, std::uint64_t key) {
    const State& now = node.state;
    Axes used = now.partial;
    for (std::size_t d = 0; d < rank_; ++d) used = used.with(now.dims[d]);
    Axes summed;
    for (Axis a : now.partial)
      if (!to_.partial().has(a)) summed = summed.with(a);
    const auto go = [&](const Edge& edge, const State& next) {
      for (std::size_t d : changing_)
        if (!divides(next, d)) return;
      const State& larger = edge.kind == OpKind::all_gather ? next : now;
      const std::int64_t price = edge.kind == OpKind::slice ? 0 : sent(edge, larger);
      enter(next, edge, key, node.price + price, node.steps + 1);
    };
    std::array<Axes, kMostDims> sets;
    for (std::size_t d : changing_) sets[d] = now.dims[d].sorted();
    for (const auto& [run, set] : all_runs()) {
      const bool reducible = summed.has_all(run);
      if (reducible && run == set) {
        State next = now;
        next.partial = now.partial.without(run);
        go({OpKind::all_reduce, 0, 0, run, {}}, next);
      }
      for (std::size_t d : changing_) {
        State next = now;
        if (reducible || !used.has_any(run)) {
          next.dims[d] = now.dims[d].with(run);
          next.partial = now.partial.without(run);
          go({reducible ? OpKind::reduce_scatter : OpKind::slice, d, 0, run, {}}, next);
          continue;
        }
        if (!now.dims[d].ends_with(run)) {
          if (!(set == sets[d])) continue;
          next.dims[d] = run;
          go({OpKind::permute_axes, d, 0, now.dims[d], run}, next);
          continue;
        }
        next.dims[d] = now.dims[d].without(run);
        go({OpKind::all_gather, d, 0, run, {}}, next);
        for (std::size_t e : changing_)
          for (const auto& [as, same] : all_runs()) {
            if (e == d || !(same == set)) continue;
            State moved = next;
            moved.dims[e] = now.dims[e].with(as);
            go({OpKind::all_to_all, d, e, run, as}, moved);
          }
      }
    }
  }

  Path walked(std::uint64_t first, std::uint64_t last) const {
    Path path;
    path.price = nodes_.at(last).price;
    for (std::uint64_t key = last; key != first; key = nodes_.at(key).before) {
      const Node& node = nodes_.at(key);
      Move move;
      move.op.kind = node.edge.kind;
      if (node.edge.kind != OpKind::all_reduce) move.op.dim = from_.dims()[node.edge.d].letter;
      if (node.edge.kind == OpKind::all_to_all) move.op.to = from_.dims()[node.edge.e].letter;
      move.op.axes = node.edge.axes;
      move.op.as = node.edge.as;
      std::vector<Layout::Dim> dims = from_.dims();
      for (std::size_t d = 0; d < rank_; ++d) dims[d].axes = node.state.dims[d];
      move.to = Layout(std::move(dims), node.state.partial);
      path.moves.push_back(std::move(move));
    }
    std::reverse(path.moves.begin(), path.moves.end());
    return path;
  }

  const Layout &from_, &to_;
  const Shape& shape_;
  const Torus& torus_;
  std::size_t rank_;
  std::int64_t total_ = 1;
  std::vector<std::size_t> changing_;
  std::unordered_map<std::uint64_t, Node> nodes_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  int entered_ = 0;
};

/// The key of a search: the subscripts, and, for shape and torus, one bit per set of axes that
/// divides the extent of a dim that changes.
struct Question {
  std::string letters;
  std::uint64_t from = 0, to = 0;
  std::uint64_t divides = 0;
  bool operator==(const Question&) const = default;
};

struct QuestionHash {
  std::size_t operator()(const Question& q) const {
    std::uint64_t hash = std::hash<std::string>()(q.letters);
    for (const std::uint64_t part : {q.from, q.to, q.divides})
      hash = (hash ^ part) * 0x9E3779B97F4A7C15U ^ hash >> 29;
    return static_cast<std::size_t>(hash);
  }
};

Question question(const Layout& from, const Layout& to, const Shape& shape, const Torus& torus) {
  Question q{from.letters(), state_of(from).key(from.rank()), state_of(to).key(to.rank()), 0};
  for (std::size_t d = 0; d < from.rank(); ++d) {
    q.divides <<= 8;
    if (from.dims()[d].axes == to.dims()[d].axes) continue;
    for (std::uint64_t set = 0; set < 8; ++set) {
      std::int64_t blocks = 1;
      for (const Axis a : {Axis::x, Axis::y, Axis::z})
        if ((set >> static_cast<int>(a) & 1) != 0) blocks *= torus.size(a);
      if (shape[d] % blocks == 0) q.divides |= std::uint64_t{1} << set;
    }
  }
  return q;
}

/// Cache of searched paths, since the programs of many cases ask for the same ones. One per thread,
/// so no lock is needed.
class KnownPaths {
 public:
  /// Returns nullopt if no sequence of ops leads there.
  std::optional<Path> get(const Layout& from, const Layout& to, const Shape& shape,
                          const Torus& torus) {
    Question q = question(from, to, shape, torus);
    if (const auto at = paths_.find(q); at != paths_.end()) return at->second;
    std::optional<Path> path = Search(from, to, shape, torus).run();
    if (paths_.size() >= kMostKept) paths_.clear();
    paths_.emplace(std::move(q), path);
    return path;
  }

 private:
  static constexpr std::size_t kMostKept = 4096;
  std::unordered_map<Question, std::optional<Path>, QuestionHash> paths_;
};

}  // namespace

Path cheapest_path(const Layout& from, const Layout& to, const Shape& shape, const Torus& torus) {
  if (from.letters() != to.letters() || from.rank() > kMostDims || from.rank() != shape.size())
    throw Error("path_c1",
                fmt::format("{} does not have the dims of {}", from.to_string(), to.to_string()));
  if (from == to) return {};
  const auto refuse = [&](const std::string& why) {
    throw Error("path_c2",
                fmt::format("{} cannot become {}: {}", from.to_string(), to.to_string(), why));
  };
  for (const Layout* layout : {&from, &to}) try {
      local_shape(*layout, shape, torus);
    } catch (const Error& error) {
      refuse(error.message());
    }
  for (Axis a : to.partial())
    if (!from.partial().has(a))
      refuse(fmt::format("it is not a partial sum over {0}, so leave {0} out of partialsum",
                         to_char(a)));
  static thread_local KnownPaths known;
  std::optional<Path> path = known.get(from, to, shape, torus);
  if (!path) refuse("no sequence of ops leads there");
  return *std::move(path);
}

}  // namespace shardproof
