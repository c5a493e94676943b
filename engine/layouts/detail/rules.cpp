#include "engine/layouts/detail/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardproof {

const LogicalOp& TableRules::only(LogicalOp::Kind kind) const {
  return *std::find_if(ops_.begin(), ops_.end(),
                       [&](const LogicalOp& op) { return op.kind == kind; });
}

const LayoutLine* TableRules::of_attend(std::size_t operand) const {
  return table_.find("attend", only(LogicalOp::Kind::attend).operands[operand]);
}

TableRules::TableRules(const LayoutTable& table, const std::vector<LogicalOp>& ops,
                       const Extents& extents, const Torus& torus)
    : table_(table), ops_(ops), extents_(extents), torus_(torus) {
  residual = required("in").steps[0].layout;
  queries = required("attend").steps[0].layout;
  // Keys and values are appended, unless given otherwise, in the queries' layout with K as H.
  const LayoutLine* own = of_attend(1);
  const LayoutLine* of_v = of_attend(2);
  keys =
      own != nullptr
          ? own->steps[0].layout
          : Layout({{'B', queries.axes('B')}, {'L', {}}, {'K', queries.axes('H')}, {'Q', {}}}, {});
  if (!(keys.axes('B') == queries.axes('B')) || !queries.axes('H').starts_with(keys.axes('K')) ||
      !keys.axes('L').with(keys.axes('Q')).with(queries.axes('Q')).empty())
    throw refused("layouts_c8", own != nullptr ? own->line : required("attend").line,
                  fmt::format("attend is {}, its keys and values {}: they need the same axes on B, "
                              "a prefix of H's on K, and none on L and Q",
                              queries.to_string(), keys.to_string()));
  if (of_v != own && !(of_v->steps[0].layout == keys))
    throw refused("layouts_c8", of_v->line,
                  fmt::format("keys are {} in attend, values {}: both caches must have one layout",
                              keys.to_string(), of_v->steps[0].layout.to_string()));
  const LayoutLine* of_prefixes = table.find("prefix");
  if (of_prefixes != nullptr) require_prefixes(*of_prefixes);
  keys = shortened(keys);
  cache = Layout({keys.dims()[0], {'M', {}}, keys.dims()[2], keys.dims()[3]}, {});
  if (!extents.contains('N')) return;
  const Axes written = of_prefixes != nullptr ? of_prefixes->steps[0].layout.axes('N') : Axes();
  prefix = shortened(Layout({{'N', written}, {'T', {}}, keys.dims()[2], keys.dims()[3]}, {}), 'N');
}

/// A chip holds the prefixes that its rows continue iff N's axes are a prefix of B's, and heads
/// matching its rows' own keys iff K's axes are none or those of the keys.
void TableRules::require_prefixes(const LayoutLine& line) const {
  const Layout& written = line.steps[0].layout;
  const Axes heads = written.axes('K');
  if (!queries.axes('B').starts_with(written.axes('N')) ||
      !(heads.empty() || heads == keys.axes('K')) ||
      !written.axes('T').with(written.axes('Q')).empty())
    throw refused("layouts_c8", line.line,
                  fmt::format("prefix is {} where attend is {}, its keys {}: N takes the first of "
                              "attend's axes on B or none, K those of the keys or none, T and Q "
                              "none",
                              written.to_string(), queries.to_string(), keys.to_string()));
}

Error TableRules::refused(std::string_view label, const Line& line, std::string_view why) const {
  return Error(label, fmt::format("{}{} (docs/layouts.md)", table_.where(line), why));
}

const LayoutLine& TableRules::required(std::string_view value) const {
  if (const LayoutLine* line = table_.find(value)) return *line;
  throw refused("layouts_c5", table_.line,
                fmt::format("{} has no line '{} : LAYOUT'", table_.name, value));
}

/// Shortens the axes of K (whose table entry may be H's), or of N, to the longest prefix that
/// divides the extent.
Layout TableRules::shortened(const Layout& layout, char letter) const {
  const auto at = layout.find(letter);
  if (!at) return layout;
  Axes head, best;
  for (Axis a : layout.dims()[*at].axes) {
    head = head.with(a);
    if (torus_.size(head) > 1 && extents_.at(letter) % torus_.size(head) == 0) best = head;
  }
  return layout.with_axes(*at, best);
}

