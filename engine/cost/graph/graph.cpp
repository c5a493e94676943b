#include "engine/cost/graph/graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/cost/graph/detail/text_parts.h"
#include "weights/text/flat.h"
#include "weights/text/text_weights.h"
#include "weights/text/writer.h"

namespace shardproof::cost {
namespace {

/// An indicator of where a value exists, and its letters as the value has them.
using Absence = std::pair<std::string, std::string>;

/// Returns the name of a line in the text that a line of the flat form is of.
std::string name_in_text(const TextModel& model, TextSection section, const TextLine& flat) {
  for (const TextLine& line : model.text().section(section).lines)
    if (line.line == flat.line) return line.name;
  return flat.name;
}

/// Walks the lines of one layer, and of the sections around it, and collects their products.
class Walk {
 public:
  Walk(const TextModel& model, std::int64_t layer, const Pass& pass)
      : model_(model), layer_(layer), pass_(pass), existence_(model, layer, pass) {}

  /// Walks a section; its products are appended to `products` if it is given.
  void section(TextSection section, std::vector<GraphProduct>* products) {
    section_ = section;
    letters_["in"] = "BLE";
    lines_.clear();
    for (const TextLine& line : model_.flat().section(section).lines)
      if (section != TextSection::layer || model_.sizes().has(line.guard, layer_))
        lines_.push_back(&line);
    for (const TextLine* const line : lines_) {
      letters_[line->name] = line->letters;
      absent_[line->name] = absent(*line);
    }
    if (products == nullptr) return;
    for (const TextLine* const line : lines_)
      if (is_call(line->expression, ModelOp::einsum)) contraction(*line, *products);
  }

 private:
  double extent(char letter) const {
    if (letter == 'B') return static_cast<double>(pass_.B);
    if (letter == 'L') return section_ == TextSection::head ? 1.0 : static_cast<double>(pass_.L);
    if (letter == 'M') return static_cast<double>(pass_.M + pass_.L);
    return static_cast<double>(model_.extent(letter));
  }

  /// Returns where a line's value does not exist.
  std::set<Absence> absent(const TextLine& line) const {
    std::set<Absence> all = absent_operands(line.expression);
    if (line.expression.kind == Expression::Kind::call) moved(line.expression, all);
    // What is summed over is there again.
    std::erase_if(all, [&](const Absence& one) { return !all_among(one.second, line.letters); });
    if (!line.where.empty()) all.insert({line.where, letters_.at(line.where)});
    return all;
  }
  std::set<Absence> absent_operands(const Expression& e) const {
    std::set<Absence> all;
    for (const std::string& name : names_in(e))
      if (const auto at = absent_.find(name); at != absent_.end())
        all.insert(at->second.begin(), at->second.end());
    return all;
  }

  /// Returns the indicators of where a value is read, if that is by pointwise lines alone.
  std::set<std::string> read_where(const std::string& name) const {
    // Other sections may read it, too.
    if (section_ == TextSection::embedding || name == result_of(section_)) return {};
    std::optional<std::set<std::string>> common;
    for (const TextLine* const line : lines_) {
      const std::vector<std::string> names = names_in(line->expression);
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      if (line->expression.kind == Expression::Kind::call && !is_pointwise(line->expression.op))
        return {};
      std::set<std::string> here;
      for (const auto& [indicator, letters] : absent_.at(line->name))
        if (all_among(letters, letters_.at(name))) here.insert(indicator);
      if (common)
        std::erase_if(*common, [&](const std::string& one) { return !here.contains(one); });
      else
        common = here;
    }
    return common.value_or(std::set<std::string>{});
  }

  /// Renames the letters of what a view moves; what a cache or a table gives is there.
  static void moved(const Expression& e, std::set<Absence>& all) {
    if (e.op == ModelOp::append || e.op == ModelOp::gather) return all.clear();
    if (e.op != ModelOp::split_dim && e.op != ModelOp::merge_dim) return;
    std::set<Absence> renamed;
    for (auto [indicator, letters] : all) {
      const std::string &from = e.parameters[0], &to = e.parameters[1];
      std::string now;
      bool had = false;
      for (const char letter : letters)
        contains(from, letter) ? void(had = true) : now.push_back(letter);
      renamed.emplace(std::move(indicator), had ? now + to : now);
    }
    all = std::move(renamed);
  }

