#include "engine/cost/search/table_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/cost/search/detail/table_bounds.h"
#include "engine/cost/search/detail/table_space.h"
#include "engine/strategies/strategy.h"
#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// The relative tolerance between two summation orders: a floor adds the seconds of a pass in
/// another order than its programs do. Neither takes more than 512 rounded operations in sequence:
/// a layer's program has fewer than 256 ops, each adds one term, and a term is a product of fewer
/// than 32 factors. On nonnegative values each operation is off by at most half an epsilon.
constexpr double kAddedOtherwise = 512 * std::numeric_limits<double>::epsilon();

/// The attends or hiddens for one stream and matrix, with their floors.
struct Choices {
  std::vector<std::pair<std::size_t, Floor>> floors;  ///< by index of the layout
  Floor least;
};

/// A node of the search tree; choices made: 0 stream and weights, 1 attend, 2 hidden.
struct Node {
  double floor = 0.0;
  int made = 0;
  std::size_t stream = 0, weights = 0, attend = 0, hidden = 0;

  /// Orders by least floor, then by most choices made, then by position.
  auto rank() const { return std::tuple(floor, -made, stream, weights, attend, hidden); }
  bool operator>(const Node& other) const { return rank() > other.rank(); }
};

class TableSearch {
 public:
  TableSearch(const ModelConfig& model, Numerics numerics, const Torus& torus, const Pass& pass,
              const Chip& chip, const Objective& objective,
              const std::function<void(const SearchProgress&)>& progress)
      : model_(model),
        numerics_(without_loops(numerics)),
        torus_(torus),
        pass_(pass),
        chip_(chip),
        objective_(objective),
        progress_(progress),
        space_(model, torus, pass),
        bounds_(model, numerics_, torus, pass, chip) {
    result_.value = kNever;
    result_.end.tables = space_.size();
  }

  SearchResult run() {
    try_shipped();
    if (result_.shipped.empty()) refuse();
    open_all();
    while (!open_.empty()) {
      const Node node = open_.top();
      if (!can_be_better(node.floor)) break;
      open_.pop();
      if (node.made == 0) choose_attend(node);
      if (node.made == 1) choose_hidden(node);
      if (node.made == 2) evaluate(node);
    }
    result_.end.floor = result_.end.best = result_.value;
    return std::move(result_);
  }

 private:
  static Numerics without_loops(Numerics numerics) {
    numerics.loop = Loop::none;
    return numerics;
  }

  bool can_be_better(double floor) const { return floor * (1.0 - kAddedOtherwise) < result_.value; }

  static Bounds hops_as_communication(Bounds bounds) {
    for (Seconds* part : {&bounds.layer, &bounds.ends}) {
      part->communication += part->hops;
      part->hops = 0.0;
    }
    return bounds;
  }

  double floor_of(const Floor& layer, const Work& ends) const {
    Bounds bounds;
    bounds.layer = bounds_.seconds(layer);
    bounds.ends = bounds_of(ends, chip_, numerics_.act).ends;
    bounds.layers = static_cast<int>(model_.layers);
    return objective_(hops_as_communication(bounds));
  }

  /// Bytes of the residual stream on one chip, the layer's input.
  double stream_bytes(const Layout& in) const {
    double bytes = bytes_of(value_row("out")->wire(numerics_, model_));
    for (const std::int64_t extent : {pass_.B, pass_.L, model_.E})
      bytes *= static_cast<double>(extent);
    for (const Layout::Dim& dim : in.dims()) bytes /= torus_.size(dim.axes);
    return bytes;
  }

  /// Keeps the table if it fits and is better than all so far. Returns true if it was kept.
  bool keep(const LayoutTable& table, const Work& work) {
    const double bytes = chip_bytes(work) + stream_bytes(table.find("in")->steps[0].layout);
    least_bytes_ = std::min(least_bytes_, bytes);
    if (bytes > chip_.hbm) return false;
    const Bounds bounds = bounds_of(work, chip_, numerics_.act);
    const double value = objective_(hops_as_communication(bounds));
    if (!(value < result_.value)) return false;
    result_.table = table;
    result_.table.name = "searched";
    result_.value = value;
    result_.work = work;
    result_.bounds = bounds;
    return true;
  }

