#include "engine/program/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "engine/program/rethrow.h"
#include "weights/error.h"
#include "weights/model_config.h"
#include "weights/words.h"

namespace shardproof {
namespace {

constexpr std::array<std::pair<std::string_view, OpKind>, 29> kOps{{
    {"all_gather", OpKind::all_gather},
    {"reduce_scatter", OpKind::reduce_scatter},
    {"all_reduce", OpKind::all_reduce},
    {"all_to_all", OpKind::all_to_all},
    {"permute_axes", OpKind::permute_axes},
    {"slice", OpKind::slice},
    {"last", OpKind::last},
    {"split_dim", OpKind::split_dim},
    {"merge_dim", OpKind::merge_dim},
    {"einsum", OpKind::einsum},
    {"embed_lookup", OpKind::embed_lookup},
    {"add", OpKind::add},
    {"scale", OpKind::scale},
    {"scale_by", OpKind::scale_by},
    {"divide_by", OpKind::divide_by},
    {"bias", OpKind::bias},
    {"center", OpKind::center},
    {"store", OpKind::store},
    {"norm", OpKind::norm},
    {"rope", OpKind::rope},
    {"rope_interleaved", OpKind::rope_interleaved},
    {"swiglu", OpKind::swiglu},
    {"geglu", OpKind::geglu},
    {"gelu", OpKind::gelu},
    {"gelu_erf", OpKind::gelu_erf},
    {"append", OpKind::append},
    {"attend", OpKind::attend},
    {"local_argmax", OpKind::local_argmax},
    {"argmax", OpKind::argmax},
}};

constexpr std::array<std::pair<std::string_view, Meaning::Kind>, 7> kMeanings{{
    {"raw ", Meaning::Kind::raw},
    {"unstored ", Meaning::Kind::unstored},
    {"stat ", Meaning::Kind::stat},
    {"weight ", Meaning::Kind::weight},
    {"input ", Meaning::Kind::input},
    {"constant ", Meaning::Kind::constant},
    {"previous ", Meaning::Kind::previous},
}};

constexpr std::string_view kLast = "last ";

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
          c == '.'))
      return false;
  return true;
}

/// One line being read: throws with the line's own text.
class Statement {
 public:
  Statement(std::string_view text, int number) : text_(text), line_{number} {}

  Error malformed(std::string_view why) const {
    return Error("program_c0", fmt::format("'{}': {}", text_, why));
  }

  std::string name(std::string_view text) const {
    if (!is_name(text)) throw malformed(fmt::format("'{}' is no name of a value", text));
    return std::string(text);
  }

  char letter(std::string_view text) const {
    if (text.size() != 1 || text[0] < 'A' || text[0] > 'Z')
      throw malformed(fmt::format("'{}' is no dim letter", text));
    return text[0];
  }

  std::pair<std::string_view, std::string_view> pair(std::string_view text,
                                                     std::string_view by) const {
    const auto parts = split(text, by);
    if (parts.size() != 2) throw malformed(fmt::format("'{}' should read A{}B", text, by));
    return {parts[0], parts[1]};
  }

  /// "x : BLE_xzy".
  Result declaration(std::string_view text) const {
    const auto colon = text.find(" : ");
    if (colon == std::string_view::npos) throw malformed("write NAME : LAYOUT");
    Result result;
    result.name = name(trim(text.substr(0, colon)));
    result.layout = Layout::parse(trim(text.substr(colon + 3)));
    result.line = line_;
    return result;
  }

  Meaning meaning(std::string_view text) const {
    Meaning meaning = Meaning::parse(text);
    if (!is_name(meaning.name)) throw malformed(fmt::format("'{}' is no meaning", text));
    return meaning;
  }

  Op op(std::string_view call) const;
  void parameters(Op& op, const std::vector<std::string_view>& args) const;

 private:
  std::string_view text_;
  Line line_;
};

