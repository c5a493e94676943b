#include "engine/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "weights/base/detail/words.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

constexpr std::array<std::pair<std::string_view, Role::Kind>, 10> kRoles{{
    {"raw ", Role::Kind::raw},
    {"scaled ", Role::Kind::scaled},
    {"unstored ", Role::Kind::unstored},
    {"stat ", Role::Kind::stat},
    {"weight ", Role::Kind::weight},
    {"input ", Role::Kind::input},
    {"constant ", Role::Kind::constant},
    {"previous ", Role::Kind::previous},
    {"prefix ", Role::Kind::prefix},
    {"joined ", Role::Kind::joined},
}};

constexpr std::string_view kLast = "last ";

}  // namespace

Role Role::parse(std::string_view text) {
  Role role;
  for (const auto& [word, kind] : kRoles)
    if (text.starts_with(word)) {
      role.kind = kind;
      text = trim(text.substr(word.size()));
      break;
    }
  if (text.starts_with(kLast)) {
    role.last = true;
    text = trim(text.substr(kLast.size()));
  }
  role.name = std::string(text);
  return role;
}

std::string Role::to_string() const {
  std::string text;
  for (const auto& [word, k] : kRoles)
    if (k == kind) text = word;
  if (last) text += kLast;
  return text + name;
}

const ValueRow* value_row(const Role& role, const ModelRows* rows) {
  const ValueRow* const row = value_row(role.name, rows);
  if (row == nullptr) return nullptr;
  bool fits = row->kind == ValueKind::checkpoint || row->kind == ValueKind::layer_input;
  if (role.kind == Role::Kind::weight) fits = false;
  if (role.kind == Role::Kind::stat) fits = row->kind == ValueKind::stat;
  if (role.kind == Role::Kind::input) fits = row->kind == ValueKind::input;
  if (role.kind == Role::Kind::constant) fits = row->kind == ValueKind::constant;
  if (role.kind == Role::Kind::prefix || role.kind == Role::Kind::joined) fits = row->cache;
  return fits ? row : nullptr;
}

std::string dims_of(const Role& role, const ModelRows* rows) {
  std::string letters;
  if (const WeightRow* const weight = weight_row(role.name, rows);
      weight != nullptr && role.kind == Role::Kind::weight)
    letters = weight->dims;
  if (const ValueRow* const value = value_row(role, rows)) letters = value->dims;
  if (role.kind == Role::Kind::prefix) {
    std::replace(letters.begin(), letters.end(), 'B', 'N');
    std::replace(letters.begin(), letters.end(), 'M', 'T');
  }
  if (role.last) {
    const auto at = letters.find('L');
    if (at == std::string::npos) return "";
    letters.erase(at, 1);
  }
  return letters;
}

NumberFormat wire_type(const ValueDecl& value, const Numerics& numerics,
                       const ModelConfig& config) {
  const Role& role = value.role;
  if (role.kind == Role::Kind::weight) {
    const WeightRow* const row = weight_row(role.name, config.rows.get());
    return row == nullptr ? NumberFormat::f32 : row->wire(numerics);
  }
  const ModelRows* const rows = config.rows.get();
  const ValueRow* const row = value_row(role, rows);
  const bool rounded = role.kind != Role::Kind::raw && role.kind != Role::Kind::scaled &&
                       role.kind != Role::Kind::unstored;
  if (value.layout.is_partial()) return partial_wire_type(role, numerics, rows);
  if (row == nullptr || !rounded) return NumberFormat::f32;
  return row->wire(numerics, config);
}

NumberFormat acc_type(const Role& role, const Numerics& numerics, const ModelRows* rows) {
  const ValueRow* const row = value_row(role, rows);
  return row != nullptr && row->acc ? numerics.acc : NumberFormat::f32;
}

NumberFormat partial_wire_type(const Role& role, const Numerics& numerics, const ModelRows* rows) {
  const ValueRow* const row = value_row(role, rows);
  return row != nullptr && row->wire_rounds ? numerics.wire : NumberFormat::f32;
}

const Op* Program::producer(std::string_view value) const {
  for (const Op& op : ops)
    for (const ValueDecl& result : op.results)
      if (result.name == value) return &op;
  return nullptr;
}

std::vector<Ring> Program::rings(const Op& einsum) const {
  std::vector<Ring> rings(einsum.spec.terms.size());
  for (const std::size_t arg : einsum.looped) {
    const Op* const gather = producer(einsum.args.at(arg));
    if (gather != nullptr && gather->kind == OpKind::all_gather)
      rings.at(arg / 2) = {gather->dim, gather->axes, gather->loop};
  }
  return rings;
}

const ValueDecl& Program::declared(std::string_view value) const {
  for (const ValueDecl& input : inputs)
    if (input.name == value) return input;
  if (const Op* op = producer(value))
    for (const ValueDecl& result : op->results)
      if (result.name == value) return result;
  throw Error("program_c1", fmt::format("{} is never defined", value));
}

std::string Program::where(const Line& line) const {
  if (source.file.empty()) return "";
  return line.number > 0 ? fmt::format("{} line {}: ", source.file, line.number)
                         : source.file + ": ";
}

}  // namespace shardproof