  const TextWeight* weight(const std::string& name) const {
    return letters_.contains(name) ? nullptr : model_.weight(name);
  }

  /// Returns whether an operand is a weight, or what caches hold.
  bool is_factor(const std::string& name, const std::string& letters) const {
    return weight(name) != nullptr || (contains(letters, 'M') && !contains(letters, 'L'));
  }

  void contraction(const TextLine& line, std::vector<GraphProduct>& products) const {
    const Expression& e = line.expression;
    std::set<Absence> absent = absent_operands(e);
    for (const std::string& indicator : read_where(line.name))
      absent.emplace(indicator, letters_.at(indicator));
    if (!line.where.empty()) absent.emplace(line.where, letters_.at(line.where));
    std::vector<std::string> indicators;
    std::string experts;  // letters among which some are chosen, as the operands have them
    for (const auto& [indicator, letters] : absent) {
      if (indicators.empty() || indicators.back() != indicator) indicators.push_back(indicator);
      if (existence_.share_of({indicator}).chosen < 1.0)
        for (const char letter : letters)
          if (!contains(std::string(kGivenLetters), letter)) experts += letter;
    }
    const ExistingShare share = existence_.share_of(indicators);
    for (std::size_t t = 0; t < e.terms.size(); ++t) {
      const std::string *first = &e.args[2 * t].text, *second = &e.args[2 * t + 1].text;
      std::string a = e.terms[t].a, b = e.terms[t].b;
      if (!is_factor(*second, b)) {
        std::swap(first, second);
        std::swap(a, b);
      }
      if (!is_factor(*second, b)) continue;
      GraphProduct product;
      product.weight = weight(*second) != nullptr;
      product.name = product.weight ? *second : name_in_text(model_, section_, line);
      product.line = line.name;
      product.of_key_heads = product.weight && contains(b, 'K');
      product.section = section_;
      for (const char letter : a)
        if (!contains(b, letter) && contains(line.letters, letter)) product.n *= extent(letter);
      for (const char letter : b) {
        if (!contains(line.letters, letter))
          product.k *= extent(letter);
        else
          (contains(a, letter) || contains(experts, letter) ? product.times : product.m) *=
              extent(letter);
      }
      for (const char letter : a)
        if (!contains(line.letters, letter) && !contains(b, letter)) product.k *= extent(letter);
      const bool chosen = b.find_first_of(experts) != std::string::npos;
      count(product, share, chosen);
      products.push_back(product);
    }
  }

  /// Puts into a product how much of it exists; `chosen`: tokens choose among its second factor.
  void count(GraphProduct& product, const ExistingShare& share, bool chosen) const {
    const double tokens = static_cast<double>(pass_.B) * extent('L');
    product.chosen = share.chosen;
    product.n *= share.chosen;
    // Where each token chooses evenly and by itself; log1p, as the power may be near 1.
    if (chosen)
      product.read = tokens == 1.0 || share.chosen >= 1.0
                         ? share.chosen
                         : -std::expm1(tokens * std::log1p(-share.chosen));
    product.pairs = share.pairs;
    product.of = share.of;
    if (!product.weight) product.read = share.slots;
  }