void Statement::parameters(Op& op, const std::vector<std::string_view>& args) const {
  const auto want = [&](std::size_t count, std::string_view form) {
    if (args.size() != count) throw malformed(fmt::format("write {}", form));
  };
  switch (op.kind) {
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::slice:
      want(3, fmt::format("{}(VALUE, DIM, AXES)", to_string(op.kind)));
      op.dim = letter(args[1]);
      op.axes = Axes::parse(args[2]);
      break;
    case OpKind::all_reduce:
      want(2, "all_reduce(VALUE, AXES)");
      op.axes = Axes::parse(args[1]);
      break;
    case OpKind::all_to_all: {
      want(3, "all_to_all(VALUE, FROM->TO, AXES) or ..., AXES as AXES)");
      const auto [from, to] = pair(args[1], "->");
      op.dim = letter(from);
      op.to = letter(to);
      const auto order = split(args[2], " as ");
      if (order.size() > 2) throw malformed("write AXES or AXES as AXES");
      op.axes = Axes::parse(order.front());
      op.as = Axes::parse(order.back());
      break;
    }
    case OpKind::permute_axes: {
      want(3, "permute_axes(VALUE, DIM, AXES->AXES)");
      op.dim = letter(args[1]);
      const auto [old_axes, new_axes] = pair(args[2], "->");
      op.axes = Axes::parse(old_axes);
      op.as = Axes::parse(new_axes);
      break;
    }
    case OpKind::split_dim: {
      want(2, "split_dim(VALUE, DIM->LAYOUT)");
      const auto [from, to] = pair(args[1], "->");
      op.dim = letter(from);
      op.parameter = Layout::parse(to).to_string();
      break;
    }
    case OpKind::merge_dim: {
      want(2, "merge_dim(VALUE, DIMS->DIM)");
      const auto [from, to] = pair(args[1], "->");
      op.parameter = std::string(from);
      op.to = letter(to);
      break;
    }
    case OpKind::scale_by:
    case OpKind::divide_by:
      want(2, fmt::format("{}(VALUE, CONSTANT)", to_string(op.kind)));
      op.parameter = name(args[1]);
      break;
    default:
      for (std::size_t i = 1; i < args.size(); ++i) op.args.push_back(name(args[i]));
  }
}

Op Statement::op(std::string_view call) const {
  const auto open = call.find('(');
  if (open == std::string_view::npos || call.back() != ')') throw malformed("write OP(ARGUMENTS)");
  const std::string_view word = trim(call.substr(0, open));
  const std::string_view inside = call.substr(open + 1, call.size() - open - 2);
  Op op;
  bool known = false;
  for (const auto& [name, kind] : kOps)
    if (name == word) {
      op.kind = kind;
      known = true;
    }
  if (!known) {
    std::vector<std::string> legal;
    for (const auto& [name, kind] : kOps) legal.emplace_back(name);
    const std::string near = nearest(word, legal);
    throw malformed(
        fmt::format("'{}' is no op{}", word, near.empty() ? "" : ", did you mean " + near + "?"));
  }
  if (op.kind == OpKind::einsum) {
    const auto parts = split(inside, ";");
    op.spec = EinsumSpec::parse(parts[0]);
    if (parts.size() != op.spec.terms.size() + 1)
      throw malformed("write einsum(SPEC; A, B), one pair for each term");
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const auto [a, b] = pair(parts[i], ",");
      op.args.push_back(name(a));
      op.args.push_back(name(b));
    }
    return op;
  }
  const auto args = split(inside, ",");
  op.args.push_back(name(args[0]));
  parameters(op, args);
  return op;
}

void parse_line(std::string_view line, int number, Program& program) {
  line = trim(line.substr(0, line.find('#')));
  if (line.empty()) return;
  const Statement statement(line, number);
  if (line.starts_with("output ")) {
    if (program.output_line.number != 0)
      throw statement.malformed("output stands once, and names all that a program hands on");
    for (std::string_view value : split(line.substr(7), ","))
      program.outputs.push_back(statement.name(value));
    program.output_line = {number};
    return;
  }
  const auto is = line.rfind(" is ");
  if (is == std::string_view::npos)
    throw statement.malformed("every value says what it is: end the line with 'is MEANING'");
  const std::string_view meanings = line.substr(is + 4);
  const std::string_view before = trim(line.substr(0, is));
  if (before.starts_with("input ")) {
    Result input = statement.declaration(before.substr(6));
    input.meaning = statement.meaning(trim(meanings));
    program.inputs.push_back(std::move(input));
    return;
  }
  const auto equals = before.find(" = ");
  if (equals == std::string_view::npos)
    throw statement.malformed("write NAME : LAYOUT = OP(ARGUMENTS) is MEANING");
  Op op = statement.op(trim(before.substr(equals + 3)));
  for (std::string_view declaration : split(before.substr(0, equals), ","))
    op.results.push_back(statement.declaration(declaration));
  const auto words = split(meanings, ",");
  if (words.size() != op.results.size())
    throw statement.malformed(
        fmt::format("{} results but {} meanings", op.results.size(), words.size()));
  for (std::size_t i = 0; i < words.size(); ++i)
    op.results[i].meaning = statement.meaning(words[i]);
  program.ops.push_back(std::move(op));
}

}  // namespace

