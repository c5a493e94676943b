// The call of an op as text: read and printed by the form of its parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/program/detail/map_text.h"
#include "engine/program/detail/statement.h"
#include "weights/base/detail/word_table.h"
#include "weights/base/detail/words.h"
#include "weights/model/model_config.h"

namespace shardproof {
namespace {

constexpr std::string_view kZeros = " zeros", kWhere = " where ";

constexpr std::string_view kLoops =
    "write AXES, or AXES loop LOOP with one of one-way, both-full, both-half";

/// The parameters of a form, as messages print them.
constexpr std::pair<std::string_view, Parameters> kForms[] = {
    {"DIM, AXES", Parameters::dim_axes},
    {"DIM, AXES) or ..., AXES loop LOOP", Parameters::dim_axes_loop},
    {"AXES", Parameters::axes},
    {"FROM->TO, AXES) or ..., AXES as AXES", Parameters::dim_dim_axes},
    {"DIM, AXES->AXES", Parameters::dim_axes_to_axes},
    {"DIM->LAYOUT) or ..., EXTENT", Parameters::dim_to_layout},
    {"DIMS->DIM", Parameters::dims_to_dim},
    {"CONSTANT", Parameters::constant},
    {"LETTERS", Parameters::letters},
    {"DIM, half CHANNELS) or ..., interleaved CHANNELS", Parameters::pairs},
    {"VALUE, POSITIONS) or ..., POSITIONS zeros", Parameters::slots}};

/// The number of parameters after the first operand.
std::size_t parameter_count(Parameters form) {
  switch (form) {
    case Parameters::dim_axes:
    case Parameters::dim_axes_loop:
    case Parameters::dim_dim_axes:
    case Parameters::dim_axes_to_axes:
    case Parameters::pairs:
    case Parameters::slots:
      return 2;
    default:
      return 1;
  }
}

/// Reads a whole number of at most 2^31.
std::int64_t whole(const Statement& statement, std::string_view text) {
  const auto number = number_in(text);
  if (!number || !(*number >= 0 && *number <= 0x1p31) || *number != std::floor(*number))
    throw statement.malformed(fmt::format("'{}' is not a whole number", text));
  return static_cast<std::int64_t>(*number);
}

/// Reads what follows the first operand: parameters or more operands.
void read_parameters(const Statement& statement, Op& op,
                     const std::vector<std::string_view>& args) {
  const Parameters form = op_row(op.kind).parameters;
  const bool extent = form == Parameters::dim_to_layout && args.size() == 3;
  if (form != Parameters::none && !extent && args.size() != 1 + parameter_count(form))
    throw statement.malformed(
        fmt::format("write {}(VALUE, {})", to_string(op.kind), word_in(kForms, form)));
  switch (form) {
    case Parameters::dim_axes:
      op.dim = statement.letter(args[1]);
      op.axes = Axes::parse(args[2]);
      return;
    case Parameters::dim_axes_loop: {
      op.dim = statement.letter(args[1]);
      const auto words = split(args[2], " ");
      if (words.size() > 1 && words.size() != 3) throw statement.malformed(kLoops);
      op.axes = Axes::parse(words[0]);
      if (words.size() == 1) return;
      for (Loop loop : {Loop::one_way, Loop::both_full, Loop::both_half})
        if (words[1] == "loop" && words[2] == to_string(loop)) op.loop = loop;
      if (op.loop == Loop::none) throw statement.malformed(kLoops);
      return;
    }
    case Parameters::axes:
      op.axes = Axes::parse(args[1]);
      return;
    case Parameters::dim_dim_axes: {
      const auto [from, to] = statement.pair(args[1], "->");
      op.dim = statement.letter(from);
      op.to = statement.letter(to);
      const auto order = split(args[2], " as ");
      if (order.size() > 2) throw statement.malformed("write AXES or AXES as AXES");
      op.axes = Axes::parse(order.front());
      op.as = Axes::parse(order.back());
      return;
    }
    case Parameters::dim_axes_to_axes: {
      op.dim = statement.letter(args[1]);
      const auto [old_axes, new_axes] = statement.pair(args[2], "->");
      op.axes = Axes::parse(old_axes);
      op.as = Axes::parse(new_axes);
      return;
    }
    case Parameters::dim_to_layout: {
      const auto [from, to] = statement.pair(args[1], "->");
      op.dim = statement.letter(from);
      op.parameter = Layout::parse(to).to_string();
      if (extent) op.parts = whole(statement, args[2]);
      if (extent && op.parts == 0) throw statement.malformed("an extent is at least 1");
      return;
    }
    case Parameters::dims_to_dim: {
      const auto [from, to] = statement.pair(args[1], "->");
      op.parameter = std::string(from);
      op.to = statement.letter(to);
      return;
    }
    case Parameters::constant:
      op.parameter = statement.name(args[1]);
      return;
    case Parameters::letters:
      for (std::size_t i = 0; i < args[1].size(); ++i)
        op.parameter += statement.letter(args[1].substr(i, 1));
      if (op.parameter.empty()) throw statement.malformed("no letters are given");
      return;
    case Parameters::pairs: {
      op.dim = statement.letter(args[1]);
      const auto words = split(args[2], " ");
      if (words.size() != 2 || (words[0] != "half" && words[0] != "interleaved"))
        throw statement.malformed("write half CHANNELS or interleaved CHANNELS");
      op.parameter = std::string(words[0]);
      op.channels = whole(statement, words[1]);
      return;
    }
    case Parameters::slots: {
      std::string_view positions = args[2];
      if (positions.ends_with(kZeros)) {
        op.zeros = true;
        positions.remove_suffix(kZeros.size());
      }
      op.args.push_back(statement.name(args[1]));
      op.args.push_back(statement.name(trim(positions)));
      return;
    }
    case Parameters::none:
    case Parameters::contraction:
    case Parameters::expression:
      for (std::size_t i = 1; i < args.size(); ++i) op.args.push_back(statement.name(args[i]));
      return;
  }
}

/// Takes " where w" off the end of an operand.
std::string_view take_where(const Statement& statement, std::string_view text,
                            std::string& indicator) {
  const auto at = text.rfind(kWhere);
  if (at == std::string_view::npos) return text;
  indicator = statement.name(trim(text.substr(at + kWhere.size())));
  return trim(text.substr(0, at));
}

/// Appends the indicator, if there is one, to the operands.
void put_where(Op& op, const std::string& indicator) {
  if (indicator.empty()) return;
  op.args.push_back(indicator);
  op.masked = true;
}

/// Reads "x", or "loop x" for an operand whose chunks travel around a ring.
void read_operand(const Statement& statement, Op& op, std::string_view text) {
  constexpr std::string_view kLoop = "loop ";
  if (text.starts_with(kLoop)) {
    op.looped.push_back(op.args.size());
    text = trim(text.substr(kLoop.size()));
  }
  op.args.push_back(statement.name(text));
}

/// Reads "BLE,EF->BLF; x, w", a pair of operands per term.
void read_contraction(const Statement& statement, Op& op, std::string_view inside) {
  auto parts = split(inside, ";");
  op.spec = EinsumSpec::parse(parts[0]);
  if (parts.size() != op.spec.terms.size() + 1)
    throw statement.malformed("write einsum(SPEC; A, B), one pair for each term");
  std::string indicator;
  parts.back() = take_where(statement, parts.back(), indicator);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto [a, b] = statement.pair(parts[i], ",");
    read_operand(statement, op, a);
    read_operand(statement, op, b);
  }
  put_where(op, indicator);
}

std::string parameters_text(const Op& op) {
  switch (op_row(op.kind).parameters) {
    case Parameters::dim_axes:
      return fmt::format(", {}, {}", op.dim, op.axes.to_string());
    case Parameters::dim_axes_loop:
      return fmt::format(", {}, {}{}{}", op.dim, op.axes.to_string(),
                         op.loop == Loop::none ? "" : " loop ",
                         op.loop == Loop::none ? "" : to_string(op.loop));
    case Parameters::axes:
      return fmt::format(", {}", op.axes.to_string());
    case Parameters::dim_dim_axes:
      return fmt::format(", {}->{}, {}", op.dim, op.to, op.axes.to_string()) +
             (op.as == op.axes ? "" : " as " + op.as.to_string());
    case Parameters::dim_axes_to_axes:
      return fmt::format(", {}, {}->{}", op.dim, op.axes.to_string(), op.as.to_string());
    case Parameters::dim_to_layout:
      return fmt::format(", {}->{}", op.dim, op.parameter) +
             (op.parts > 0 ? fmt::format(", {}", op.parts) : "");
    case Parameters::dims_to_dim:
      return fmt::format(", {}->{}", op.parameter, op.to);
    case Parameters::constant:
    case Parameters::letters:
      return ", " + op.parameter;
    case Parameters::pairs:
      return fmt::format(", {}, {} {}", op.dim, op.parameter, op.channels);
    case Parameters::slots:
      return std::string(op.zeros ? kZeros : "");
    case Parameters::none:
    case Parameters::contraction:
    case Parameters::expression:
      break;
  }
  return "";
}

}  // namespace

