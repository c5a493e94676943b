#include "engine/layouts/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engine/layouts/layer.h"

namespace shardproof {
namespace {

/// How a value is called in programs.
const std::map<std::string, std::string>& program_names() {
  static const std::map<std::string, std::string> names{
      {"q", "q"},       {"k", "k"},      {"v", "v"},         {"gate", "h"},
      {"up", "u"},      {"hidden", "a"}, {"block_out", "y"}, {"attn_out", "y"},
      {"ffn_out", "z"}, {"mid", "mid"},  {"out", "out"}};
  return names;
}

bool slices_rows(const Move& move) {
  return move.op.kind == OpKind::slice && (move.op.dim == 'B' || move.op.dim == 'L');
}

Layout with_axes_of(const Layout& layout, char letter, const Axes& axes) {
  const auto at = layout.find(letter);
  return at ? layout.with_axes(*at, axes) : layout;
}

class Partitioner {
 public:
  Partitioner(const LayoutTable& table, const ModelConfig& config, const Extents& extents,
              const Torus& torus, ActType act, BrokenRule broken)
      : table_(table),
        config_(config),
        ops_(logical_layer(config)),
        w_("layer", act, extents, torus),
        broken_(broken) {}

  PartitionedLayer run() {
    const LayoutLine& stream = required("in");
    residual_ = stream.steps[0].layout;
    queries_ = required("attend").steps[0].layout;
    keys_ = key_layout();
    copies_["in"] = {w_.input("x", residual_, "in")};
    copies_["pos"] = {w_.input("pos", Layout::parse("BL"), "input pos", "p")};
    for (const LogicalOp& op : ops_) switch (op.kind) {
        case LogicalOp::Kind::norm:
          norm(op);
          break;
        case LogicalOp::Kind::einsum:
          einsum(op);
          break;
        case LogicalOp::Kind::attend:
          attend();
          break;
        case LogicalOp::Kind::activate:
          activate(op);
          break;
        case LogicalOp::Kind::add:
          add(op);
          break;
      }
    PartitionedLayer made;
    made.layer = w_.finish({copies_.at("out")[0].name, "kc", "vc"}, config_);
    made.residual = residual_;
    made.cache = cache_layout();
    made.arrows = std::move(arrows_);
    return made;
  }

 private:
  /// Operands, weights and result of a contraction, and where the result goes.
  struct Plan {
    std::vector<Layout> operands, weights;  // of each term
    Layout product;
    std::vector<LayoutStep> way;  // the steps of the result's own line, then where it is wanted
    std::string use;              // of the last of them
    Way first;                    // to the first of them
  };

  // ---- what the table says ----

  Error refused(std::string_view label, const Line& line, std::string_view why) const {
    return Error(label, fmt::format("{}{} (docs/layouts.md)", table_.where(line), why));
  }

  const LayoutLine& required(std::string_view value) const {
    if (const LayoutLine* line = table_.find(value)) return *line;
    throw refused("layouts_c5", table_.line,
                  fmt::format("{} has no line '{} : LAYOUT'", table_.name, value));
  }

  /// K lies as H is written, by the longest prefix that cuts it into more than one block.
  Layout shortened(const Layout& layout) const {
    const auto at = layout.find('K');
    if (!at) return layout;
    Axes prefix, best;
    for (Axis a : layout.dims()[*at].axes) {
      prefix = prefix.with(a);
      const int blocks = w_.torus().size(prefix);
      if (blocks > 1 && w_.extent('K') % blocks == 0) best = prefix;
    }
    if (broken_ == BrokenRule::kv_prefix)
      for (Axis a : layout.dims()[*at].axes)
        if (w_.extent('K') % w_.torus().size(a) == 0) best = Axes().with(a);
    return layout.with_axes(*at, best);
  }

  /// Where keys and values are appended: as the queries are, K as H, every position on its chip.
  Layout key_layout() const {
    const LayoutLine* line = table_.find("attend", "k");
    Layout keys({{'B', queries_.axes('B')}, {'L', {}}, {'K', queries_.axes('H')}, {'Q', {}}}, {});
    if (line != nullptr) keys = line->steps[0].layout;
    if (!(keys.axes('B') == queries_.axes('B')) || !keys.axes('L').empty() ||
        !keys.axes('Q').empty() || !queries_.axes('Q').empty() ||
        !queries_.axes('H').starts_with(keys.axes('K')))
      throw refused("layouts_c8", line != nullptr ? line->line : required("attend").line,
                    fmt::format("attend is {}, its keys and values {}: they have B alike, K a "
                                "prefix of H, and L and Q whole",
                                queries_.to_string(), keys.to_string()));
    return shortened(keys);
  }

