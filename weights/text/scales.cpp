#include "weights/text/scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "weights/text/detail/letters.h"
#include "weights/text/rules.h"

namespace shardproof {
namespace {

using Names = std::set<std::string>;

bool is_call(const Expression& e, ModelOp op) {
  return e.kind == Expression::Kind::call && e.op == op;
}

/// Returns the matrices that one scale multiplies the sum of; without a name. nullopt if the line
/// is no such sum.
std::optional<TextScale> scale_of_sum(const TextLine& line, const Names& matrices) {
  const Expression& e = line.expression;
  if (!is_call(e, ModelOp::einsum) || e.terms.size() > 2) return std::nullopt;
  TextScale scale;
  for (std::size_t t = 0; t < e.terms.size(); ++t) {
    const ContractionTerm& term = e.terms[t];
    const std::string &a = e.args[2 * t].text, &b = e.args[2 * t + 1].text;
    if (matrices.contains(a) == matrices.contains(b)) return std::nullopt;
    const std::string& letters = matrices.contains(a) ? term.a : term.b;
    std::string channels;
    for (const char letter : letters)
      if (has(term.result, letter)) channels += letter;
    if (channels.empty() || channels.size() == letters.size()) return std::nullopt;
    if (t > 0 && !(channels.size() == scale.channels.size() && all_among(channels, scale.channels)))
      return std::nullopt;
    if (t == 0) scale.channels = channels;
    scale.matrices.push_back(matrices.contains(a) ? a : b);
  }
  if (scale.matrices.size() == 2 && scale.matrices[0] == scale.matrices[1]) return std::nullopt;
  return scale;
}

/// Returns the first line from `at` on that stores its value, by name.
std::string stored_from(const std::vector<TextLine>& lines, std::size_t at) {
  for (std::size_t i = at; i < lines.size(); ++i)
    if (is_call(lines[i].expression, ModelOp::store)) return lines[i].name;
  return lines[at].name;
}

std::vector<std::optional<Guard>> guards_of(const ModelText& flat, const std::string& matrix) {
  std::vector<std::optional<Guard>> guards;
  for (const TextWeight& weight : flat.section(TextSection::layer).weights)
    if (weight.name == matrix) guards.push_back(weight.guard);
  return guards;
}

Names names_of(const ModelText& text) {
  Names names{"ids", "pos", "slot", "in"};
  for (const TextNumber& number : text.numbers) names.insert(number.name);
  for (const TextFlag& flag : text.flags) names.insert(flag.name);
  for (const TextSection section : kTextSections) {
    for (const TextWeight& weight : text.section(section).weights) {
      names.insert(weight.name);
      names.insert(weight.from);
    }
    for (const TextLine& line : text.section(section).lines) names.insert(line.name);
  }
  return names;
}

/// Returns a name that nothing has, and takes it.
std::string free_name(const std::string& wanted, Names& taken) {
  std::string name = wanted;
  for (int number = 1; taken.contains(name); ++number) name = fmt::format("{}_{}", wanted, number);
  taken.insert(name);
  return name;
}

const TextWeight& weight_named(const ModelText& flat, const std::string& name) {
  const auto& weights = flat.section(TextSection::layer).weights;
  return *std::find_if(weights.begin(), weights.end(),
                       [&](const TextWeight& weight) { return weight.name == name; });
}

}  // namespace

std::vector<TextScale> text_scales(const ModelText& flat, const std::set<std::string>& matrices) {
  std::vector<TextScale> scales;
  std::vector<std::string> bases;  // of the names
  Names never;                     // matrices that have none
  const auto& lines = flat.section(TextSection::layer).lines;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::optional<TextScale> own = scale_of_sum(lines[i], matrices);
    Names others;  // read by the line, and not scaled with it
    for (const std::string& read : reads_of(flat, lines[i]).now)
      if (matrices.contains(read) && !own) others.insert(read);
    never.merge(others);
    if (!own || std::find(scales.begin(), scales.end(), *own) != scales.end()) continue;
    scales.push_back(*own);
    const std::string& first = own->matrices[0];
    const TextWeight& weight = weight_named(flat, first);
    bases.push_back(own->matrices.size() > 1 ? stored_from(lines, i)
                    : weight.from.empty()    ? first
                                             : weight.from);
  }
  // A matrix has one scale, that of all matrices that any of its sums adds.
  const auto all_free = [&](const TextScale& scale) {
    return std::none_of(scale.matrices.begin(), scale.matrices.end(), [&](const std::string& own) {
      return never.contains(own) || guards_of(flat, own) != guards_of(flat, scale.matrices[0]) ||
             std::count_if(scales.begin(), scales.end(), [&](const TextScale& other) {
               return std::find(other.matrices.begin(), other.matrices.end(), own) !=
                      other.matrices.end();
             }) != 1;
    });
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const TextScale& scale : scales)
      if (!all_free(scale))
        for (const std::string& own : scale.matrices) changed = never.insert(own).second || changed;
  }
  Names taken = names_of(flat);
  std::vector<TextScale> kept;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (!all_free(scales[i])) continue;
    kept.push_back(scales[i]);
    kept.back().file = free_name(bases[i] + "_scale", taken);
    const std::string& first = kept.back().matrices[0];
    kept.back().name = kept.back().matrices.size() > 1 || bases[i] == first
                           ? kept.back().file
                           : free_name(first + "_scale", taken);
  }
  return kept;
}

ModelText scaled_text(ModelText flat, const std::vector<TextScale>& scales) {
  Names taken = names_of(flat);
  auto& layer = flat.section(TextSection::layer);
  std::map<std::string, const TextScale*> scale_of;
  for (const TextScale& scale : scales) {
    for (const std::string& matrix : scale.matrices) scale_of[matrix] = &scale;
    for (const auto& guard : guards_of(flat, scale.matrices[0])) {
      TextWeight weight;
      weight.name = scale.name;
      weight.letters = scale.channels;
      weight.kind = TextWeightKind::gain;
      weight.from = scale.file;
      weight.guard = guard;
      weight.line = weight_named(flat, scale.matrices[0]).line;
      layer.weights.push_back(std::move(weight));
    }
    taken.insert(scale.name);
  }
  std::map<std::string, std::string> sums;  // by the name of the line
  std::vector<TextLine> lines;
  for (TextLine& line : layer.lines) {
    const TextScale* scale = nullptr;
    if (is_call(line.expression, ModelOp::einsum))
      for (const Expression& arg : line.expression.args)
        if (const auto at = scale_of.find(arg.text); at != scale_of.end()) scale = at->second;
    if (scale == nullptr) {
      lines.push_back(std::move(line));
      continue;
    }
    std::string& sum = sums[line.name];
    if (sum.empty()) sum = free_name(line.name + "_codes", taken);
    TextLine scaled = line;
    scaled.where = "";
    Expression product;
    product.kind = Expression::Kind::call;
    product.op = ModelOp::mul;
    product.args.resize(2);
    product.args[0].text = sum;
    product.args[1].text = scale->name;
    scaled.expression = std::move(product);
    line.name = sum;
    lines.push_back(std::move(line));
    lines.push_back(std::move(scaled));
  }
  layer.lines = std::move(lines);
  return flat;
}

}  // namespace shardproof
