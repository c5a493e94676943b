#include "engine/program/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/program/loop_text.h"

namespace shardproof {
namespace {

constexpr std::size_t kColumns = 80;

std::string local_text(const Type& type, const Torus& torus) {
  return fmt::format("{}", fmt::join(local_shape(type.layout, type.shape, torus), "x"));
}

std::string kilo(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

/// Wraps text at spaces to lines of at most 80 columns; the first line is indented by `first`.
std::string wrapped(std::string rest, std::size_t first, std::size_t others) {
  std::string text;
  std::size_t indent = first;
  while (indent + rest.size() > kColumns) {
    const std::size_t at = rest.rfind(' ', kColumns - indent);
    if (at == std::string::npos || at == 0) break;
    text += std::string(indent, ' ') + rest.substr(0, at) + "\n";
    rest = rest.substr(at + 1);
    indent = others;
  }
  return text + std::string(indent, ' ') + rest + "\n";
}

/// "NAME : LAYOUT = OP(...)", broken before '=' if it exceeds 80 columns.
std::string statement(const Op& op) {
  std::string left;
  for (const ValueDecl& r : op.results)
    left += fmt::format("{}{} : {}", left.empty() ? "" : ", ", r.name, r.layout.to_string());
  const std::string call = "= " + op.to_string();
  if (left.size() + 1 + call.size() <= kColumns) return left + " " + call + "\n";
  return wrapped(left, 0, 6) + wrapped(call, 4, 6);
}

}  // namespace

std::string explain(const Program& program, const std::map<std::string, Type>& types,
                    const Torus& torus, const Numerics& numerics, const ModelConfig& config,
                    const ExplainOptions& options) {
  const Ledger ledger = count(program, types, torus, numerics, config);
  std::string text;
  // Long names take space from the layouts as far as possible.
  std::size_t name = 7, layout = 0;
  for (const ValueDecl& input : program.inputs) {
    name = std::max(name, input.name.size());
    layout = std::max(layout, input.layout.to_string().size());
  }
  layout = std::max(layout + 2, std::size_t{31} - std::min<std::size_t>(name, 31));
  for (const ValueDecl& input : program.inputs)
    text += fmt::format("input {:<{}} {:<{}}{:<16}{}\n", input.name, name, input.layout.to_string(),
                        layout, local_text(types.at(input.name), torus), input.role.to_string());
  text += "\n";
  double elements = 0.0;
  double bytes = 0.0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const StepCost& cost = ledger.steps[i];
    text += statement(op);
    std::string what;
    for (const ValueDecl& r : op.results)
      what += fmt::format("{}{} {}", what.empty() ? "" : ", ", r.role.to_string(),
                          local_text(types.at(r.name), torus));
    text += wrapped(what, 4, 6);
    if (!is_collective(op.kind)) continue;
    const double sent = elements_per_chip(cost, torus.chips(), options.paper);
    elements += sent;
    bytes += sent * cost.wire_bytes;
    text += fmt::format("    sends {} = {}, {} bytes\n", formula(cost, options.paper), kilo(sent),
                        kilo(sent * cost.wire_bytes));
    if (op.loop != Loop::none) text += wrapped(loop_text(op, torus), 4, 6);
  }
  text += fmt::format("\n{}: each chip sends {} elements, {} bytes; {} FLOPs a chip\n",
                      program.name, kilo(elements), kilo(bytes),
                      kilo(static_cast<double>(ledger.flops()) / torus.chips()));
  return text;
}

}  // namespace shardproof