  Layout cache_layout() const {
    return Layout({keys_.dims()[0], {'M', {}}, keys_.dims()[2], keys_.dims()[3]}, {});
  }

  /// The layouts of a weight: as it rests, ..., as it is used.
  std::vector<LayoutStep> weight_steps(const std::string& weight, const Line** at) const {
    const LayoutLine* line = table_.find(weight);
    const bool own = line != nullptr;
    if (!own) line = table_.find("weights");
    if (line == nullptr)
      throw refused("layouts_c5", table_.line,
                    fmt::format("{0} gives {1} no layout: write '{1} : LAYOUT', or 'weights : ...' "
                                "for all",
                                table_.name, weight));
    *at = &line->line;
    std::vector<LayoutStep> steps = line->steps;
    for (LayoutStep& step : steps) {
      if (!own) {
        std::map<char, Axes> cuts;
        for (const Layout::Dim& cut : step.cuts) cuts[cut.letter] = cut.axes;
        if (!cuts.contains('K')) cuts['K'] = cuts['H'];
        std::vector<Layout::Dim> dims;
        for (const LayoutValue& value : layout_values())
          for (char letter : value.name == weight ? value.dims : "")
            dims.push_back({letter, cuts[letter]});
        step.layout = layout_of(std::move(dims), *line, weight);
      }
      step.layout = shortened(step.layout);
    }
    return steps;
  }

  Layout layout_of(std::vector<Layout::Dim> dims, const LayoutLine& line,
                   const std::string& value) const {
    try {
      return Layout(std::move(dims), Axes());
    } catch (const Error& error) {
      throw refused("layouts_c6", line.line, fmt::format("{}: {}", value, error.message()));
    }
  }

  // ---- moving values ----

  /// The value in a layout: a copy that there is, or the cheapest way from one.
  Result bring(const std::string& value, const LayoutStep& to, const Line& line,
               const std::string& use) {
    std::optional<Way> best;
    const Result* from = nullptr;
    for (const Result& copy : copies_.at(value)) {
      if (copy.layout == to.layout) return copy;
      Way way = walkable(value, copy.layout, to, line);
      const auto better = [&] {
        return std::pair(way.price, way.moves.size()) < std::pair(best->price, best->moves.size());
      };
      if (!best || better()) best = std::move(way), from = &copy;
    }
    return walk(value, *from, *best, to.layout, use);
  }

  Result walk(const std::string& value, Result now, const Way& way, const Layout& to,
              const std::string& use) {
    Arrow arrow{value, use, now.layout, to, w_.length(), 0};
    for (const Move& move : way.moves) copies_[value].push_back(now = w_.move(now, move));
    arrow.end = w_.length();
    arrows_.push_back(std::move(arrow));
    return now;
  }

  Way walkable(const std::string& value, const Layout& from, const LayoutStep& to,
               const Line& line) const {
    try {
      Way way = w_.way(from, to.layout);
      if (!to.strict || way.moves.size() <= 1) return way;
      std::vector<std::string> ops;
      for (const Move& move : way.moves) ops.emplace_back(to_string(move.op.kind));
      throw refused(
          "layouts_c9", line,
          fmt::format("{}: {} becomes {} by {}, and [strict] allows one op: write a "
                      "layout between them, or leave the note out",
                      value, from.to_string(), to.layout.to_string(), fmt::join(ops, ", ")));
    } catch (const Error& error) {
      if (error.label() != "way_c2") throw;
      throw refused("layouts_c4", line, fmt::format("{}: {}", value, error.message()));
    }
  }

  /// The value through the steps of its line, each from the one before it.
  Result pass(const std::string& value, const std::vector<LayoutStep>& steps, const Line& line) {
    Result now = bring(value, steps[0], line, "");
    for (std::size_t i = 1; i < steps.size(); ++i)
      if (!(now.layout == steps[i].layout))
        now = walk(value, now, walkable(value, now.layout, steps[i], line), steps[i].layout, "");
    return now;
  }

  void keep_rows(const Layout& layout) {
    rows_ = {{'B', layout.axes('B')}, {'L', layout.axes('L')}};
  }

  // ---- the steps of the layer ----

