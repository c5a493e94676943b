// The parameters of an op as text, by their form.
#include "engine/program/detail/parameters_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>
#include <utility>

#include "weights/base/detail/word_table.h"
#include "weights/base/detail/words.h"

namespace shardproof {
namespace {

constexpr std::string_view kZeros = " zeros", kWhere = " where ", kAnd = " and ",
                           kByMax = " by max";

constexpr std::string_view kLoops =
    "write AXES, or AXES loop LOOP with one of one-way, both-full, both-half";

/// The parameters of a form, as messages print them.
constexpr std::pair<std::string_view, Parameters> kForms[] = {
    {"DIM, AXES", Parameters::dim_axes},
    {"DIM, AXES) or ..., AXES loop LOOP", Parameters::dim_axes_loop},
    {"AXES", Parameters::axes},
    {"AXES) or ..., AXES by max", Parameters::axes_by_max},
    {"FROM->TO, AXES) or ..., AXES as AXES", Parameters::dim_dim_axes},
    {"DIM, AXES->AXES", Parameters::dim_axes_to_axes},
    {"DIM->LAYOUT) or ..., EXTENTS", Parameters::dim_to_layout},
    {"DIMS->DIM", Parameters::dims_to_dim},
    {"CONSTANT", Parameters::constant},
    {"LETTERS", Parameters::letters},
    {"DIM, COUNT", Parameters::letter_count},
    {"DIM, half CHANNELS) or ..., interleaved CHANNELS", Parameters::pairs},
    {"VALUE, POSITIONS) or ..., POSITIONS zeros", Parameters::slots}};

/// The number of parameters after the first operand.
std::size_t parameter_count(Parameters form) {
  switch (form) {
    case Parameters::dim_axes:
    case Parameters::dim_axes_loop:
    case Parameters::dim_dim_axes:
    case Parameters::dim_axes_to_axes:
    case Parameters::letter_count:
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

}  // namespace

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
    case Parameters::axes_by_max: {
      std::string_view axes = args[1];
      op.by_max = axes.ends_with(kByMax);
      if (op.by_max) axes.remove_suffix(kByMax.size());
      op.axes = Axes::parse(trim(axes));
      return;
    }
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
      if (extent)
        for (const std::string_view word : split(args[2], " ")) {
          op.parts.push_back(whole(statement, word));
          if (op.parts.back() == 0) throw statement.malformed("an extent is at least 1");
        }
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
    case Parameters::letter_count:
      op.dim = statement.letter(args[1]);
      op.count = whole(statement, args[2]);
      return;
    case Parameters::pairs: {
      op.dim = statement.letter(args[1]);
      const auto words = split(args[2], " ");
      if (words.size() != 2 || (words[0] != "half" && words[0] != "interleaved"))
        throw statement.malformed("write half CHANNELS or interleaved CHANNELS");
      op.parameter = std::string(words[0]);
      op.count = whole(statement, words[1]);
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
    case Parameters::axes_by_max:
      return fmt::format(", {}{}", op.axes.to_string(), op.by_max ? kByMax : "");
    case Parameters::dim_dim_axes:
      return fmt::format(", {}->{}, {}", op.dim, op.to, op.axes.to_string()) +
             (op.as == op.axes ? "" : " as " + op.as.to_string());
    case Parameters::dim_axes_to_axes:
      return fmt::format(", {}, {}->{}", op.dim, op.axes.to_string(), op.as.to_string());
    case Parameters::dim_to_layout:
      return fmt::format(", {}->{}", op.dim, op.parameter) +
             (op.parts.empty() ? "" : fmt::format(", {}", fmt::join(op.parts, " ")));
    case Parameters::dims_to_dim:
      return fmt::format(", {}->{}", op.parameter, op.to);
    case Parameters::constant:
    case Parameters::letters:
      return ", " + op.parameter;
    case Parameters::letter_count:
      return fmt::format(", {}, {}", op.dim, op.count);
    case Parameters::pairs:
      return fmt::format(", {}, {} {}", op.dim, op.parameter, op.count);
    case Parameters::slots:
      return std::string(op.zeros ? kZeros : "");
    case Parameters::none:
    case Parameters::contraction:
    case Parameters::expression:
      break;
  }
  return "";
}

std::string_view take_where(const Statement& statement, std::string_view text,
                            std::vector<std::string>& indicators) {
  const auto at = text.rfind(kWhere);
  if (at == std::string_view::npos) return text;
  for (const std::string_view name : split(text.substr(at + kWhere.size()), kAnd))
    indicators.push_back(statement.name(trim(name)));
  return trim(text.substr(0, at));
}

void put_where(Op& op, const std::vector<std::string>& indicators) {
  op.args.insert(op.args.end(), indicators.begin(), indicators.end());
  op.indicators = indicators.size();
}

std::string where_text(const Op& op) {
  std::string text;
  for (std::size_t i = op.operands(); i < op.args.size(); ++i)
    text += fmt::format("{}{}", text.empty() ? kWhere : kAnd, op.args[i]);
  return text;
}

}  // namespace shardproof