Meaning Meaning::parse(std::string_view text) {
  Meaning meaning;
  for (const auto& [word, kind] : kMeanings)
    if (text.starts_with(word)) {
      meaning.kind = kind;
      text = trim(text.substr(word.size()));
      break;
    }
  if (text.starts_with(kLast)) {
    meaning.last = true;
    text = trim(text.substr(kLast.size()));
  }
  meaning.name = std::string(text);
  return meaning;
}

std::string Meaning::to_string() const {
  std::string text;
  for (const auto& [word, k] : kMeanings)
    if (k == kind) text = word;
  if (last) text += kLast;
  return text + name;
}

std::vector<OpKind> all_ops() {
  std::vector<OpKind> all;
  for (const auto& [word, kind] : kOps) all.push_back(kind);
  return all;
}

std::string_view to_string(OpKind kind) {
  for (const auto& [name, k] : kOps)
    if (k == kind) return name;
  return "";
}

bool is_collective(OpKind kind) { return kind <= OpKind::permute_axes; }

std::string Op::to_string() const {
  std::string text = std::string(shardproof::to_string(kind)) + "(";
  if (kind == OpKind::einsum) {
    text += spec.to_string();
    for (std::size_t i = 0; i + 1 < args.size(); i += 2)
      text += "; " + args[i] + ", " + args[i + 1];
    return text + ")";
  }
  for (std::size_t i = 0; i < args.size(); ++i) text += (i > 0 ? ", " : "") + args[i];
  switch (kind) {
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::slice:
      text += fmt::format(", {}, {}", dim, axes.to_string());
      break;
    case OpKind::all_reduce:
      text += fmt::format(", {}", axes.to_string());
      break;
    case OpKind::all_to_all:
      text += fmt::format(", {}->{}, {}", dim, to, axes.to_string());
      if (!(as == axes)) text += " as " + as.to_string();
      break;
    case OpKind::permute_axes:
      text += fmt::format(", {}, {}->{}", dim, axes.to_string(), as.to_string());
      break;
    case OpKind::split_dim:
      text += fmt::format(", {}->{}", dim, parameter);
      break;
    case OpKind::merge_dim:
      text += fmt::format(", {}->{}", parameter, to);
      break;
    case OpKind::scale_by:
    case OpKind::divide_by:
      text += ", " + parameter;
      break;
    default:
      break;
  }
  return text + ")";
}

const Op* Program::producer(std::string_view value) const {
  for (const Op& op : ops)
    for (const Result& result : op.results)
      if (result.name == value) return &op;
  return nullptr;
}

const Result& Program::declared(std::string_view value) const {
  for (const Result& input : inputs)
    if (input.name == value) return input;
  if (const Op* op = producer(value))
    for (const Result& result : op->results)
      if (result.name == value) return result;
  throw Error("program_c1", fmt::format("{} is never made", value));
}

std::string Program::where(const Line& line) const {
  if (source.file.empty()) return "";
  return line.number > 0 ? fmt::format("{} line {}: ", source.file, line.number)
                         : source.file + ": ";
}

Program parse_program(std::string_view name, std::string_view text, std::string_view file) {
  Program program;
  program.name = std::string(name);
  program.source.file = std::string(file);
  int number = 0;
  for (std::string_view line : split(text, "\n")) {
    try {
      parse_line(line, ++number, program);
    } catch (const Error& error) {
      if (file.empty()) rethrow_about(error, fmt::format("line {}: ", number));
      rethrow_about(error, program.where({number}), " (docs/program.md)");
    }
  }
  return program;
}

std::string print_program(const Program& program) {
  std::string text;
  for (const Result& input : program.inputs)
    text += fmt::format("input {} : {} is {}\n", input.name, input.layout.to_string(),
                        input.meaning.to_string());
  for (const Op& op : program.ops) {
    std::string declarations, meanings;
    for (const Result& result : op.results) {
      const std::string_view comma = declarations.empty() ? "" : ", ";
      declarations += fmt::format("{}{} : {}", comma, result.name, result.layout.to_string());
      meanings += fmt::format("{}{}", comma, result.meaning.to_string());
    }
    text += fmt::format("{} = {} is {}\n", declarations, op.to_string(), meanings);
  }
  if (!program.outputs.empty())
    text += fmt::format("output {}\n", fmt::join(program.outputs, ", "));
  return text;
}

}  // namespace shardproof
