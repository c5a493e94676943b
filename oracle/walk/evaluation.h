#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/walk/array.h"
#include "oracle/walk/before.h"
#include "oracle/walk/cache.h"
#include "oracle/walk/place.h"
#include "oracle/walk/pointwise.h"
#include "oracle/walk/reduction.h"
#include "oracle/walk/selection.h"
#include "oracle/walk/view.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Computes lines from the values that they read. Keeps the caches between passes.
///
/// `Math` has numbers `Scalar`, sums `Sum` of products and of numbers, and what is done with them:
/// kFormal says that numbers are elements of a field, where functions are random ones by name;
/// begin() is called before each line; is_known() is false for a number that may be anything, and
/// perhaps() is one that may be 0 in its place.
template <class Math>
class Evaluation {
 public:
  using Scalar = typename Math::Scalar;
  using Value = Lettered<Scalar>;
  using Names = NamedValues<Scalar>;

  Evaluation(const ModelText& text, const TextSizes& sizes, const Math& math,
             const Place<Scalar>& place, const ValuesBefore<Math>& before)
      : text_(text), sizes_(sizes), math_(math), place_(place), before_(before) {}

  Value evaluate(const TextLine& line, const Names& names) {
    line_ = &line;
    math_.begin(line, place_.layer, place_.loop != nullptr);
    outermost_ = &line.expression;
    while (outermost_->kind == Expression::Kind::call &&
           (outermost_->op == ModelOp::store || row_of(outermost_->op).form == ModelForm::view))
      outermost_ = &outermost_->args[0];
    Value v = in_order(value_of(line.expression, names), line.letters);
    for (Scalar& s : v.data) s = math_.named(s);
    if (!line.where.empty()) {
      const Value& where = names.find(line.where)->second;
      v.presence = both(v.presence, presence_of(math_, where), v.letters, v.shape);
      const auto place = places_in(v.letters, v.shape, where.letters, where.shape);
      for (size_t i = 0; i < place.size(); ++i)
        if (!math_.is_known(where.data[place[i]])) v.data[i] = math_.unknown();
    }
    const auto here = here_in(v.presence, v.letters, v.shape);
    for (size_t i = 0; i < here.size(); ++i)
      if (here[i] != Presence::kPresent)
        v.data[i] = here[i] == Presence::kAbsent ? math_.number(0) : math_.perhaps(v.data[i]);
    return v;
  }

  /// Replaces the cache that a line has appended to, by its value for the passes that follow.
  void put_cache(std::int64_t layer, const TextLine& line, const Value& value) {
    const auto cache = caches_.find({layer, &line.expression});
    if (cache != caches_.end()) cache->second = in_order(value, cache->second.letters);
  }

  /// Gives row b the cache of row rows[b].
  void take_rows(const std::vector<std::int64_t>& rows) {
    for (auto& [of, cache] : caches_) cache = with_rows(cache, rows);
  }

