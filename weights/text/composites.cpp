#include "weights/text/composites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "weights/model/registry.h"
#include "weights/text/detail/composite_patterns.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

bool is_name(const Expression& e) { return e.kind == Expression::Kind::name; }

bool calls(const Expression& e, ModelOp op) {
  return e.kind == Expression::Kind::call && e.op == op;
}

class Recogniser {
 public:
  Recogniser(const ModelText& text, const std::set<std::string>& values)
      : text_(text), values_(values) {
    for (const TextSection section : kTextSections)
      for (const TextWeight& weight : text.section(section).weights)
        weights_[weight.name] = weight.from.empty() ? weight.name : weight.from;
  }

  NamedComposites run() {
    NamedComposites composites;
    for (const TextSection section : kTextSections) {
      section_ = section;
      for (const TextLine& line : text_.section(section).lines)
        if (values_.contains(line.name))
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

  bool is_causal(const TextLine& line) const {
    const TextLine* const mask = line_of(line.where);
    static const Expression kCausal = parse_expression("within(sub(slot, pos), -inf, 0)");
    Existence of;
    return mask != nullptr && whole(mask->expression, of) == kCausal && of.is_plain;
  }

  /// Where the lines of an expression exist: everywhere, or for the keys that a query sees.
  struct Existence {
    bool is_plain = true;  ///< nothing else
    bool is_causal = false;
  };

  /// Returns an expression with the lines in it that are no values.
  Expression whole(const Expression& e, Existence& of) const {
    if (is_name(e) && !values_.contains(e.text)) {
      const TextLine* const line = line_of(e.text);
      if (line == nullptr) return e;
      if (line->guard || !(line->where.empty() || is_causal(*line))) of.is_plain = false;
      if (!line->where.empty()) of.is_causal = true;
      return whole(line->expression, of);
    }
    Expression all = e;
    for (Expression& arg : all.args) arg = whole(arg, of);
    return all;
  }

  bool is_weight(const Expression& e) const { return is_name(e) && weights_.contains(e.text); }
  bool is_value(const Expression& e) const {
    return is_name(e) && (e.text == "in" || values_.contains(e.text));
  }
  bool is_number(const Expression& e) const {
    return e.kind == Expression::Kind::number || (is_name(e) && text_.is_number(e.text));
  }

  std::optional<Composite> composite_of(const TextLine& line) const {
    if (line.guard || !line.where.empty()) return std::nullopt;
    Existence of;
    const Expression& own = line.expression;
    const Expression e = whole(calls(own, ModelOp::store) ? own.args[0] : own, of);
    if (!of.is_plain) return std::nullopt;
    for (const auto& [kind, pattern] : composite_patterns()) {
      Bindings bound;
      if (of.is_causal != (kind == CompositeKind::score) || !matches(pattern, e, bound)) continue;
      if (std::optional<Composite> composite = composite_of(kind, bound)) return composite;
    }
    return of.is_causal ? std::nullopt : product_of(e);
  }

  std::optional<Composite> composite_of(CompositeKind kind, const Bindings& bound) const {
    Composite composite{kind};
    composite.contracted = contracted_by(kind);
    for (const auto& [variable, e] : bound) {
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
    const auto peel = [&](ModelOp op, const auto& is_factor) -> std::optional<std::string> {
      if (!calls(e, op)) return std::nullopt;
      for (const std::size_t i : {0U, 1U})
        if (is_factor(e.args[i])) {
          const std::string& text = e.args[i].text;
          std::string name = is_weight(e.args[i]) ? weights_.at(text) : text;
          e = Expression(std::move(e.args[1 - i]));
          return name;
        }
      return std::nullopt;
    };
    const auto weight = [&](const Expression& of) { return is_weight(of); };
    while (std::optional<std::string> bias = peel(ModelOp::add, weight))
      composite.biases.insert(composite.biases.begin(), std::move(*bias));
    if (auto scale = peel(ModelOp::mul,
                          [&](const Expression& of) { return is_weight(of) || is_number(of); }))
      composite.scale = std::move(*scale);
    if (!calls(e, ModelOp::einsum)) return std::nullopt;
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
  const std::set<std::string>& values_;
  std::map<std::string, std::string> weights_;  ///< names in files by name
  TextSection section_ = TextSection::embedding;
};

}  // namespace

NamedComposites composites_of(const ModelText& text, const std::set<std::string>& values) {
  return Recogniser(text, values).run();
}

NamedComposites composites_of(const ModelConfig& config, WeightType weights) {
  std::set<std::string> values;
  for (const CheckpointSpec& spec : checkpoint_specs(config)) values.insert(spec.name);
  return composites_of(parse_model_text(text_of_model(config, weights)), values);
}

bool is_block_term(std::string_view name, const ModelConfig& config) {
  return config.rows == nullptr && config.block == Block::parallel &&
         std::find(std::begin(kBlockTerms), std::end(kBlockTerms), name) != std::end(kBlockTerms);
}

NamedComposites block_terms_of(const ModelConfig& config, WeightType weights) {
  // They are values of the serial block.
  ModelConfig serial = config;
  serial.block = Block::serial;
  NamedComposites terms;
  if (config.rows == nullptr && config.block == Block::parallel)
    for (auto& [name, composite] : composites_of(serial, WeightType::f32))
      if (is_block_term(name, config)) {
        if (weights == WeightType::int8)
          composite.scale = scale_of(config, composite.weights[0])->name;
        terms.emplace_back(name, std::move(composite));
      }
  return terms;
}

}  // namespace shardproof