  void norm(const LogicalOp& op) {
    const std::string& x = op.operands[0];
    const LayoutLine& stream = required(x);
    Result now = pass(x, stream.steps, stream.line);
    const LayoutLine* line = table_.find(op.result);
    if (line != nullptr) now = bring(x, line->steps[0], line->line, op.result);
    const Result made = write_norm(w_, config_, now, {"", op.result.substr(4), false});
    copies_[op.result] = {made};
    keep_rows(line != nullptr ? pass(op.result, line->steps, line->line).layout : made.layout);
  }

  const Plan& plan(const LogicalOp& op) {
    const auto [at, is_new] = plans_.try_emplace(op.result);
    if (is_new) at->second = planned(op);
    return at->second;
  }

  Plan planned(const LogicalOp& op) const {
    Plan plan;
    const Line* line = nullptr;
    for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
      const EinsumSpec::Term& term = op.spec.terms[t];
      const std::string &value = op.operands[2 * t], &weight = op.operands[2 * t + 1];
      plan.weights.push_back(weight_steps(weight, &line).back().layout);
      std::vector<Layout::Dim> dims;
      for (char letter : term.a) {
        const auto row = rows_.find(letter);
        dims.push_back({letter, row != rows_.end() ? row->second : plan.weights[t].axes(letter)});
      }
      const LayoutLine* own = table_.find(value, op.result);
      plan.operands.push_back(own != nullptr ? own->steps.back().layout
                                             : layout_of(dims, LayoutLine{"", "", {}, *line},
                                                         value + " for " + weight));
      const Layout product = product_of(op, t, plan, own != nullptr ? own->line : *line);
      if (t > 0 && !(product == plan.product))
        throw refused("layouts_c7", *line,
                      fmt::format("{}: the terms of a parallel block are one sum, but {}·{} is {} "
                                  "and {}·{} is {}; block=serial sums them by themselves",
                                  op.result, op.operands[0], op.operands[1],
                                  plan.product.to_string(), value, weight, product.to_string()));
      plan.product = product;
    }
    if (const LayoutLine* own = table_.find(op.result)) {
      plan.way = own->steps;
      for (LayoutStep& step : plan.way) step.layout = shortened(step.layout);
    }
    const auto to = destination(op.result, plan);
    plan.way.push_back({to.first, false});
    plan.use = to.second;
    slice_operands(op, plan);
    return plan;
  }

  Layout product_of(const LogicalOp& op, std::size_t t, const Plan& plan, const Line& line) const {
    const EinsumSpec::Term& term = op.spec.terms[t];
    const Layout &a = plan.operands[t], &b = plan.weights[t];
    std::vector<Layout::Dim> dims;
    Axes used, partial;
    const auto use = [&](const Axes& axes) {
      for (Axis axis : axes) {
        if (used.has(axis) && broken_ == BrokenRule::axes_once) continue;
        if (used.has(axis))
          throw refused("layouts_c6", line,
                        fmt::format("{}: {} is {} where {} is {}: axis {} is used twice", op.result,
                                    op.operands[2 * t], a.to_string(), op.operands[2 * t + 1],
                                    b.to_string(), to_char(axis)));
        used = used.with(axis);
      }
    };
    for (char letter : term.a)
      if (b.find(letter) && !(a.axes(letter) == b.axes(letter)))
        throw refused("layouts_c6", line,
                      fmt::format("{}: {} is {} where {} is {}: {} is cut in two ways", op.result,
                                  op.operands[2 * t], a.to_string(), op.operands[2 * t + 1],
                                  b.to_string(), letter));
    for (char letter : term.result) {
      dims.push_back({letter, a.find(letter) ? a.axes(letter) : b.axes(letter)});
      use(dims.back().axes);
    }
    for (char letter : EinsumSpec::contracted(term)) {
      use(a.axes(letter));
      partial = partial.with(a.axes(letter).without(partial));
    }
    return Layout(std::move(dims), partial);
  }

  /// Where a product is wanted, and what for.
  std::pair<Layout, std::string> destination(const std::string& result, const Plan& plan) const {
    if (result == "q") return {queries_, "attend"};
    if (result == "k" || result == "v") return {keys_, "attend"};
    if (result != "gate" && result != "up") return {residual_, "in"};
    if (const LayoutLine* line = table_.find("hidden")) return {line->steps[0].layout, "hidden"};
    if (result == "up") return {copies_.at("gate")[0].layout, "hidden"};
    const Layout last = plan.way.empty() ? plan.product : plan.way.back().layout;
    if (last.is_partial())
      throw refused("layouts_c5", table_.line,
                    fmt::format("{} is {}, and no line 'hidden : LAYOUT' says where it is complete",
                                result, last.to_string()));
    return {last, "hidden"};
  }