 private:
  Value value_of(const Expression& e, const Names& names) {
    if (e.kind == Expression::Kind::number) return {"", {}, {math_.word(e.text)}};
    if (e.kind == Expression::Kind::name) {
      if (const auto at = names.find(e.text); at != names.end())
        return with_data(math_, at->second);
      return {"", {}, {math_.word(e.text)}};
    }
    if constexpr (Math::kFormal)
      if (auto value = formal(e, names)) return std::move(*value);
    const ModelForm form = row_of(e.op).form;
    if (form == ModelForm::contraction) return contract(e, names);
    if (form == ModelForm::before) {
      const Value start =
          e.args.size() == 2 ? value_of(e.args[1], names) : Value{"", {}, {math_.number(0)}};
      return before_.value(e.args[0].text, start, names, place_);
    }
    const Value x =
        form == ModelForm::gather ? operand(e.args[0], names) : value_of(e.args[0], names);
    switch (form) {
      case ModelForm::binary:
        return pair_elements(math_, e.op, x, value_of(e.args[1], names));
      case ModelForm::unary:
        return map_elements(x, [&](const Scalar& s) { return math_.function(e.op, s); });
      case ModelForm::range: {
        const double low = sizes_.number(e.parameters[0]), high = sizes_.number(e.parameters[1]);
        return map_elements(x, [&](const Scalar& s) { return math_.ranged(e.op, s, low, high); });
      }
      case ModelForm::sum:
      case ModelForm::reduction:
        return reduce_letters(math_, e, x, where());
      case ModelForm::top:
        return mark_top(math_, x, e.parameters[0][0],
                        static_cast<std::int64_t>(sizes_.number(e.parameters[1])), where());
      case ModelForm::gather:
        return gather_rows(math_, x, value_of(e.args[1], names), where());
      case ModelForm::turn:
        return turn_pairs(math_, x, e.parameters[0][0], e.parameters[1] == "half",
                          static_cast<std::int64_t>(sizes_.number(e.parameters[2])));
      case ModelForm::append: {
        Value& cache = caches_[{place_.layer, &e}];
        return append_to(math_, cache, x, place_);
      }
      default:
        return view_dims(x, e.parameters[0], e.parameters[1], place_.shape_of(e.parameters[1]));
    }
  }

  /// Returns the value of an operand that may be a weight, whose elements are not copied.
  Value operand(const Expression& e, const Names& names) {
    const auto at = e.kind == Expression::Kind::name ? names.find(e.text) : names.end();
    return at != names.end() ? at->second : value_of(e, names);
  }

  /// The line, as errors begin.
  std::string where() const { return text_.where(line_->line) + line_->name; }

  /// An expression of several ops that a field has one function for; nullopt for all others.
  std::optional<Value> formal(const Expression& e, const Names& names) {
    if (const auto formula = math_.formula(e))
      return map_elements(value_of(*formula->argument, names),
                          [&](const Scalar& s) { return math_.function(formula->name, s); });
    if (const auto parts = math_.difference(e, place_.section)) {
      const bool base2 = e.op == ModelOp::exp2;
      const auto exponential = [&](const Expression* part, std::string_view name) {
        return map_elements(value_of(*part, names),
                            [&](const Scalar& s) { return math_.function(name, s); });
      };
      return pair_elements(math_, ModelOp::mul,
                           exponential(parts->first, base2 ? "score to exp2" : "score to exp"),
                           exponential(parts->second, base2 ? "max to exp2" : "max to exp"));
    }
    return std::nullopt;
  }

  Value contract(const Expression& e, const Names& names) {
    std::vector<std::pair<Value, Value>> operands;
    for (size_t t = 0; t < e.terms.size(); ++t)
      operands.emplace_back(operand(e.args[2 * t], names), operand(e.args[2 * t + 1], names));
    const Shape shape = place_.shape_of(e.terms[0].result);
    Value y{e.terms[0].result, shape, {}};
    if (auto product = math_.product(e, operands, shape, &e == outermost_)) {
      y = std::move(*product);
    } else {
      for (auto& [a, b] : operands)
        a = with_data(math_, std::move(a)), b = with_data(math_, std::move(b));
      for (const auto& sum : sums_of(math_, e, operands, y)) y.data.push_back(sum.value());
    }
    if (e.terms.size() > 1) return y;
    for (const Value* v : {&operands[0].first, &operands[0].second})
      if (v->presence && v->presence->letters.find_first_not_of(y.letters) == std::string::npos)
        y.presence = both(y.presence, v->presence, y.letters, y.shape);
    return y;
  }

  const ModelText& text_;
  const TextSizes& sizes_;
  const Math& math_;
  const Place<Scalar>& place_;
  const ValuesBefore<Math>& before_;
  const TextLine* line_ = nullptr;
  const Expression* outermost_ = nullptr;  // of the line, below store and views
  std::map<std::pair<std::int64_t, const Expression*>, Value> caches_;
};

}  // namespace shardproof::oracle::graph
