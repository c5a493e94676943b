#include "tools/text/table_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/layouts/layer_kinds.h"
#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "tools/text/wrapped.h"

namespace shardproof::tools {
namespace {

/// Elements and bytes that one chip sends in a step, an arrow or a layer.
struct Sent {
  double elements = 0.0, bytes = 0.0;
  void add(const Sent& other) {
    elements += other.elements;
    bytes += other.bytes;
  }
};

struct Step {
  const Op* op;
  Sent sent;
};

struct CountedArrow {
  Arrow arrow;
  const LayoutLine* line;  // source line, or null
  std::vector<Step> steps;
  Sent sent;
};

/// A layer with everything it sends, by arrow.
struct CountedTable {
  PartitionedLayer made;
  std::string title;                 // "layers 0, 2 of 3"; "layer" where all are alike
  std::vector<std::int64_t> layers;  // empty where all are alike
  std::vector<CountedArrow> arrows;
  Sent statistics, total;
};

/// Returns the table's line of a value that leads to the arrow's end; null if there is none.
const LayoutLine* line_leading_to(const LayoutTable& table, const Arrow& arrow) {
  const auto leads_there = [&](const LayoutLine& one) {
    return std::any_of(one.steps.begin(), one.steps.end(),
                       [&](const LayoutStep& step) { return step.layout == arrow.to; });
  };
  const LayoutLine* const line = table.find(arrow.value);
  if (line != nullptr && leads_there(*line)) return line;
  for (const LayoutLine& one : table.lines)  // `norm for k : ...`
    if (one.value == arrow.value && !one.use.empty() && leads_there(one)) return &one;
  return nullptr;
}

/// Returns the table line of an arrow; null if the rules add the arrow.
const LayoutLine* line_of(const LayoutTable& table, const Arrow& arrow) {
  if (!arrow.use.empty()) return nullptr;
  if (const LayoutLine* const leads = line_leading_to(table, arrow)) return leads;
  const LayoutLine* const line = table.find(arrow.value);
  return line != nullptr ? line : table.find("weights");  // a weight without its own line
}

/// Returns the arrows of a text's layer: the ops that bring a value to another layout, one after
/// the other. Those that no line of the table leads to are for the value that is computed next.
std::vector<Arrow> arrows_of(const Program& layer, const LayoutTable& table) {
  std::vector<Arrow> arrows;
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    const Op& op = layer.ops[i];
    if (op_row(op.kind).suffix == 0) continue;
    const ValueDecl& from = layer.declared(op.args[0]);
    if (arrows.empty() || arrows.back().end != i || layer.ops[i - 1].results[0].name != from.name)
      arrows.push_back({from.role.name, "", from.layout, {}, i, i});
    arrows.back().to = op.results[0].layout;
    arrows.back().end = i + 1;
  }
  for (Arrow& arrow : arrows) {
    const ValueDecl& last = layer.ops[arrow.end - 1].results[0];
    if (last.role.kind == Role::Kind::weight || line_leading_to(table, arrow) != nullptr) continue;
    const auto reads = [&](const Op& op) {
      return std::find(op.args.begin(), op.args.end(), last.name) != op.args.end();
    };
    const auto reader = std::find_if(layer.ops.begin(), layer.ops.end(), reads);
    arrow.use = reader == layer.ops.end() ? "the next layer" : reader->results[0].role.name;
  }
  return arrows;
}

/// Returns the layers of a table; of a text, a layer of each kind.
std::vector<CountedTable> partitioned_layers(const TableView& view) {
  if (view.of.model.rows == nullptr)
    return {{partitioned(view.of, *view.strategy, view.phase), "layer", {}, {}, {}, {}}};
  const RunPlan plan = make_plan(view.of);
  const PhasePrograms& phase = plan.programs(view.phase);
  std::vector<CountedTable> tables;
  for (const LayerKind& kind : layer_kinds(phase, view.of.model.layers)) {
    PartitionedLayer made{*kind.program, phase.residual, {}, {}, {}};
    made.arrows = arrows_of(made.layer, view.strategy->table());
    const std::string title = title_of(kind, view.of.model.layers);
    tables.push_back({std::move(made), title, {}, {}, {}, {}});
    if (title != "layer") tables.back().layers = kind.layers;
  }
  return tables;
}

void count_arrows(const TableView& view, CountedTable& table) {
  const Program& layer = table.made.layer;
  const Torus& torus = view.of.torus;
  const Ledger ledger =
      count(layer, check(layer, view.of, view.L, view.M), torus, view.of.numerics, view.of.model);
  const auto sent = [&](std::size_t i) {
    Sent one;
    if (!is_collective(layer.ops[i].kind)) return one;
    one.elements = elements_per_chip(ledger.steps[i], torus.chips(), view.paper);
    one.bytes = one.elements * ledger.steps[i].wire_bytes;
    return one;
  };
  std::vector<bool> seen(layer.ops.size(), false);
  for (const Arrow& arrow : table.made.arrows) {
    CountedArrow one{arrow, line_of(view.strategy->table(), arrow), {}, {}};
    for (std::size_t i = arrow.begin; i < arrow.end; ++i) {
      seen[i] = true;
      // A bias or a store at the first complete layout is not one of the arrow's ops.
      if (op_row(layer.ops[i].kind).suffix == 0) continue;
      one.steps.push_back({&layer.ops[i], sent(i)});
      one.sent.add(sent(i));
    }
    table.arrows.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    table.total.add(sent(i));
    if (!seen[i]) table.statistics.add(sent(i));
  }
}

std::vector<CountedTable> counted(const TableView& view) {
  std::vector<CountedTable> tables = partitioned_layers(view);
  for (CountedTable& table : tables) count_arrows(view, table);
  return tables;
}

std::string number(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

/// Formats "# TEXT      288" with the number ending in `column`; on a separate line if the text is
/// too long.
std::string ledger_line(const std::string& text, const std::string& count, std::size_t column) {
  std::string line = "# " + text;
  std::string out;
  if (line.size() + 1 + count.size() > column) {
    out = line + "\n";
    line = "#";
  }
  return fmt::format("{}{}{:>{}}\n", out, line, count, column - line.size());
}

/// Prints an arrow, and below it its ops in program notation.
std::string arrow_text(const CountedArrow& one) {
  const Arrow& a = one.arrow;
  std::string text =
      ledger_line(fmt::format("{}{}: {} -> {}", a.value, a.use.empty() ? "" : " for " + a.use,
                              a.from.to_string(), a.to.to_string()),
                  number(one.sent.elements), kWidth);
  for (const Step& step : one.steps)
    text +=
        ledger_line(fmt::format("    {} = {}", step.op->results[0].name, step.op->to_string()),
                    is_collective(step.op->kind) ? number(step.sent.elements) : "-", kWidth - 10);
  return text;
}

/// Prints what a layer sends in all.
std::string totals_text(const CountedTable& table, bool of_keys) {
  const bool whole = table.layers.empty();
  std::string text = "#\n";
  Sent arrows;
  for (const CountedArrow& arrow : table.arrows) arrows.add(arrow.sent);
  if (of_keys) {
    text += ledger_line("all arrows", number(arrows.elements), kWidth);
    text += ledger_line("norm statistics", number(table.statistics.elements), kWidth);
  }
  return text +
         ledger_line(fmt::format("{}, {} bytes{}", whole ? "the layer" : table.title,
                                 number(table.total.bytes), table.layers.size() > 1 ? " each" : ""),
                     number(table.total.elements), kWidth);
}

}  // namespace

std::string table_text(const TableView& view) {
  const std::vector<CountedTable> tables = counted(view);
  const CountedTable& table = tables[0];
  const LayoutTable& given = view.strategy->table();
  LayoutTable head = given;
  head.lines.clear();
  std::string text = print_layouts(head);
  if (text.size() > kWidth + 1) {  // including the newline
    head.description.clear();
    text = print_layouts(head) + "# " + wrapped(given.description, kWidth - 2, "# ") + "\n";
  }
  for (const LayoutLine& line : given.lines) {
    LayoutTable one;
    one.lines = {line};
    const std::string with_name = print_layouts(one);
    text += with_name.substr(with_name.find('\n') + 1);
    for (const CountedArrow& arrow : table.arrows)
      if (arrow.line == &line) text += arrow_text(arrow);
  }
  if (view.of.prefix.given())
    text += fmt::format("#\n# The caches of the {} prefix{}: {}\n", view.of.prefix.rows,
                        view.of.prefix.rows == 1 ? "" : "es", table.made.prefix_cache.to_string());
  const bool of_keys = view.of.model.rows == nullptr;
  text += "#\n# Added by the rules, in the order of " +
          (table.layers.empty() ? "the layer" : table.title) + ":\n";
  for (const CountedArrow& arrow : table.arrows)
    if (arrow.line == nullptr) text += arrow_text(arrow);
  text += totals_text(table, of_keys);
  for (std::size_t i = 1; i < tables.size(); ++i) {
    text += fmt::format("#\n# All arrows of {}:\n", tables[i].title);
    for (const CountedArrow& arrow : tables[i].arrows) text += arrow_text(arrow);
    text += totals_text(tables[i], of_keys);
  }
  return text;
}

namespace {

nlohmann::json json_of(const TableView& view, const CountedTable& table) {
  nlohmann::json arrows = nlohmann::json::array();
  for (const CountedArrow& one : table.arrows) {
    nlohmann::json steps = nlohmann::json::array();
    for (const Step& step : one.steps)
      steps.push_back({{"op", step.op->to_string()},
                       {"name", step.op->results[0].name},
                       {"elements_per_chip", step.sent.elements}});
    nlohmann::json arrow{{"value", one.arrow.value},
                         {"from", one.arrow.from.to_string()},
                         {"to", one.arrow.to.to_string()},
                         {"written", one.line != nullptr},
                         {"steps", steps},
                         {"elements_per_chip", one.sent.elements}};
    if (!one.arrow.use.empty()) arrow["use"] = one.arrow.use;
    arrows.push_back(std::move(arrow));
  }
  nlohmann::json out{{"strategy", view.strategy->to_string()},
                     {"description", view.strategy->table().description},
                     {"pass", view.phase == Phase::prefill ? "prefill" : "decode"},
                     {"layouts", print_layouts(view.strategy->table())},
                     {"arrows", arrows},
                     {"statistics_per_chip", table.statistics.elements},
                     {"elements_per_chip", table.total.elements},
                     {"bytes_per_chip", table.total.bytes}};
  if (view.of.prefix.given()) out["prefix_cache"] = table.made.prefix_cache.to_string();
  if (!table.layers.empty()) out["layers"] = table.layers;
  return out;
}

}  // namespace

std::vector<nlohmann::json> table_json(const TableView& view) {
  std::vector<nlohmann::json> entries;
  for (const CountedTable& table : counted(view)) entries.push_back(json_of(view, table));
  return entries;
}

}  // namespace shardproof::tools