  /// A way that begins with a slice of rows takes it of the operands: less work, the same values.
  void slice_operands(const LogicalOp& op, Plan& plan) const {
    plan.first = walkable(op.result, plan.product, plan.way[0], line_of(op.result));
    std::vector<Move>& moves = plan.first.moves;
    while (!moves.empty() && slices_rows(moves[0])) {
      const char dim = moves[0].op.dim;
      plan.product = moves[0].to;
      for (Layout& operand : plan.operands)
        operand = with_axes_of(operand, dim, plan.product.axes(dim));
      moves.erase(moves.begin());
    }
  }

  /// The line to blame where a product cannot go where it is wanted.
  Line line_of(const std::string& result) const {
    const auto line = [&](std::string_view value) { return table_.find(value); };
    const LayoutLine* at = line(result);
    if (at == nullptr && (result == "q" || result == "k" || result == "v")) at = line("attend");
    if (at == nullptr && (result == "gate" || result == "up")) at = line("hidden");
    if (at == nullptr) at = line("in");
    return at != nullptr ? at->line : table_.line;
  }

  void einsum(const LogicalOp& op) {
    const Plan& plan = this->plan(op);
    std::vector<std::string> args;
    for (std::size_t t = 0; t < plan.operands.size(); ++t)
      args.push_back(operand(op, t, plan).name);
    for (std::size_t t = 0; t < plan.weights.size(); ++t)
      args.insert(args.begin() + static_cast<std::ptrdiff_t>(2 * t + 1),
                  weight(op.operands[2 * t + 1]).name);
    Op einsum;
    einsum.kind = OpKind::einsum;
    einsum.spec = op.spec;
    const bool biased = !op.biases.empty();
    Result now = w_.step(std::move(einsum), args, program_names().at(op.result), plan.product,
                         w_.raw(op.result, biased));
    bool complete = false;
    const auto complete_it = [&] {
      if (complete || now.layout.is_partial()) return;
      complete = true;
      now = w_.stored(biased_value(op, now), op.result);
    };
    complete_it();
    for (std::size_t i = 0; i < plan.way.size(); ++i) {
      const LayoutStep& to = plan.way[i];
      if (now.layout == to.layout) continue;
      Arrow arrow{op.result,   i + 1 < plan.way.size() ? "" : plan.use,
                  now.layout,  to.layout,
                  w_.length(), 0};
      const Way way = i == 0 ? plan.first : walkable(op.result, now.layout, to, line_of(op.result));
      for (const Move& move : way.moves) {
        now = w_.move(now, move);
        complete_it();
      }
      arrow.end = w_.length();
      arrows_.push_back(std::move(arrow));
    }
    copies_[op.result] = {now};
  }

  Result operand(const LogicalOp& op, std::size_t t, const Plan& plan) {
    const std::string& value = op.operands[2 * t];
    if (const LayoutLine* own = table_.find(value, op.result)) pass(value, own->steps, own->line);
    return bring(value, {plan.operands[t], false}, line_of(value), op.result);
  }

  Result weight(const std::string& name) {
    const Line* line = nullptr;
    const std::vector<LayoutStep> steps = weight_steps(name, &line);
    if (!copies_.contains(name)) {
      Result resting = w_.input(name, at_rest(steps[0].layout, BrokenRule::weight_order),
                                "weight " + name, name + "_");
      resting.layout = steps[0].layout;
      copies_[name] = {resting};
    }
    return pass(name, steps, *line);
  }

  Layout at_rest(Layout layout, BrokenRule rule) const {
    if (broken_ != rule) return layout;
    for (std::size_t d = 0; d < layout.rank(); ++d) {
      Axes reversed;
      for (int i = layout.dims()[d].axes.size(); i-- > 0;)
        reversed = reversed.with(layout.dims()[d].axes.begin()[i]);
      layout = layout.with_axes(d, reversed);
    }
    return layout;
  }

  Result biased_value(const LogicalOp& op, const Result& value) {
    if (op.biases.empty()) return value;
    std::vector<std::string> args{value.name};
    for (const std::string& bias : op.biases) {
      // It rests as it is added: there is little of it.
      std::vector<Layout::Dim> dims;
      for (const Layout::Dim& dim : value.layout.dims())
        if (dim.letter != 'B' && dim.letter != 'L') dims.push_back(dim);
      args.push_back(
          w_.input(bias, at_rest(Layout(dims, {}), BrokenRule::bias_layout), "weight " + bias)
              .name);
    }
    return w_.step(OpKind::bias, args, value.name + "_b", value.layout, w_.unstored(op.result),
                   program_names().at(op.result));
  }

