#include "golden/verdict/text_degrees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "engine/program/field_degrees.h"
#include "weights/text/formula.h"

namespace shardproof {
namespace {

const FieldDegree kInteger{0, {}, {}};

/// Counts of the lines of one pass after the other.
class TextDegrees {
 public:
  TextDegrees(const TextModel& model, NumberFormat act)
      : model_(model), act_(act), extents_(model.sizes().extents) {}

  void add(const PassPlan& pass) {
    extents_['B'] = pass.batch();
    extents_['L'] = pass.L;
    extents_['M'] = pass.prefix.length + pass.cached + pass.L;
    values_.clear();
    add(TextSection::embedding, -1);
    FieldDegree stream = values_.at("embed");
    for (std::int64_t layer = 0; layer < model_.sizes().layers; ++layer) {
      values_["in"] = stream;
      add(TextSection::layer, layer);
      stream = values_.at("out");
    }
    values_["in"] = stream;
    add(TextSection::head, -1);
  }

  FieldCounts counts;

 private:
  void add(TextSection section, std::int64_t layer) {
    for (const TextLine& line : model_.flat().section(section).lines) {
      if (layer >= 0 && !model_.sizes().has(line.guard, layer)) continue;
      step_ = fmt::format("{} {}", layer, line.name);
      divisions_ = 0;
      letters_[line.name] = line.letters;
      FieldDegree degree = degree_of(line.expression);
      if (line.expression.kind == Expression::Kind::call && line.expression.op == ModelOp::sub)
        differences_[line.name] = &line.expression;
      counts.degrees.insert(degree);
      values_[line.name] = std::move(degree);
    }
  }

  /// An input or a weight has the degree 1, an integer 0.
  FieldDegree of_name(const std::string& name) const {
    if (const auto at = values_.find(name); at != values_.end()) return at->second;
    if (name == "ids" || name == "pos" || name == "slot") return kInteger;
    if (name.size() == 1 && model_.extent(name[0]) > 0) return kInteger;
    if (const auto literal = number_in(name))
      return *literal == std::floor(*literal) ? kInteger : FieldDegree{};
    return {};
  }

  FieldDegree function(std::string_view name, const Expression& argument) {
    const FieldDegree degree = degree_of(argument);
    counts.degrees.insert(degree);
    counts.applied[std::string(name)] += elements(argument);
    return {};
  }

  FieldDegree degree_of(const Expression& e) {
    if (e.kind != Expression::Kind::call) return of_name(e.text);
    const auto of = [&](std::size_t arg) { return degree_of(e.args[arg]); };
    switch (e.op) {
      case ModelOp::einsum: {
        FieldDegree most = product_degree(of(0), of(1));
        for (std::size_t i = 2; i + 1 < e.args.size(); i += 2)
          most = greater_degree(most, product_degree(of(i), of(i + 1)));
        return most;
      }
      case ModelOp::add:
      case ModelOp::sub:
        return greater_degree(of(0), of(1));
      case ModelOp::mul:
        return product_degree(of(0), of(1));
      case ModelOp::div:
        return quotient(of(0), e.args[1]);
      case ModelOp::larger:
        return greater_degree(function("larger", e.args[0]), function("larger", e.args[1]));
      case ModelOp::exp:
      case ModelOp::exp2:
        if (const Expression* const d = difference(e.args[0])) {
          const std::string_view to = e.op == ModelOp::exp ? "exp" : "exp2";
          return product_degree(function(fmt::format("score to {}", to), d->args[0]),
                                function(fmt::format("max to {}", to), d->args[1]));
        }
        return function(row_of(e.op).name, e.args[0]);
      case ModelOp::max:
        return function("score to max", e.args[0]);
      case ModelOp::store:
        return act_ == NumberFormat::bf16 ? function("bf16", e.args[0]) : of(0);
      case ModelOp::within:
        // Exact on integers, which have the degree 0; otherwise a function.
        return of(0) == kInteger ? kInteger : function("within", e.args[0]);
      case ModelOp::sum:
        if (e.parameters.size() == 2 && act_ == NumberFormat::bf16)
          return greater_degree(of(0), function("bf16", e.args[0]));
        return of(0);
      case ModelOp::mean:
      case ModelOp::gather:
      case ModelOp::turn:
      case ModelOp::append:
      case ModelOp::split_dim:
      case ModelOp::merge_dim:
      case ModelOp::before:
      case ModelOp::top:
        return of(0);
      default:
        return function(row_of(e.op).name, e.args[0]);
    }
  }

  /// A difference, also through the name of a line.
  const Expression* difference(const Expression& e) const {
    if (e.kind == Expression::Kind::call) return e.op == ModelOp::sub ? &e : nullptr;
    const auto at = differences_.find(e.text);
    return at == differences_.end() ? nullptr : at->second;
  }

  FieldDegree quotient(FieldDegree x, const Expression& divisor) {
    const FieldDegree y = degree_of(divisor);
    if (y == kInteger) return x;
    const auto next = kFirstDivision + static_cast<int>(numbers_.size());
    const int number =
        numbers_.emplace(fmt::format("{}/{}", step_, divisions_++), next).first->second;
    counts.divided[{number, y}] += elements(divisor);
    ++x.e[number];
    for (const auto& [of, e] : y.e) x.more[of] += e;
    for (const auto& [of, e] : y.more) x.more[of] += e;
    return x;
  }

  /// The elements of an expression's value, present or not.
  std::int64_t elements(const Expression& e) const {
    std::map<char, std::int64_t> extents;
    add_extents(e, extents);
    std::int64_t count = 1;
    for (const auto& [letter, extent] : extents) count *= extent;
    return count;
  }
  void add_extents(const Expression& e, std::map<char, std::int64_t>& extents) const {
    std::string letters;
    if (e.kind == Expression::Kind::name) {
      if (const auto at = letters_.find(e.text); at != letters_.end())
        letters = at->second;
      else if (const TextWeight* const weight = model_.weight(e.text))
        letters = weight->letters;
      else if (const ValueRow* const row = value_row(e.text, &model_))
        letters = row->dims;
    }
    for (const char letter : letters) extents[letter] = extents_.at(letter);
    for (const Expression& arg : e.args) add_extents(arg, extents);
  }

  // Above the numbers of the engine's divisions: each has a product of its own.
  static constexpr int kFirstDivision = 1 << 28;

  const TextModel& model_;
  NumberFormat act_;
  std::map<char, std::int64_t> extents_;
  std::map<std::string, FieldDegree, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> letters_;
  std::map<std::string, const Expression*, std::less<>> differences_;
  std::map<std::string, int> numbers_;
  std::string step_;
  int divisions_ = 0;
};

}  // namespace

FieldCounts counts_of_text(const TextModel& model, NumberFormat act, const Passes& passes) {
  TextDegrees degrees(model, act);
  for (std::int64_t i = 0; i < passes.size(); ++i) degrees.add(passes.at(i));
  return std::move(degrees.counts);
}

}  // namespace shardproof
