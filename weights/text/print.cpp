// The canonical form of model texts.
#include <fmt/format.h>

#include "weights/text/model_text.h"

namespace shardproof {
namespace {

std::string weight_text(const TextWeight& weight) {
  std::string text;
  if (weight.kind != TextWeightKind::by_use) text += fmt::format(" is {}", to_string(weight.kind));
  for (const std::string& word : weight.parameters) text += " " + word;
  if (!weight.from.empty()) text += " from " + weight.from;
  return text;
}

std::string guard_text(const std::optional<Guard>& guard) {
  return guard ? fmt::format(" {} {}", guard->value ? "if" : "unless", guard->flag) : "";
}

}  // namespace

std::string print(const Expression& e) {
  if (e.kind != Expression::Kind::call) return e.text;
  const ModelOpRow& row = row_of(e.op);
  std::string text = std::string(row.name) + "(";
  if (row.form == ModelForm::contraction) {
    for (std::size_t i = 0; i < e.terms.size(); ++i)
      text += fmt::format("{}{},{}->{}", i > 0 ? " + " : "", e.terms[i].a, e.terms[i].b,
                          e.terms[i].result);
    for (std::size_t i = 0; i < e.args.size(); ++i)
      text += (i % 2 == 0 ? "; " : ", ") + print(e.args[i]);
    return text + ")";
  }
  for (std::size_t i = 0; i < e.args.size(); ++i) text += (i > 0 ? ", " : "") + print(e.args[i]);
  const auto& p = e.parameters;
  if (row.form == ModelForm::view)
    text += fmt::format(", {}->{}", p[0], p[1]);
  else if (row.form == ModelForm::turn)
    text += fmt::format(", {}, {} {}", p[0], p[1], p[2]);
  else
    for (const std::string& word : p) text += ", " + word;
  return text + ")";
}

std::string print_model_text(const ModelText& model) {
  std::string text = fmt::format("model {}\n", model.name);
  for (const TextDim& dim : model.dims)
    text += dim.formula
                ? fmt::format("dim {} = {}\n", dim.letter, dim.formula->to_string())
                : fmt::format("dim {}{}{}\n", dim.letter, dim.words.empty() ? "" : " ", dim.words);
  for (const TextFlag& flag : model.flags) text += fmt::format("flag {}\n", flag.name);
  for (const TextNumber& number : model.numbers)
    text += fmt::format("number {}{}{}\n", number.name, number.formula ? " = " : "",
                        number.formula ? number.formula->to_string() : "");
  if (!model.small.empty()) {
    std::string pairs;
    for (const auto& [key, size] : model.small)
      pairs += fmt::format("{}{}={}", pairs.empty() ? "" : ", ", key, size.value);
    text += fmt::format("small {}\n", pairs);
  }
  for (const TextSection which : kTextSections) {
    text += fmt::format("\n{}\n", to_string(which));
    for (const TextWeight& weight : model.section(which).weights)
      text += fmt::format("weight {} : {}{}{}\n", weight.name, weight.letters, weight_text(weight),
                          guard_text(weight.guard));
    for (const TextLine& line : model.section(which).lines)
      text += fmt::format("{} : {}{}{} = {}{}\n", line.name, line.letters,
                          line.where.empty() ? "" : " where ", line.where, print(line.expression),
                          guard_text(line.guard));
  }
  return text;
}

std::uint64_t hash_of(const ModelText& model) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : print_model_text(model))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace shardproof