LayoutLine TableRules::weight(const std::string& name) const {
  const LayoutLine* own = table_.find(name);
  const LayoutLine* all = table_.find("weights");
  if (own == nullptr && all == nullptr)
    throw refused("layouts_c5", table_.line,
                  fmt::format("{0} gives {1} no layout: write '{1} : LAYOUT', or 'weights : ...' "
                              "for all",
                              table_.name, name));
  LayoutLine line = own != nullptr ? *own : *all;
  for (LayoutStep& step : line.steps) {
    if (own == nullptr) {
      std::map<char, Axes> axes;
      for (const Layout::Dim& dim : step.sharded) axes[dim.letter] = dim.axes;
      if (!axes.contains('K')) axes['K'] = axes['H'];
      std::vector<Layout::Dim> dims;
      for (const LayoutValue& value : layout_values())
        for (char letter : value.name == name ? value.dims : "")
          dims.push_back({letter, axes[letter]});
      try {
        step.layout = Layout(dims, {});
      } catch (const Error& error) {
        throw refused("layouts_c6", line.line,
                      fmt::format("{}: {}; leave it out of one", name, error.message()));
      }
    }
    step.layout = shortened(step.layout);
  }
  return line;
}

Path TableRules::path(const std::string& value, const Layout& from, const LayoutStep& to,
                      const Line& line) const {
  Shape shape;
  for (const Layout::Dim& dim : from.dims()) shape.push_back(extents_.at(dim.letter));
  Path path;
  try {
    path = cheapest_path(from, to.layout, shape, torus_);
  } catch (const Error& error) {
    throw refused("layouts_c4", line, fmt::format("{}: {}", value, error.message()));
  }
  if (!to.strict || path.moves.size() <= 1) return path;
  std::vector<std::string_view> ops;
  for (const Move& move : path.moves) ops.push_back(to_string(move.op.kind));
  throw refused("layouts_c9", line,
                fmt::format("{}: {} becomes {} by {}, and [strict] allows one op: write a layout "
                            "between them, or leave the note out",
                            value, from.to_string(), to.layout.to_string(), fmt::join(ops, ", ")));
}

Line TableRules::line_of(const std::string& value) const {
  std::string after = "in";
  for (const LogicalOp& op : ops_)
    if (op.result == value && (op.is_projection() || op.is_wide()))
      after = op.is_projection() ? "attend" : only(LogicalOp::Kind::activate).result;
  for (const std::string& name : {value, after})
    if (const LayoutLine* line = table_.find(name)) return line->line;
  return table_.line;
}

/// The layout from the line for this use; otherwise the stream's axes on its rows and the weight's
/// on the shared letters.
Layout TableRules::operand(const LogicalOp& op, std::size_t term, const Layout& rows,
                           const Layout& weight, const Line& line) const {
  const std::string& value = op.operands[2 * term];
  if (const LayoutLine* own = table_.find(value, op.result)) return own->steps.back().layout;
  std::vector<Layout::Dim> dims;
  for (char letter : op.spec.terms[term].a)
    dims.push_back({letter, (rows.find(letter) ? rows : weight).axes(letter)});
  try {
    return Layout(dims, {});
  } catch (const Error& error) {
    throw refused("layouts_c6", line,
                  fmt::format("{} for {}: {}; gather it in one of them", value,
                              op.operands[2 * term + 1], error.message()));
  }
}

