#include "weights/text/composites.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "weights/model/registry.h"
#include "weights/text/detail/composite_patterns.h"
#include "weights/text/text_model.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

bool is_name(const Expression& e) { return e.kind == Expression::Kind::name; }

bool calls(const Expression& e, ModelOp op) {
  return e.kind == Expression::Kind::call && e.op == op;
}

class Recogniser {
 public:
  explicit Recogniser(const ModelText& text) : text_(text) {
    for (const TextSection section : kTextSections)
      for (const TextWeight& weight : text.section(section).weights)
        weights_[weight.name] = weight.from.empty() ? weight.name : weight.from;
  }

  NamedComposites run() {
    NamedComposites composites;
    for (const TextSection section : kTextSections) {
      section_ = section;
      for (const TextLine& line : text_.section(section).lines)
        if (std::optional<Composite> composite = composite_of(line))
          composites.emplace_back(line.name, std::move(*composite));
    }
    return composites;
  }

 private:
  /// Returns the line of a name as this section sees it, or null.
  const TextLine* line_of(const std::string& name) const {
    for (const TextSection section : {section_, TextSection::embedding})
      for (const TextLine& line : text_.section(section).lines)
        if (line.name == name) return &line;
    return nullptr;
  }

  bool is_weight(const Expression& e) const { return is_name(e) && weights_.contains(e.text); }
  bool is_value(const Expression& e) const {
    return is_name(e) && (e.text == "in" || line_of(e.text) != nullptr);
  }
  bool is_number(const Expression& e) const {
    return e.kind == Expression::Kind::number || (is_name(e) && text_.is_number(e.text));
  }

  std::optional<Composite> composite_of(const TextLine& line) const {
    if (line.guard || !line.where.empty()) return std::nullopt;
    const Expression& own = line.expression;
    const Expression& e = calls(own, ModelOp::store) ? own.args[0] : own;
    for (const auto& [kind, pattern] : composite_patterns()) {
      CompositeMatch match;
      if (!matches(pattern, e, lines_, match) || !match.is_plain ||
          match.is_causal != (kind == CompositeKind::score))
        continue;
      if (std::optional<Composite> composite = composite_of(kind, match)) return composite;
    }
    return product_of(e);
  }

  std::optional<Composite> composite_of(CompositeKind kind, const CompositeMatch& match) const {
    Composite composite{kind};
    composite.contracted = contracted_by(kind);
    for (const auto& [variable, e] : match.variables) {
      if (variable == "n") {
        if (!is_number(e)) return std::nullopt;
        // The factor of an embedding; that of a score, and what a norm adds, are the model's.
        if (kind == CompositeKind::lookup) composite.scale = e.text;
      } else if (variable >= "x") {
        if (!is_value(e)) return std::nullopt;
        composite.operands.push_back(e.text);
      } else {
        if (!is_weight(e)) return std::nullopt;
        (variable == "bias" ? composite.biases : composite.weights).push_back(weights_.at(e.text));
      }
    }
    return composite;
  }

  /// Returns a sum of products of values with weights, multiplied once, plus weights.
  std::optional<Composite> product_of(Expression e) const {
    Composite composite{CompositeKind::product};
    CompositeMatch match;
    const auto peel = [&](ModelOp op, bool numbers) -> std::optional<std::string> {
      if (!calls(e, op)) return std::nullopt;
      for (const std::size_t i : {0U, 1U}) {
        const Expression& factor = e.args[i];
        if (!is_weight(factor) && !(numbers && is_number(factor))) continue;
        std::string name = is_weight(factor) ? weights_.at(factor.text) : factor.text;
        e = Expression(std::move(e.args[1 - i]));
        return name;
      }
      return std::nullopt;
    };
    for (;;) {
      if (const TextLine* const line = is_name(e) ? lines_(e.text) : nullptr) {
        note(*line, lines_, match);
        e = line->expression;
        continue;
      }
      if (!composite.scale.empty()) break;  // it is the first that follows the sum
      if (std::optional<std::string> bias = peel(ModelOp::add, false))
        composite.biases.insert(composite.biases.begin(), std::move(*bias));
      else if (std::optional<std::string> scale = peel(ModelOp::mul, true))
        composite.scale = std::move(*scale);
      else
        break;
    }
    if (!calls(e, ModelOp::einsum) || !match.is_plain || match.is_causal) return std::nullopt;
    for (std::size_t t = 0; t < e.terms.size(); ++t) {
      if (!is_value(e.args[2 * t]) || !is_weight(e.args[2 * t + 1])) return std::nullopt;
      composite.operands.push_back(e.args[2 * t].text);
      composite.weights.push_back(weights_.at(e.args[2 * t + 1].text));
      std::string& contracted = composite.contracted.emplace_back();
      for (const char letter : e.terms[t].a)
        if (e.terms[t].result.find(letter) == std::string::npos) contracted += letter;
    }
    return composite;
  }

  const ModelText& text_;
  std::map<std::string, std::string> weights_;  ///< names in files by name
  TextSection section_ = TextSection::embedding;
  /// No composite has a store in it: what is stored is a value of its own wherever it is read.
  LineOf lines_ = [this](const std::string& name) { return line_of(name); };
};

NamedComposites read_composites(const ModelConfig& config, NumberFormat weights) {
  if (const TextModel* const model = text_model(config)) return composites_of(model->text());
  std::set<std::string> values{"in"};
  for (const CheckpointSpec& spec : checkpoint_specs(config)) values.insert(spec.name);
  NamedComposites all = composites_of(parse_model_text(text_of_model(config, weights)));
  // Lines between values are none themselves.
  std::erase_if(all, [&](const auto& named) { return !values.contains(named.first); });
  return all;
}

}  // namespace

bool Composite::reads(std::string_view name) const {
  return std::find(operands.begin(), operands.end(), name) != operands.end();
}

NamedComposites composites_of(const ModelText& text) { return Recogniser(text).run(); }

NamedComposites composites_of(const ModelConfig& config, NumberFormat weights) {
  // A search of tables asks for those of one model thousands of times.
  struct Known {
    ModelConfig config;
    NumberFormat weights;
    NamedComposites all;
  };
  constexpr std::size_t kMost = 4;
  thread_local std::deque<Known> latest;
  for (const Known& known : latest)
    if (known.config == config && known.weights == weights) return known.all;
  if (latest.size() == kMost) latest.pop_back();
  return latest.emplace_front(Known{config, weights, read_composites(config, weights)}).all;
}

const Composite* find_composite(const NamedComposites& all, std::string_view name) {
  for (const auto& [own, composite] : all)
    if (own == name) return &composite;
  return nullptr;
}

std::string name_of(const NamedComposites& all, CompositeKind kind) {
  for (const auto& [name, composite] : all)
    if (composite.kind == kind) return name;
  return "";
}

bool is_rotated(const NamedComposites& all, std::string_view name) {
  const Composite* const own = find_composite(all, name);
  if (own != nullptr && own->kind == CompositeKind::cache) return is_rotated(all, own->operands[0]);
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    return one.second.kind == CompositeKind::rotation &&
           (one.first == name || one.second.operands[0] == name);
  });
}

}  // namespace shardproof
