#include "engine/layouts/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engine/layouts/detail/rules.h"
#include "engine/layouts/loops.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

class Partitioner {
 public:
  Partitioner(const LayoutTable& table, const ModelConfig& config, const Extents& extents,
              const Torus& torus, const Numerics& numerics)
      : table_(table),
        config_(config),
        ops_(logical_layer(config, numerics.weights)),
        rules_(table, ops_, extents, torus),
        w_(std::string(kLayerProgram), numerics.act, extents, torus),
        loop_(numerics.loop) {}

  PartitionedLayer run() {
    copies_["in"] = {w_.input("x", rules_.residual, "in")};
    copies_["pos"] = {w_.input("pos", Layout::parse("BL"), "input pos", "p")};
    for (const LogicalOp& op : ops_) {
      using Kind = LogicalOp::Kind;
      if (op.kind == Kind::norm) norm(op);
      if (op.kind == Kind::einsum) einsum(op);
      if (op.kind == Kind::attend) attend(op);
      if (op.kind == Kind::activate) activate(op);
      if (op.kind == Kind::add) elementwise(op.result, "add", op.operands, op.result);
    }
    PartitionedLayer made{w_.finish({current(ops_.back().result).name, "kc", "vc"}),
                          rules_.residual, rules_.cache, rules_.prefix.value_or(Layout()),
                          std::move(arrows_)};
    fuse_loops(made, table_, loop_);
    return made;
  }

 private:
  /// The most recent copy of a value.
  const WrittenValue& current(const std::string& value) const { return copies_.at(value).back(); }

  // ---- moving values ----

  /// The value in a layout: an existing copy, or the cheapest path from one.
  WrittenValue bring(const std::string& value, const LayoutStep& to, const Line& line,
                     const std::string& use) {
    std::optional<Path> best;
    const WrittenValue* from = nullptr;
    for (const WrittenValue& copy : copies_.at(value)) {
      if (copy.layout == to.layout) return copy;
      Path path = rules_.path(value, copy.layout, to, line);
      if (best &&
          std::pair(path.price, path.moves.size()) >= std::pair(best->price, best->moves.size()))
        continue;
      best = std::move(path), from = &copy;
    }
    return walk(*from, *best, {value, use, to.loop, line});
  }

  /// The fields of an arrow other than its path.
  struct Purpose {
    const std::string& value;
    std::string use;
    std::optional<Loop> loop;
    Line line;
    bool lenient = false;
  };

  void require_no_loop(const Purpose& purpose, const Layout& layout) const {
    if (purpose.lenient || purpose.loop.value_or(Loop::none) == Loop::none) return;
    throw Error(
        "layouts_c10",
        fmt::format("{0}{1}: {2} [loop {3}] has no ring, since {1} is {2} already; leave the "
                    "note out (docs/layouts.md)",
                    table_.where(purpose.line), purpose.value, layout.to_string(),
                    to_string(*purpose.loop)));
  }

  /// Applies a note to an arrow written for another use: one gather is looped in one way only.
  void note_on_copy(const Purpose& purpose, const Layout& layout) {
    if (!purpose.loop) return;
    const auto made = std::find_if(arrows_.begin(), arrows_.end(), [&](const Arrow& arrow) {
      return arrow.value == purpose.value && arrow.to == layout;
    });
    if (made == arrows_.end()) return require_no_loop(purpose, layout);
    if (made->loop && *made->loop != *purpose.loop)
      throw Error("layouts_c10",
                  fmt::format("{0}{1}: {2} [loop {3}], and [loop {4}] in line {5}: one gather "
                              "serves both uses; write the same note in both (docs/layouts.md)",
                              table_.where(purpose.line), purpose.value, layout.to_string(),
                              to_string(*purpose.loop), to_string(*made->loop), made->line.number));
    made->loop = purpose.loop;
    made->line = purpose.line;
  }

  /// Writes the ops of a path, as one arrow; `arrived` sees the value behind each of them.
  template <class Arrived>
  void walk(WrittenValue& now, const Path& path, const Purpose& purpose, Arrived&& arrived) {
    if (path.moves.empty()) return require_no_loop(purpose, now.layout);
    Arrow arrow{purpose.value, purpose.use,     now.layout,  path.moves.back().to, w_.length(), 0,
                purpose.loop,  purpose.lenient, purpose.line};
    for (const Move& move : path.moves) {
      now = w_.move(now, move);
      arrived();
    }
    arrow.end = w_.length();
    arrows_.push_back(std::move(arrow));
  }

  /// Keeps a copy in each layout on the way.
  WrittenValue walk(WrittenValue now, const Path& path, const Purpose& purpose) {
    walk(now, path, purpose, [&] { copies_[purpose.value].push_back(now); });
    return now;
  }

