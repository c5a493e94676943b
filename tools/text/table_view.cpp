#include "tools/text/table_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

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
  std::vector<CountedArrow> arrows;
  Sent statistics, total;
};

/// Returns the table line of an arrow; null if the rules add the arrow.
const LayoutLine* line_of(const LayoutTable& table, const Arrow& arrow) {
  if (!arrow.use.empty()) return nullptr;
  const LayoutLine* line = table.find(arrow.value);
  const auto leads_there = [&](const LayoutLine& one) {
    return std::any_of(one.steps.begin(), one.steps.end(),
                       [&](const LayoutStep& step) { return step.layout == arrow.to; });
  };
  if (line != nullptr && leads_there(*line)) return line;
  for (const LayoutLine& one : table.lines)  // `norm for k : ...`
    if (one.value == arrow.value && !one.use.empty() && leads_there(one)) return &one;
  return line != nullptr ? line : table.find("weights");  // a weight without its own line
}

CountedTable counted(const TableView& view) {
  CountedTable table;
  table.made = partitioned(view.of, *view.strategy, view.phase);
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
  return table;
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

}  // namespace

std::string table_text(const TableView& view) {
  const CountedTable table = counted(view);
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
  text += "#\n# Added by the rules, in the order of the layer:\n";
  for (const CountedArrow& arrow : table.arrows)
    if (arrow.line == nullptr) text += arrow_text(arrow);
  text += "#\n";
  Sent arrows;
  for (const CountedArrow& arrow : table.arrows) arrows.add(arrow.sent);
  text += ledger_line("all arrows", number(arrows.elements), kWidth);
  text += ledger_line("norm statistics", number(table.statistics.elements), kWidth);
  text += ledger_line(fmt::format("the layer, {} bytes", number(table.total.bytes)),
                      number(table.total.elements), kWidth);
  return text;
}

nlohmann::json table_json(const TableView& view) {
  const CountedTable table = counted(view);
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
  return out;
}

}  // namespace shardproof::tools