Op Statement::op(std::string_view call) const {
  const auto open = call.find('(');
  if (open == std::string_view::npos || call.back() != ')') throw malformed("write OP(ARGUMENTS)");
  const std::string_view word = trim(call.substr(0, open));
  const std::string_view inside = call.substr(open + 1, call.size() - open - 2);
  const OpRow* const known = find_op(word);
  if (known == nullptr) {
    std::vector<std::string> legal;
    for (const OpRow& row : all_ops()) legal.emplace_back(row.name);
    const std::string near = nearest(word, legal);
    throw malformed(fmt::format("'{}' is not an op{}", word,
                                near.empty() ? "" : ", did you mean " + near + "?"));
  }
  Op op;
  op.kind = known->kind;
  if (known->parameters == Parameters::contraction) {
    read_contraction(*this, op, inside);
    return op;
  }
  if (known->parameters == Parameters::expression) {
    read_map(*this, op, inside);
    return op;
  }
  const auto args = split(inside, ",");
  std::string indicator;
  op.args.push_back(name(known->takes_where ? take_where(*this, args[0], indicator) : args[0]));
  read_parameters(*this, op, args);
  put_where(op, indicator);
  return op;
}

bool Op::loops_over(std::size_t arg) const {
  return std::find(looped.begin(), looped.end(), arg) != looped.end();
}

std::string Op::to_string() const {
  std::string text = std::string(shardproof::to_string(kind)) + "(";
  const std::string where = masked ? fmt::format("{}{}", kWhere, args.back()) : "";
  if (op_row(kind).parameters == Parameters::contraction) {
    text += spec.to_string();
    for (std::size_t i = 0; i < operands(); ++i)
      text +=
          fmt::format("{}{}{}", i % 2 == 0 ? "; " : ", ", loops_over(i) ? "loop " : "", args[i]);
    return text + where + ")";
  }
  if (expression) return text + map_text(*this) + ")";
  for (std::size_t i = 0; i < operands(); ++i) text += (i > 0 ? ", " : "") + args[i];
  return text + where + parameters_text(*this) + ")";
}

}  // namespace shardproof