  /// Moves the value through the layouts of a line in order.
  WrittenValue pass(const std::string& value, const LayoutLine& line) {
    const LayoutStep& first = line.steps[0];
    const std::size_t copies = copies_.at(value).size();
    WrittenValue now = bring(value, first, line.line, "");
    // The first note of `in` or hidden applies to the arrow that already led to that layout.
    const bool led = line.value == "in" || is_activated(value);
    if (copies == copies_.at(value).size() && !led)
      note_on_copy({value, "", first.loop, line.line}, now.layout);
    // A note on all matrices applies to those of keys and values only if they are gathered.
    const bool lenient = line.value == "weights" && (value == "wk" || value == "wv");
    for (std::size_t i = 1; i < line.steps.size(); ++i)
      now = walk(now, rules_.path(value, now.layout, line.steps[i], line.line),
                 {value, "", line.steps[i].loop, line.line, lenient});
    return now;
  }

  bool is_activated(const std::string& value) const {
    return std::any_of(ops_.begin(), ops_.end(), [&](const LogicalOp& op) {
      return op.kind == LogicalOp::Kind::activate && op.result == value;
    });
  }

  // ---- the steps of the layer ----

  void norm(const LogicalOp& op) {
    const std::string& x = op.operands[0];
    WrittenValue now = pass(x, rules_.required(x));
    const LayoutLine* line = table_.find(op.result);
    if (line != nullptr) now = bring(x, line->steps[0], line->line, op.result);
    copies_[op.result] = {write_norm(w_, config_, now, {"", op.result.substr(4), false})};
    rows_ = (line != nullptr ? pass(op.result, *line) : current(op.result)).layout;
    rows_ = Layout({rows_.dims()[0], rows_.dims()[1]}, {});
    contractions_.clear();
  }

  const ContractionLayouts& layouts_of(const LogicalOp& op) {
    const auto [at, is_new] = contractions_.try_emplace(op.result);
    if (op.role == LogicalOp::Role::gate) gate_ = op.result;
    const bool gated = op.role == LogicalOp::Role::up;
    if (is_new)
      at->second = rules_.contraction(op, rows_, gated ? &current(gate_).layout : nullptr);
    return at->second;
  }

  void einsum(const LogicalOp& op) {
    const ContractionLayouts& layouts = layouts_of(op);
    std::string call = "einsum(" + op.spec.to_string();
    std::vector<std::string> operands;
    for (std::size_t t = 0; t < layouts.operands.size(); ++t) operands.push_back(operand(op, t));
    for (std::size_t t = 0; t < operands.size(); ++t)
      call += fmt::format("; {}, {}", operands[t], weight(op.operands[2 * t + 1]));
    WrittenValue now = w_.step(op.variable, layouts.product, call + ")",
                               w_.raw(op.result, !op.scale.empty() || !op.biases.empty()));
    bool complete = false;
    const auto complete_it = [&] {
      if (!complete && !now.layout.is_partial()) {
        now = w_.stored(biased(op, scaled(op, now)), op.result);
        complete = true;
      }
    };
    complete_it();
    for (std::size_t i = 0; i < layouts.steps.size(); ++i) {
      const Path path =
          i == 0 ? layouts.first
                 : rules_.path(op.result, now.layout, layouts.steps[i], rules_.line_of(op.result));
      // A note on attend applies to q; it applies to keys and values only where they can be looped.
      const bool last = i + 1 == layouts.steps.size();
      const bool lenient = last && op.is_projection() && op.role != LogicalOp::Role::query &&
                           table_.find("attend", op.result) == nullptr;
      walk(now, path,
           {op.result, last ? layouts.use : "", layouts.steps[i].loop,
            rules_.line_of(last ? layouts.use : op.result), lenient},
           complete_it);
    }
    copies_[op.result] = {now};
  }

  std::string operand(const LogicalOp& op, std::size_t t) {
    const std::string& value = op.operands[2 * t];
    if (const LayoutLine* own = table_.find(value, op.result)) pass(value, *own);
    return bring(value, {layouts_of(op).operands[t]}, rules_.line_of(value), op.result).name;
  }

  std::string weight(const std::string& name) {
    const LayoutLine line = rules_.weight(name);
    copies_[name] = {w_.input(name, line.steps[0].layout, "weight " + name, name + "_")};
    return pass(name, line).name;
  }

  /// A per-channel input that multiplies or is added to a value. It is small, so it is resident in
  /// the layout of that value.
  std::string channels(const std::string& name, const WrittenValue& value) {
    const auto& dims = value.layout.dims();
    const Layout own({dims.begin() + 2, dims.end()}, {});
    return w_.input(name, own, "weight " + name).name;
  }

  WrittenValue scaled(const LogicalOp& op, const WrittenValue& value) {
    if (op.scale.empty()) return value;
    return w_.step(value.name + "_s", value.layout,
                   fmt::format("scale({}, {})", value.name, channels(op.scale, value)),
                   op.biases.empty() ? w_.unstored(op.result) : "scaled " + op.result, value.base);
  }

  WrittenValue biased(const LogicalOp& op, const WrittenValue& value) {
    if (op.biases.empty()) return value;
    std::vector<std::string> args{value.name};
    for (const std::string& bias : op.biases) args.push_back(channels(bias, value));
    return w_.step(value.name + "_b", value.layout, fmt::format("bias({})", fmt::join(args, ", ")),
                   w_.unstored(op.result), value.base);
  }