Layout TableRules::product(const LogicalOp& op, std::size_t term, const Layout& a, const Layout& b,
                           const Line& line) const {
  const EinsumSpec::Term& spec = op.spec.terms[term];
  const auto refuse = [&](const std::string& why) {
    throw refused("layouts_c6", line,
                  fmt::format("{}: {} is {} where {} is {}: {}", op.result, op.operands[2 * term],
                              a.to_string(), op.operands[2 * term + 1], b.to_string(), why));
  };
  Axes used, partial;
  const auto use = [&](const Axes& axes) {
    for (Axis axis : axes)
      if (!used.has(axis))
        used = used.with(axis);
      else
        refuse(fmt::format("axis {} is used twice; gather it in one of them", to_char(axis)));
  };
  for (char letter : spec.a)
    if (b.find(letter) && !(a.axes(letter) == b.axes(letter)))
      refuse(fmt::format("{} is sharded in two ways", letter));
  std::vector<Layout::Dim> dims;
  for (char letter : spec.result) {
    dims.push_back({letter, (a.find(letter) ? a : b).axes(letter)});
    use(dims.back().axes);
  }
  for (char letter : EinsumSpec::contracted(spec)) {
    use(a.axes(letter));
    partial = partial.with(a.axes(letter).without(partial));
  }
  return Layout(dims, partial);
}

/// The destination of a product.
LayoutStep TableRules::destination(const LogicalOp& op, const ContractionLayouts& made,
                                   const Layout* gate) const {
  // Notes on the arrow to a layout are on that layout's line.
  const auto noted = [](const Layout& layout, const LayoutStep& step) {
    return LayoutStep{layout, step.strict, step.loop};
  };
  if (op.role == LogicalOp::Role::query) return noted(queries, required("attend").steps[0]);
  if (op.is_projection()) {
    const LayoutLine* own = of_attend(1);
    return noted(keys, (own != nullptr ? *own : required("attend")).steps[0]);
  }
  if (!op.is_wide()) return noted(residual, required("in").steps[0]);
  const std::string& activated = only(LogicalOp::Kind::activate).result;
  if (const LayoutLine* line = table_.find(activated)) return line->steps[0];
  if (gate != nullptr) return {*gate};
  const Layout last = made.steps.empty() ? made.product : made.steps.back().layout;
  if (!last.is_partial()) return {last};
  throw refused("layouts_c5", table_.line,
                fmt::format("{} is {}, and no line '{} : LAYOUT' says where it is complete",
                            op.result, last.to_string(), activated));
}

ContractionLayouts TableRules::contraction(const LogicalOp& op, const Layout& rows,
                                           const Layout* gate) const {
  ContractionLayouts made;
  for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
    const LayoutLine weight = this->weight(op.operands[2 * t + 1]);
    const LayoutLine* own = table_.find(op.operands[2 * t], op.result);
    const Layout& used = weight.steps.back().layout;
    made.operands.push_back(operand(op, t, rows, used, weight.line));
    const Layout product =
        this->product(op, t, made.operands[t], used, own != nullptr ? own->line : weight.line);
    if (t > 0 && !(product == made.product))
      throw refused(
          "layouts_c7", weight.line,
          fmt::format("{}: the terms of a parallel block are one sum, but {}·{} is {} and "
                      "{}·{} is {}; block=serial sums them by themselves",
                      op.result, op.operands[0], op.operands[1], made.product.to_string(),
                      op.operands[2 * t], op.operands[2 * t + 1], product.to_string()));
    made.product = product;
  }
  if (const LayoutLine* own = table_.find(op.result)) made.steps = own->steps;
  for (LayoutStep& step : made.steps) step.layout = shortened(step.layout);
  made.steps.push_back(destination(op, made, gate));
  made.use = op.is_projection() ? "attend"
             : op.is_wide()     ? only(LogicalOp::Kind::activate).result
                                : "in";
  if (made.product == made.steps[0].layout) return made;
  // If the path begins with a slice of rows, slice the operands instead: less work, same values.
  made.first = path(op.result, made.product, made.steps[0], line_of(op.result));
  std::vector<Move>& moves = made.first.moves;
  while (!moves.empty() && moves[0].op.kind == OpKind::slice &&
         (moves[0].op.dim == 'B' || moves[0].op.dim == 'L')) {
    const char dim = moves[0].op.dim;
    made.product = moves[0].to;
    for (Layout& operand : made.operands)
      operand = operand.with_axes(*operand.find(dim), made.product.axes(dim));
    moves.erase(moves.begin());
  }
  return made;
}

}  // namespace shardproof