  std::optional<Work> work(const LayoutTable& table) {
    ++result_.end.evaluated;
    try {
      return work_of(model_, numerics_, torus_, Strategy(table), pass_);
    } catch (const Error& error) {
      if (first_refusal_.empty()) first_refusal_ = error.message();
      return std::nullopt;
    }
  }

  void try_shipped() {
    for (const Strategy& strategy : all_strategies())
      if (const std::optional<Work> done = work(strategy.table()))
        if (keep(strategy.table(), *done)) {
          result_.shipped = strategy.to_string();
          result_.shipped_value = result_.value;
        }
  }

  /// Returns the work of a table with this stream, whose ends are those of all such tables, since
  /// they depend on the stream's layout alone; nullopt if there is none.
  const std::optional<Work>& ends(const Layout& in) {
    const auto [at, is_new] = ends_.try_emplace(in.to_string());
    if (is_new) {
      const Layout rows({{'B', in.axes('B')}, {'L', in.axes('L')}, {'E', {}}}, {});
      const Layout attend({{'B', in.axes('B')}, {'L', in.axes('L')}, {'H', {}}, {'Q', {}}}, {});
      const Layout hidden({{'B', in.axes('B')}, {'L', in.axes('L')}, {'F', {}}}, {});
      at->second = work(space_.table({in, rows, false}, {}, attend, hidden));
    }
    return at->second;
  }

  using FloorOf = Floor (TableBounds::*)(const Layout&, const Axes&, const Axes&, const Layout&);

  /// Returns the layouts with their floors for rows as `taken` and weights of E and the axes
  /// `wide`.
  const Choices& choices(std::map<std::string, Choices>& known, const Layout& taken, const Axes& e,
                         const Axes& wide, const std::vector<Layout>& layouts, FloorOf bound) {
    const auto [at, is_new] = known.try_emplace(
        fmt::format("{} {} {} {}", taken.axes('B').to_string(), taken.axes('L').to_string(),
                    e.sorted().to_string(), wide.to_string()));
    if (!is_new) return at->second;
    Choices& made = at->second;
    made.least = {kNever, kNever, kNever, kNever, kNever};
    for (std::size_t i = 0; i < layouts.size(); ++i)
      if (const Floor floor = (bounds_.*bound)(taken, e, wide, layouts[i]);
          floor.communication < kNever) {
        made.floors.emplace_back(i, floor);
        made.least = made.least.least(floor);
      }
    return made;
  }
  const Choices& attends(const StreamChoice& stream, const WeightChoice& weights) {
    return choices(attends_, stream.taken, weights.e, weights.h, space_.attends(),
                   &TableBounds::attention);
  }
  const Choices& hiddens(const StreamChoice& stream, const WeightChoice& weights) {
    return choices(hiddens_, stream.taken, weights.e, weights.f, space_.hiddens(),
                   &TableBounds::ffn);
  }

  /// Queues a set of tables, or a single one, unless its floor shows that none of it is better.
  void open(Node node, const Floor& layer) {
    ++result_.end.bounded;
    if (!(layer.communication < kNever)) return;
    const std::optional<Work>& of_ends = ends(space_.streams()[node.stream].in);
    if (!of_ends) return;
    const double bytes = static_cast<double>(model_.layers) * layer.held +
                         of_ends->ends.weight_bytes + layer.live +
                         stream_bytes(space_.streams()[node.stream].in);
    if (bytes * (1.0 - kAddedOtherwise) > chip_.hbm) return;
    node.floor = floor_of(layer, *of_ends);
    if (can_be_better(node.floor)) open_.push(node);
  }

