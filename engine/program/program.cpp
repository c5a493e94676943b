#include "engine/program/program.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "weights/error.h"
#include "weights/words.h"

namespace shardproof {
namespace {

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

const ValueRow* value_row(const Meaning& meaning) {
  const ValueRow* const row = value_row(meaning.name);
  if (row == nullptr) return nullptr;
  bool fits = row->kind == ValueKind::checkpoint || row->kind == ValueKind::layer_input;
  if (meaning.kind == Meaning::Kind::weight) fits = false;
  if (meaning.kind == Meaning::Kind::stat) fits = row->kind == ValueKind::stat;
  if (meaning.kind == Meaning::Kind::input) fits = row->kind == ValueKind::input;
  if (meaning.kind == Meaning::Kind::constant) fits = row->kind == ValueKind::constant;
  return fits ? row : nullptr;
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

}  // namespace shardproof
