#include "weights/text/text_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "weights/base/count_bytes.h"

namespace shardproof {
namespace {

/// How an expression reads a weight, and the letters of the weight that a contraction sums over.
struct Use {
  TextWeightKind kind;
  std::string summed;
};

/// Returns whether an expression is the weight, or views, sums or stores of it.
bool is_weight(const Expression& e, const std::string& name) {
  if (e.kind == Expression::Kind::name) return e.text == name;
  return e.kind == Expression::Kind::call && !e.args.empty() &&
         row_of(e.op).form == ModelForm::view && is_weight(e.args[0], name);
}

std::optional<Use> use_in(const Expression& e, const std::string& name) {
  if (e.kind == Expression::Kind::name && e.text == name) return Use{TextWeightKind::bias, ""};
  if (e.kind != Expression::Kind::call) return std::nullopt;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    if (!is_weight(e.args[i], name)) continue;
    if (e.op == ModelOp::gather && i == 0) return Use{TextWeightKind::table, ""};
    if (e.op == ModelOp::mul) return Use{TextWeightKind::gain, ""};
    if (e.op != ModelOp::einsum) return Use{TextWeightKind::bias, ""};
    const ContractionTerm& term = e.terms[i / 2];
    Use use{TextWeightKind::gain, ""};
    for (const char c : i % 2 == 0 ? term.a : term.b)
      if (term.result.find(c) == std::string::npos) use.summed += c;
    if (!use.summed.empty()) use.kind = TextWeightKind::matrix;
    return use;
  }
  for (const Expression& arg : e.args)
    if (auto use = use_in(arg, name)) return use;
  return std::nullopt;
}

/// Returns how the first line that reads the weight reads it; a bias if none does.
Use use_of(const ModelText& text, TextSection from, const std::string& name) {
  for (const TextSection section : kTextSections) {
    if (section < from) continue;
    for (const TextLine& line : text.section(section).lines)
      if (auto use = use_in(line.expression, name)) return *use;
  }
  return {TextWeightKind::bias, ""};
}

}  // namespace

bool is_rope_table(TextWeightKind kind) {
  return kind == TextWeightKind::cosines || kind == TextWeightKind::sines;
}

Shape shape_of_pairs(const TextWeight& weight, const TextSizes& sizes) {
  return {sizes.extents.at(weight.letters[0]),
          static_cast<std::int64_t>(sizes.number(weight.parameters[1])) / 2};
}

std::vector<TextWeightSpec> text_weight_specs(const ModelText& text, const TextSizes& sizes) {
  std::vector<TextWeightSpec> specs;
  std::int64_t bytes = 0;
  const auto add = [&](TextSection section, std::int64_t layer) {
    for (const TextWeight& weight : text.section(section).weights) {
      if (layer >= 0 && !sizes.has(weight.guard, layer)) continue;
      const std::string& name = weight.from.empty() ? weight.name : weight.from;
      TextWeightSpec spec{.id = layer < 0 ? name : fmt::format("layer{}.{}", layer, name),
                          .letters = weight.letters,
                          .shape = {},
                          .kind = weight.kind};
      for (const char c : weight.letters) spec.shape.push_back(sizes.extents.at(c));
      if (is_rope_table(weight.kind)) spec.shape = shape_of_pairs(weight, sizes);
      if (!count_bytes(spec.shape, 1, bytes))
        throw Error("model_value",
                    fmt::format("{} [{}]: too large to count in 64 bits; give smaller extents",
                                spec.id, fmt::join(spec.shape, ", ")));
      if (weight.kind == TextWeightKind::by_use || weight.kind == TextWeightKind::matrix) {
        const Use use = use_of(text, section, weight.name);
        if (weight.kind == TextWeightKind::by_use) spec.kind = use.kind;
        for (const char c : use.summed) spec.fan_in *= sizes.extents.at(c);
      }
      specs.push_back(std::move(spec));
    }
  };
  add(TextSection::embedding, -1);
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) add(TextSection::layer, layer);
  add(TextSection::head, -1);
  return specs;
}

}  // namespace shardproof