  /// Adds the floors of a layer's three parts. Infinite communication in one part keeps the sum
  /// from being opened.
  static Floor sum(Floor of_stream, const Floor& of_attention, const Floor& of_ffn) {
    of_stream += of_attention;
    of_stream += of_ffn;
    return of_stream;
  }

  void open_all() {
    for (std::size_t s = 0; s < space_.streams().size(); ++s)
      for (std::size_t w = 0; w < space_.weights().size(); ++w) {
        const StreamChoice& stream = space_.streams()[s];
        const WeightChoice& weights = space_.weights()[w];
        if (!TableSpace::fit(stream, weights)) continue;
        open({0.0, 0, s, w, 0, 0},
             sum(bounds_.stream(stream, weights), attends(stream, weights).least,
                 hiddens(stream, weights).least));
      }
  }

  void choose_attend(const Node& node) {
    const StreamChoice& stream = space_.streams()[node.stream];
    const WeightChoice& weights = space_.weights()[node.weights];
    const Floor of_stream = bounds_.stream(stream, weights);
    for (const auto& choice : attends(stream, weights).floors)
      open({0.0, 1, node.stream, node.weights, choice.first, 0},
           sum(of_stream, choice.second, hiddens(stream, weights).least));
  }

  void choose_hidden(const Node& node) {
    const StreamChoice& stream = space_.streams()[node.stream];
    const WeightChoice& weights = space_.weights()[node.weights];
    const Floor of_stream = bounds_.stream(stream, weights);
    const Floor of_attention =
        bounds_.attention(stream.taken, weights.e, weights.h, space_.attends()[node.attend]);
    for (const auto& choice : hiddens(stream, weights).floors)
      open({0.0, 2, node.stream, node.weights, node.attend, choice.first},
           sum(of_stream, of_attention, choice.second));
  }

  void evaluate(const Node& node) {
    const LayoutTable table =
        space_.table(space_.streams()[node.stream], space_.weights()[node.weights],
                     space_.attends()[node.attend], space_.hiddens()[node.hidden]);
    if (const std::optional<Work> done = work(table))
      if (keep(table, *done)) result_.better = true;
    result_.end.floor = node.floor;
    result_.end.best = result_.value;
    if (progress_) progress_(result_.end);
  }

  [[noreturn]] void refuse() const {
    if (least_bytes_ == kNever)
      throw Error("search_c1", fmt::format("no table that ships can run B={}, L={} of this model "
                                           "on torus {}: {}",
                                           pass_.B, pass_.L, torus_.to_string(), first_refusal_));
    throw Error("search_c2",
                fmt::format("no table that ships fits the {:.1f} GiB of a {} on torus {}: the one "
                            "that needs least needs {:.1f} GiB; take more chips, or fewer rows",
                            chip_.hbm / (1 << 30), chip_.name, torus_.to_string(),
                            least_bytes_ / (1 << 30)));
  }

  const ModelConfig& model_;
  const Numerics numerics_;
  const Torus& torus_;
  const Pass& pass_;
  const Chip& chip_;
  const Objective& objective_;
  const std::function<void(const SearchProgress&)>& progress_;
  TableSpace space_;
  TableBounds bounds_;
  std::map<std::string, std::optional<Work>> ends_;
  std::map<std::string, Choices> attends_, hiddens_;
  std::priority_queue<Node, std::vector<Node>, std::greater<>> open_;
  SearchResult result_;
  double least_bytes_ = kNever;
  std::string first_refusal_;
};

}  // namespace

double chip_bytes(const Work& work) {
  return work.total(&PartWork::weight_bytes) + work.total(&PartWork::cache_bytes) +
         work.layer.live_bytes;
}

SearchResult search_tables(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
                           const Pass& pass, const Chip& chip, const Objective& objective,
                           const std::function<void(const SearchProgress&)>& progress) {
  return TableSearch(model, numerics, torus, pass, chip, objective, progress).run();
}

}  // namespace shardproof::cost