  /// The value through its own line, and on to the contraction that takes it.
  void hand_on(const std::string& value) {
    if (const LayoutLine* line = table_.find(value)) pass(value, line->steps, line->line);
    for (const LogicalOp& op : ops_)
      for (std::size_t t = 0; t < op.spec.terms.size(); ++t)
        if (op.operands[2 * t] == value) operand(op, t, plan(op));
  }

  void attend() {
    Op append;
    append.kind = OpKind::append;
    const auto positions = [&](const Layout& of) {
      return bring("pos", {Layout({of.dims()[0], of.dims()[1]}, {}), false},
                   required("attend").line, "attend")
          .name;
    };
    const std::string q = rotated("q", "q_rot", positions(queries_));
    const std::string pos = positions(keys_);
    const std::string k = rotated("k", "k_rot", pos);
    const Layout cache = cache_layout();
    const auto grown = [&](const std::string& name, const std::string& with) {
      const Result old = w_.input(name + "_old", cache, "previous " + name + "_cache");
      return w_.step(append, {old.name, with, pos}, name + "c", cache, name + "_cache").name;
    };
    const std::string kc = grown("k", k);
    const std::string vc = grown("v", copies_.at("v")[0].name);
    const auto& d = queries_.dims();
    const Layout row({d[0], d[1], d[2]}, {});
    const Layout scores({d[0], d[1], d[2], {'M', {}}}, {});
    Op op;
    op.kind = OpKind::attend;
    const std::vector<Result> made =
        w_.steps(op, {q, kc, vc, positions(queries_)},
                 {{"s", scores, Meaning::parse("score")},
                  {"m", row, Meaning::parse("max")},
                  {"e", scores, Meaning::parse("exp")},
                  {"d", row, Meaning::parse("denom")},
                  {"o", queries_, Meaning::parse(w_.unstored("attn"))}});
    copies_["attn"] = {w_.stored(made.back(), "attn")};
    hand_on("attn");
  }

  /// The stored rotation of queries or keys; the value itself in a model without.
  std::string rotated(const std::string& value, const std::string& checkpoint,
                      const std::string& pos) {
    const Result& from = copies_.at(value)[0];
    if (config_.rope == Rope::none) return from.name;
    if (!copies_.contains("cos"))
      for (const char* table : {"cos", "sin"})
        copies_[table] = {
            w_.input(table, Layout::parse("PJ"), fmt::format("weight rope_{}", table))};
    const OpKind kind = config_.rope == Rope::half ? OpKind::rope : OpKind::rope_interleaved;
    return w_
        .stored(w_.step(kind, {from.name, pos, "cos", "sin"}, value + "p", from.layout,
                        w_.unstored(checkpoint)),
                checkpoint)
        .name;
  }

  void activate(const LogicalOp& op) {
    static const std::map<Ffn, OpKind> kinds{{Ffn::swiglu, OpKind::swiglu},
                                             {Ffn::geglu, OpKind::geglu},
                                             {Ffn::gelu, OpKind::gelu},
                                             {Ffn::gelu_erf, OpKind::gelu_erf}};
    std::vector<std::string> args;
    for (const std::string& operand : op.operands) args.push_back(copies_.at(operand)[0].name);
    const Layout layout = copies_.at("gate")[0].layout;
    copies_["hidden"] = {w_.stored(
        w_.step(kinds.at(config_.ffn), args, "a", layout, w_.unstored("hidden")), "hidden")};
    hand_on("hidden");
  }

  void add(const LogicalOp& op) {
    std::vector<std::string> args;
    for (const std::string& operand : op.operands) args.push_back(copies_.at(operand)[0].name);
    copies_[op.result] = {w_.stored(
        w_.step(OpKind::add, args, op.result, residual_, w_.unstored(op.result)), op.result)};
  }

  const LayoutTable& table_;
  const ModelConfig& config_;
  const std::vector<LogicalOp> ops_;
  ProgramWriter w_;
  BrokenRule broken_;
  Layout residual_, queries_, keys_;
  std::map<char, Axes> rows_;  // B's and L's, where the contractions take the stream
  std::map<std::string, std::vector<Result>> copies_;
  std::map<std::string, Plan> plans_;
  std::vector<Arrow> arrows_;
};

}  // namespace

PartitionedLayer partition(const LayoutTable& table, const ModelConfig& config,
                           const Extents& extents, const Torus& torus, ActType act,
                           BrokenRule broken) {
  return Partitioner(table, config, extents, torus, act, broken).run();
}

}  // namespace shardproof