  const TextModel& model_;
  std::int64_t layer_;
  Pass pass_;
  Existence existence_;
  TextSection section_ = TextSection::embedding;
  std::vector<const TextLine*> lines_;
  std::map<std::string, std::string> letters_;
  std::map<std::string, std::set<Absence>> absent_;
};

/// Adds the products of a kind of layers to equal ones of other kinds.
void add_products(std::vector<GraphProduct>& all, std::vector<GraphProduct> of_kind) {
  const auto same = [](const GraphProduct& a, const GraphProduct& b) {
    return a.name == b.name && a.section == b.section && a.n == b.n && a.k == b.k && a.m == b.m &&
           a.times == b.times && a.pairs == b.pairs && a.of == b.of && a.read == b.read;
  };
  for (GraphProduct& one : of_kind) {
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const auto& other) { return same(one, other); });
    if (at != all.end()) {
      at->layers += one.layers;
      continue;
    }
    // Behind those of its line in other layers.
    const auto last = std::find_if(all.rbegin(), all.rend(), [&](const auto& other) {
      return one.name == other.name && one.section == other.section;
    });
    all.insert(last == all.rend() ? all.end() : last.base(), std::move(one));
  }
}

}  // namespace

std::vector<GraphProduct> layer_products(const TextModel& model, std::int64_t layer,
                                         const Pass& pass) {
  Walk walk(model, layer, pass);
  std::vector<GraphProduct> products;
  walk.section(TextSection::embedding, nullptr);
  walk.section(TextSection::layer, &products);
  return products;
}

std::vector<GraphProduct> graph_products(const TextModel& model, const Pass& pass) {
  std::vector<GraphProduct> all;
  Walk(model, 0, pass).section(TextSection::embedding, &all);
  for (const auto& [layer, count] : kinds_of_layers(model)) {
    std::vector<GraphProduct> of_kind = layer_products(model, layer, pass);
    for (GraphProduct& one : of_kind) one.layers = count;
    add_products(all, std::move(of_kind));
  }
  Walk walk(model, 0, pass);
  walk.section(TextSection::embedding, nullptr);
  walk.section(TextSection::head, &all);
  return all;
}

std::vector<WeightElements> weight_elements(const TextModel& model) {
  std::vector<WeightElements> all;
  for (const TextWeightSpec& spec : text_weight_specs(model.text(), model.sizes())) {
    const std::size_t dot = spec.id.find('.');
    const bool of_layer = spec.id.starts_with("layer") && dot != std::string::npos;
    const std::string name = of_layer ? spec.id.substr(dot + 1) : spec.id;
    std::int64_t elements = 1;
    for (const std::int64_t one : spec.shape) elements *= one;
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const WeightElements& other) { return other.name == name; });
    if (at == all.end()) {
      all.push_back({name, spec.letters, of_layer, spec.kind, elements, 1, 0.0});
      continue;
    }
    at->elements += elements;
    at->layers += 1;
  }
  // A token alone reads of each weight what it is multiplied with.
  std::map<std::string, double> share;
  for (const GraphProduct& product : graph_products(model, {Phase::decode, 1, 1, 0}))
    if (product.weight) share[product.name] = product.read;
  for (WeightElements& one : all) {
    double read = 1.0;
    for (const auto& [name, of_weight] : share)
      if (file_name(model, name) == one.name) read = of_weight;
    one.active = read * static_cast<double>(one.elements);
  }
  return all;
}

bool is_parameter(const WeightElements& weight) {
  return !is_rope_table(weight.kind) && weight.kind != TextWeightKind::slopes;
}

double matrix_parameters(const ModelConfig& model) {
  std::int64_t all = 0;
  for (const WeightElements& one : weight_elements(*graph_of(model)))
    if (one.kind == TextWeightKind::matrix || one.kind == TextWeightKind::table)
      all += one.elements;
  return static_cast<double>(all);
}

std::int64_t cache_elements(const TextModel& model) {
  double all = 0.0;
  for (const auto& [layer, count] : kinds_of_layers(model))
    all += static_cast<double>(count) * cached_in(model, layer);
  return std::llround(all);
}

std::shared_ptr<const TextModel> graph_of(const ModelConfig& model, NumberFormat weights) {
  if (const TextModel* const text = text_model(model)) return {model.rows, text};
  return std::make_shared<const TextModel>(parse_model_text(text_of_model(model, weights)),
                                           TextKeys{}, print_model(model));
}

}  // namespace shardproof::cost