  /// An op on values of one layout, with its result stored.
  void elementwise(const std::string& result, std::string_view kind,
                   const std::vector<std::string>& operands, const std::string& name) {
    std::vector<std::string> args;
    // An add takes operands in the residual's layout, which the first copy of the stream has.
    for (const std::string& one : operands)
      args.push_back(kind == "add" ? copies_.at(one)[0].name : current(one).name);
    const Layout& layout = kind == "add" ? rules_.residual : current(operands[0]).layout;
    copies_[result] = {
        w_.stored(w_.step(name, layout, fmt::format("{}({})", kind, fmt::join(args, ", ")),
                          w_.unstored(result)),
                  result)};
  }

  /// Moves the value through its own line and on to the contractions that take it.
  void hand_on(const std::string& value) {
    if (const LayoutLine* line = table_.find(value)) pass(value, *line);
    for (const LogicalOp& op : ops_)
      for (std::size_t t = 0; t < op.spec.terms.size(); ++t)
        if (op.operands[2 * t] == value) operand(op, t);
  }

  void activate(const LogicalOp& op) {
    static const std::map<Ffn, const char*> kinds{{Ffn::swiglu, "swiglu"},
                                                  {Ffn::geglu, "geglu"},
                                                  {Ffn::gelu, "gelu"},
                                                  {Ffn::gelu_erf, "gelu_erf"}};
    elementwise(op.result, kinds.at(config_.ffn), op.operands, "a");
    hand_on(op.result);
  }

  void attend(const LogicalOp& op) {
    const auto positions = [&](const Layout& of) {
      return bring("pos", {Layout({of.dims()[0], of.dims()[1]}, {})},
                   rules_.line_of(op.operands[0]), "attend")
          .name;
    };
    const std::string of_q = positions(rules_.queries);
    const std::string q = rotated(op, 0, of_q);
    const std::string pos = positions(rules_.keys);
    const std::string grown[] = {rotated(op, 1, pos), current(op.operands[2]).name};
    const std::string names[] = {"k", "v"};
    for (std::size_t i = 0; i < 2; ++i) {
      w_.input(names[i] + "_old", rules_.cache, "previous " + op.caches[i]);
      w_.step(names[i] + "c", rules_.cache,
              fmt::format("append({}_old, {}, {})", names[i], grown[i], pos), op.caches[i]);
    }
    const auto& d = rules_.queries.dims();
    const std::string row = Layout({d[0], d[1], d[2]}, {}).to_string();
    const std::string o = rules_.queries.to_string();
    std::string kind = "attend", caches = "kc, vc";
    if (rules_.prefix) {
      kind = "attend_prefix";
      for (std::size_t i = 0; i < 2; ++i)
        caches += ", " + w_.input("p" + names[i], *rules_.prefix, "prefix " + op.caches[i]).name;
    }
    std::string slopes;
    if (has_weight(config_, "alibi_slopes"))  // each chip has the slopes of its heads
      slopes = ", " + w_.input("slopes", Layout({d[2]}, {}), "weight alibi_slopes").name;
    w_.line(
        fmt::format("s : {0}M, m : {0}, e : {0}M, d : {0}, o : {1} = {6}({2}, {7}, {3}{5}) "
                    "is score, max, exp, denom, {4}",
                    row, o, q, of_q, w_.unstored(op.result), slopes, kind, caches));
    copies_[op.result] = {w_.stored({"o", rules_.queries, w_.unstored(op.result), "o"}, op.result)};
    hand_on(op.result);
  }

  /// The stored rotation of queries or keys; the value itself in a model without rotation.
  std::string rotated(const LogicalOp& attend, std::size_t operand, const std::string& pos) {
    const WrittenValue& from = current(attend.operands[operand]);
    if (attend.rotations.empty()) return from.name;
    const std::string& rotation = attend.rotations[operand];
    if (!copies_.contains("cos"))
      for (const std::string table : {"cos", "sin"})
        copies_[table] = {w_.input(table, Layout::parse("PJ"), "weight rope_" + table)};
    const char* const kind = config_.rope == Rope::half ? "rope" : "rope_interleaved";
    return w_
        .stored(w_.step(attend.operands[operand] + "p", from.layout,
                        fmt::format("{}({}, {}, cos, sin)", kind, from.name, pos),
                        w_.unstored(rotation)),
                rotation)
        .name;
  }

  const LayoutTable& table_;
  const ModelConfig& config_;
  const std::vector<LogicalOp> ops_;
  TableRules rules_;
  ProgramWriter w_;
  Loop loop_;
  std::string gate_;
  Layout rows_;  // axes of B and L of the stream, as contractions take it
  std::map<std::string, std::vector<WrittenValue>> copies_;
  std::map<std::string, ContractionLayouts> contractions_;
  std::vector<Arrow> arrows_;
};

}  // namespace

PartitionedLayer partition(const LayoutTable& table, const ModelConfig& config,
                           const Extents& extents, const Torus& torus, const Numerics& numerics) {
  require_values_of_keys(table);
  return Partitioner(table, config, extents, torus, numerics).run();
}

}  // namespace shardproof
