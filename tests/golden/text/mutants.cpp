#include "tests/golden/text/mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "weights/text/rules.h"

namespace shardproof {
namespace {

/// Other ops of the same form.
std::vector<ModelOp> others_of(ModelOp op) {
  static const std::map<ModelOp, std::vector<ModelOp>> kOthers{
      {ModelOp::add, {ModelOp::sub, ModelOp::mul}},
      {ModelOp::sub, {ModelOp::add, ModelOp::larger}},
      {ModelOp::mul, {ModelOp::add, ModelOp::div}},
      {ModelOp::div, {ModelOp::mul, ModelOp::sub}},
      {ModelOp::exp, {ModelOp::exp2, ModelOp::sigmoid}},
      {ModelOp::sqrt, {ModelOp::abs}},
      {ModelOp::tanh, {ModelOp::sigmoid}},
      {ModelOp::silu, {ModelOp::sigmoid, ModelOp::gelu_tanh, ModelOp::relu}},
      {ModelOp::gelu, {ModelOp::gelu_tanh, ModelOp::silu}},
      {ModelOp::gelu_tanh, {ModelOp::gelu, ModelOp::silu}},
      {ModelOp::sum, {ModelOp::max, ModelOp::mean}},
      {ModelOp::mean, {ModelOp::sum, ModelOp::max}},
      {ModelOp::max, {ModelOp::sum}}};
  const auto at = kOthers.find(op);
  return at == kOthers.end() ? std::vector<ModelOp>() : at->second;
}

class Making {
 public:
  explicit Making(const ModelText& text) : text_(text) {
    for (const TextSection section : kTextSections) of_section(section);
  }
  std::vector<Mutant> mutants;

 private:
  /// Adds the text in which `change` has changed the line, if that is another legal text.
  void add(TextSection section, std::size_t i, const std::string& what,
           const std::function<void(TextLine&)>& change) {
    ModelText other = text_;
    TextLine& line = other.section(section).lines[i];
    const TextLine before = line;
    change(line);
    if (line.expression == before.expression && line.where == before.where &&
        line.guard == before.guard)
      return;
    try {
      // A misplaced letter shows where the text is read.
      const ModelText read = parse_model_text(print_model_text(other));
      mutants.push_back(
          {line.name, fmt::format("{} : {} in {}", line.name, what, to_string(section)), read});
    } catch (const Error&) {
    }
  }

  void of_section(TextSection section) {
    const auto& own = text_.section(section);
    // Names of equal letters may take one another's places.
    std::map<std::string, std::string> letters;
    for (const TextLine& line : text_.section(TextSection::embedding).lines)
      letters[line.name] = line.letters;
    if (section != TextSection::embedding) letters["in"] = "BLE";
    for (const TextWeight& weight : own.weights) letters[weight.name] = weight.letters;
    for (std::size_t i = 0; i < own.lines.size(); ++i) {
      const TextLine& line = own.lines[i];
      if (!line.where.empty())
        for (const auto& [name, of] : letters)
          if (of == letters[line.where] && name != line.where)
            add(section, i, fmt::format("where {} -> {}", line.where, name),
                [other = name](TextLine& l) { l.where = other; });
      if (line.guard)
        add(section, i, "its guard is the other", [](TextLine& l) { l.guard->value ^= true; });
      for (const std::vector<std::size_t>& path : paths_of(line.expression))
        of_node(section, i, path, letters);
      letters[line.name] = line.letters;
    }
  }

  static std::vector<std::vector<std::size_t>> paths_of(const Expression& e) {
    std::vector<std::vector<std::size_t>> paths{{}};
    for (std::size_t a = 0; a < e.args.size(); ++a)
      for (std::vector<std::size_t> path : paths_of(e.args[a])) {
        path.insert(path.begin(), a);
        paths.push_back(std::move(path));
      }
    return paths;
  }
  static Expression& node(Expression& e, const std::vector<std::size_t>& path) {
    Expression* at = &e;
    for (const std::size_t a : path) at = &at->args[a];
    return *at;
  }

  void of_node(TextSection section, std::size_t i, const std::vector<std::size_t>& path,
               const std::map<std::string, std::string>& letters) {
    Expression root = text_.section(section).lines[i].expression;
    const Expression e = node(root, path);
    const auto change = [&](const std::string& what, const std::function<void(Expression&)>& to) {
      add(section, i, what, [&](TextLine& line) { to(node(line.expression, path)); });
    };
    if (e.kind == Expression::Kind::number) {
      change(e.text + " -> " + e.text + "5", [&](Expression& n) { n.text += "5"; });
      return;
    }
    if (e.kind == Expression::Kind::name) {
      of_name(e, change, letters);
      return;
    }
    for (const ModelOp other : others_of(e.op))
      change(fmt::format("{} -> {}", row_of(e.op).name, row_of(other).name),
             [&](Expression& n) { n.op = other; });
    if (e.op == ModelOp::sub || e.op == ModelOp::div)
      change(fmt::format("{} the other way", row_of(e.op).name),
             [](Expression& n) { std::swap(n.args[0], n.args[1]); });
    if (e.op == ModelOp::within) {
      change("within from -2", [](Expression& n) { n.parameters[0] = "-2"; });
      change("within to -1", [](Expression& n) { n.parameters[1] = "-1"; });
      change("within to 1", [](Expression& n) { n.parameters[1] = "1"; });
    }
    if (e.op == ModelOp::turn)
      change("turn of other pairs", [](Expression& n) {
        n.parameters[1] = n.parameters[1] == "half" ? "interleaved" : "half";
      });
    if (e.op == ModelOp::turn)
      change("turn of fewer channels", [](Expression& n) { n.parameters[2] = "2"; });
    if (e.op == ModelOp::split_dim)
      change("split_dim in the other order",
             [](Expression& n) { std::reverse(n.parameters[1].begin(), n.parameters[1].end()); });
    if (row_of(e.op).form == ModelForm::unary && e.op != ModelOp::store)
      change(fmt::format("no {}", row_of(e.op).name),
             [](Expression& n) { n = Expression(n.args[0]); });
  }

  template <class Change>
  void of_name(const Expression& e, Change&& change,
               const std::map<std::string, std::string>& letters) {
    if (const auto own = letters.find(e.text); own != letters.end()) {
      for (const auto& [name, of] : letters)
        if (of == own->second && name != e.text)
          change(fmt::format("{} -> {}", e.text, name),
                 [other = name](Expression& n) { n.text = other; });
    } else if (text_.is_number(e.text)) {
      for (const TextNumber& other : text_.numbers)
        if (other.name != e.text && other.name != "theta")
          change(fmt::format("{} -> {}", e.text, other.name),
                 [&](Expression& n) { n.text = other.name; });
    }
  }

  const ModelText& text_;
};

}  // namespace

std::vector<Mutant> mutants_of(const ModelText& text) {
  Making making(text);
  return std::move(making.mutants);
}

}  // namespace shardproof
