#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "oracle/graph/detail/array.h"
#include "oracle/graph/detail/products.h"
#include "weights/base/error.h"
#include "weights/text/loops.h"
#include "weights/text/model_text.h"
#include "weights/text/rules.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// One pass's rows, all with L tokens, at positions start[b] to start[b] + L - 1.
struct Tokens {
  Shape shape;  ///< [B, L]
  std::vector<std::int64_t> ids, positions;
};

/// Runs a text, line by line, over whole tensors: an interpreter of expressions with numbers
/// `Math`, which shares nothing with the engine. Keeps the state between passes: caches, and the
/// last position of each value that `before` reads.
template <class Math>
class Walk {
 public:
  /// Whether numbers are elements of a field, where functions are random ones by name.
  static constexpr bool kFormal = !std::is_same_v<typename Math::Scalar, double>;
  using Scalar = typename Math::Scalar;
  using Value = Lettered<Scalar>;
  /// Returns the elements of a weight, whose id in files is "layer0.wq", in this shape.
  using Weights = std::function<std::vector<Scalar>(const TextWeight& weight, const std::string& id,
                                                    const Shape& shape)>;
  /// Is called with each named value; layer -1 stands for no layer.
  using Seen = std::function<void(std::int64_t layer, const TextLine& line, const Value& value)>;

  Walk(const ModelText& text, const TextSizes& sizes, const Math& math, Weights weights)
      : text_(text), sizes_(sizes), math_(math), weights_(std::move(weights)) {
    for (const TextSection section : kTextSections)
      orders_.push_back(order_of_lines(text, section));
  }

  /// Runs one pass.
  void run(const Tokens& tokens, const Seen& seen) {
    seen_ = seen;
    extents_ = sizes_.extents;
    extents_['B'] = tokens.shape[0];
    extents_['L'] = tokens.shape[1];
    std::int64_t& M = extents_['M'];
    M = slots_;
    for (const std::int64_t p : tokens.positions) M = std::max(M, p + 1);
    slots_ = M;
    positions_ = tokens.positions;
    Names names;
    names["ids"] = integers("BL", tokens.ids);
    names["pos"] = integers("BL", tokens.positions);
    std::vector<std::int64_t> slots(static_cast<size_t>(M));
    std::iota(slots.begin(), slots.end(), 0);
    names["slot"] = integers("M", slots);
    section(TextSection::embedding, -1, names);
    Value stream = names.at("embed");
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      Names own = names;
      own["in"] = stream;
      section(TextSection::layer, layer, own);
      stream = own.at("out");
    }
    names["in"] = stream;
    section(TextSection::head, -1, names);
    ended_.swap(next_ended_);
  }

 private:
  using Names = std::map<std::string, Value, std::less<>>;
  using Key = std::pair<std::int64_t, std::string>;  // layer and name

  std::int64_t extent(char letter) const { return extents_.at(letter); }
  Shape shape_of(std::string_view letters) const {
    Shape shape;
    for (const char c : letters) shape.push_back(extent(c));
    return shape;
  }

  Value integers(const std::string& letters, const std::vector<std::int64_t>& values) const {
    Value v{letters, shape_of(letters), {}};
    for (const std::int64_t i : values) v.data.push_back(math_.number(static_cast<double>(i)));
    return v;
  }

  void section(TextSection which, std::int64_t layer, Names& names) {
    const auto& own = text_.section(which);
    layer_ = layer;
    section_ = which;
    for (const TextWeight& weight : own.weights) {
      if (layer >= 0 && !sizes_.has(weight.guard, layer)) continue;
      const std::string& file = weight.from.empty() ? weight.name : weight.from;
      const std::string id = layer < 0 ? file : fmt::format("layer{}.{}", layer, file);
      Value v{weight.letters, shape_of(weight.letters), {}};
      v.data = weights_(weight, id, v.shape);
      names[weight.name] = std::move(v);
    }
    for (const LineGroup& group : orders_[static_cast<size_t>(which)]) {
      std::vector<const TextLine*> lines;
      for (const size_t i : group.lines)
        if (layer < 0 || sizes_.has(own.lines[i].guard, layer)) lines.push_back(&own.lines[i]);
      if (group.loop)
        loop(lines, names);
      else
        for (const TextLine* line : lines) names[line->name] = evaluate(*line, names);
      for (const TextLine* line : lines) {
        const Value& value = names.at(line->name);
        seen_(layer, *line, value);
        keep_last(line->name, value);
      }
    }
  }

  Value evaluate(const TextLine& line, const Names& names) {
    line_ = &line;
    outermost_ = &line.expression;
    while (outermost_->kind == Expression::Kind::call &&
           (outermost_->op == ModelOp::store || row_of(outermost_->op).form == ModelForm::view))
      outermost_ = &outermost_->args[0];
    Value v = in_order(value_of(line.expression, names), line.letters);
    for (Scalar& s : v.data) s = math_.named(s);
    if (!line.where.empty()) {
      const Value& where = names.find(line.where)->second;
      Presence presence{where.letters, where.shape, {}};
      for (const Scalar& s : where.data) presence.here.push_back(math_.is_zero(s) ? 0 : 1);
      v.presence = both(v.presence, presence, v.letters, v.shape);
    }
    const auto here = here_in(v.presence, v.letters, v.shape);
    for (size_t i = 0; i < here.size(); ++i)
      if (here[i] == 0) v.data[i] = math_.number(0);
    return v;
  }

  Value value_of(const Expression& e, const Names& names) {
    if (e.kind == Expression::Kind::number) return {"", {}, {math_.word(e.text)}};
    if (e.kind == Expression::Kind::name) {
      if (const auto at = names.find(e.text); at != names.end()) return at->second;
      return {"", {}, {math_.word(e.text)}};
    }
    if constexpr (kFormal)
      if (auto value = formal(e, names)) return std::move(*value);
    const ModelForm form = row_of(e.op).form;
    if (form == ModelForm::contraction) return contracted(e, names);
    if (form == ModelForm::before) return previous(e, names);
    const Value x = value_of(e.args[0], names);
    switch (form) {
      case ModelForm::binary:
        return paired(e.op, x, value_of(e.args[1], names));
      case ModelForm::unary:
        return each(x, [&](const Scalar& s) { return math_.function(e.op, s); });
      case ModelForm::range: {
        const double low = sizes_.number(e.parameters[0]), high = sizes_.number(e.parameters[1]);
        return each(x, [&](const Scalar& s) { return math_.ranged(e.op, s, low, high); });
      }
      case ModelForm::sum:
      case ModelForm::reduction:
        return reduced(e, x);
      case ModelForm::top:
        return top(x, e.parameters[0][0],
                   static_cast<std::int64_t>(sizes_.number(e.parameters[1])));
      case ModelForm::gather:
        return gathered(x, value_of(e.args[1], names));
      case ModelForm::turn:
        return turned(x, e.parameters[0][0], e.parameters[1] == "half",
                      static_cast<std::int64_t>(sizes_.number(e.parameters[2])));
      case ModelForm::append:
        return appended(e, x);
      default:
        return viewed(x, e.parameters[0], e.parameters[1]);
    }
  }

  /// An expression of several ops that a field has one function for; nullopt for all others.
  std::optional<Value> formal(const Expression& e, const Names& names) {
    if (const auto formula = math_.formula(e))
      return each(value_of(*formula->argument, names),
                  [&](const Scalar& s) { return math_.function(formula->name, s); });
    if (const auto parts = math_.difference(e, section_)) {
      const bool base2 = e.op == ModelOp::exp2;
      const auto exponential = [&](const Expression* part, std::string_view name) {
        return each(value_of(*part, names),
                    [&](const Scalar& s) { return math_.function(name, s); });
      };
      return paired(ModelOp::mul,
                    exponential(parts->first, base2 ? "score to exp2" : "score to exp"),
                    exponential(parts->second, base2 ? "max to exp2" : "max to exp"));
    }
    return std::nullopt;
  }

  template <class F>
  Value each(const Value& x, F&& f) const {
    Value y{x.letters, x.shape, {}, x.presence};
    y.data.reserve(x.data.size());
    for (const Scalar& s : x.data) y.data.push_back(f(s));
    return y;
  }

  Value paired(ModelOp op, const Value& a, const Value& b) const {
    Value y{a.letters, a.shape, {}};
    for (size_t i = 0; i < b.letters.size(); ++i)
      if (a.letters.find(b.letters[i]) == std::string::npos) {
        y.letters += b.letters[i];
        y.shape.push_back(b.shape[i]);
      }
    const auto in_a = places_in(y.letters, y.shape, a.letters, a.shape);
    const auto in_b = places_in(y.letters, y.shape, b.letters, b.shape);
    y.data.reserve(in_a.size());
    for (size_t i = 0; i < in_a.size(); ++i)
      y.data.push_back(math_.pair(op, a.data[in_a[i]], b.data[in_b[i]]));
    y.presence = both(a.presence, b.presence, y.letters, y.shape);
    return y;
  }

  Value contracted(const Expression& e, const Names& names) {
    std::vector<std::pair<Value, Value>> operands;
    for (size_t t = 0; t < e.terms.size(); ++t)
      operands.emplace_back(value_of(e.args[2 * t], names), value_of(e.args[2 * t + 1], names));
    const Shape shape = shape_of(e.terms[0].result);
    Value y{e.terms[0].result, shape, {}};
    bool known = false;
    if constexpr (!kFormal)
      if (&e == outermost_)  // to be rounded to f32
        if (auto product = product_of_floats(e, operands, shape)) {
          y = std::move(*product);
          known = true;
        }
    if (!known)
      for (const auto& sum : sums_of(e, operands, y)) y.data.push_back(sum.value());
    if (e.terms.size() > 1) return y;
    for (const Value* v : {&operands[0].first, &operands[0].second})
      if (v->presence && v->presence->letters.find_first_not_of(y.letters) == std::string::npos)
        y.presence = both(y.presence, v->presence, y.letters, y.shape);
    return y;
  }

  std::vector<typename Math::Sum> sums_of(const Expression& e,
                                          const std::vector<std::pair<Value, Value>>& operands,
                                          const Value& y) const {
    std::vector<typename Math::Sum> sums(count_of(y.shape), math_.sum());
    for (size_t t = 0; t < e.terms.size(); ++t) {
      const auto& [a, b] = operands[t];
      std::string over;
      Shape over_shape;
      for (const Value* v : {&a, &b})
        for (size_t i = 0; i < v->letters.size(); ++i)
          if ((y.letters + over).find(v->letters[i]) == std::string::npos) {
            over += v->letters[i];
            over_shape.push_back(v->shape[i]);
          }
      const auto a_first = places_in(y.letters, y.shape, a.letters, a.shape);
      const auto b_first = places_in(y.letters, y.shape, b.letters, b.shape);
      const auto a_next = places_in(over, over_shape, a.letters, a.shape);
      const auto b_next = places_in(over, over_shape, b.letters, b.shape);
      for (size_t i = 0; i < sums.size(); ++i)
        for (size_t k = 0; k < a_next.size(); ++k)
          sums[i].add(a.data[a_first[i] + a_next[k]], b.data[b_first[i] + b_next[k]]);
    }
    return sums;
  }

  /// sum, mean and max over what exists.
  Value reduced(const Expression& e, const Value& x) const {
    const std::string& over = e.parameters[0];
    Value y{"", {}, {}};
    for (size_t i = 0; i < x.letters.size(); ++i)
      if (over.find(x.letters[i]) == std::string::npos) {
        y.letters += x.letters[i];
        y.shape.push_back(x.shape[i]);
      }
    const Value sorted = in_order(x, y.letters + over);
    const auto here = here_in(sorted.presence, sorted.letters, sorted.shape);
    const size_t rows = count_of(y.shape), length = sorted.data.size() / std::max<size_t>(rows, 1);
    for (size_t row = 0; row < rows; ++row) {
      std::vector<Scalar> exists;
      for (size_t k = row * length; k < (row + 1) * length; ++k)
        if (here.empty() || here[k] != 0) exists.push_back(sorted.data[k]);
      y.data.push_back(reduced(e, exists));
    }
    return y;
  }

  Scalar reduced(const Expression& e, const std::vector<Scalar>& all) const {
    if (e.op == ModelOp::max) {
      if (all.empty())
        throw Error("oracle_graph", fmt::format("{}{}: the maximum of nothing that exists",
                                                text_.where(line_->line), line_->name));
      if constexpr (kFormal) {  // a function of the set
        auto sum = math_.sum();
        for (const Scalar& s : all) sum.add(math_.function("score to max", s));
        return sum.value();
      } else {
        return *std::max_element(all.begin(), all.end(), [&](const Scalar& a, const Scalar& b) {
          return math_.less(a, b);
        });
      }
    }
    if (e.parameters.size() == 2) {
      Scalar total = math_.number(0);
      for (const Scalar& s : all) total = math_.stored(math_.pair(ModelOp::add, total, s));
      return total;
    }
    auto sum = math_.sum();
    for (const Scalar& s : all) sum.add(s);
    return e.op == ModelOp::mean ? math_.divided(sum.value(), static_cast<std::int64_t>(all.size()))
                                 : sum.value();
  }

  Value top(const Value& x, char letter, std::int64_t k) const {
    if constexpr (kFormal) {
      throw Error("oracle_graph",
                  fmt::format("{}{}: numbers of a field have no order, which top asks "
                              "for",
                              text_.where(line_->line), line_->name));
    } else {
      return top_of(x, letter, k);
    }
  }

  Value top_of(const Value& x, char letter, std::int64_t k) const {
    Value y{x.letters, x.shape, std::vector<Scalar>(x.data.size(), math_.number(0))};
    const auto here = here_in(x.presence, x.letters, x.shape);
    const auto step = static_cast<size_t>(step_of(x.letters, x.shape, letter));
    const auto length = static_cast<size_t>(x.shape[x.letters.find(letter)]);
    for (size_t first = 0; first < x.data.size(); ++first) {
      if (first / step % length != 0) continue;
      std::vector<size_t> places;
      for (size_t i = 0; i < length; ++i)
        if (here.empty() || here[first + i * step] != 0) places.push_back(first + i * step);
      std::sort(places.begin(), places.end(), [&](size_t a, size_t b) {
        if (math_.less(x.data[b], x.data[a])) return true;
        return !math_.less(x.data[a], x.data[b]) && a < b;  // of equals the first
      });
      for (size_t i = 0; i < places.size() && i < static_cast<size_t>(k); ++i)
        y.data[places[i]] = math_.number(1);
    }
    return y;
  }

  /// Rows of a table; -0 becomes +0, as in a sum over its shards.
  Value gathered(const Value& table, const Value& index) const {
    Value y{index.letters + table.letters.substr(1), index.shape, {}};
    y.shape.insert(y.shape.end(), table.shape.begin() + 1, table.shape.end());
    const size_t width = table.data.size() / static_cast<size_t>(table.shape[0]);
    for (const Scalar& s : index.data) {
      const double at = math_.index(s);
      if (!(at >= 0 && at < static_cast<double>(table.shape[0])))
        throw Error("oracle_graph",
                    fmt::format("{}{}: gather reads row {} of {}", text_.where(line_->line),
                                line_->name, at, table.shape[0]));
      const size_t row = static_cast<size_t>(at) * width;
      for (size_t i = 0; i < width; ++i)
        y.data.push_back(math_.pair(ModelOp::add, table.data[row + i], math_.number(0)));
    }
    return y;
  }

  Value turned(const Value& x, char letter, bool half, std::int64_t channels) const {
    Value y{x.letters, x.shape, std::vector<Scalar>(x.data.size(), math_.number(0)), x.presence};
    const auto step = static_cast<size_t>(step_of(x.letters, x.shape, letter));
    const auto length = static_cast<size_t>(x.shape[x.letters.find(letter)]);
    const auto pairs = static_cast<size_t>(channels / 2);
    for (size_t first = 0; first < x.data.size(); ++first) {
      if (first / step % length != 0) continue;
      for (size_t j = 0; j < pairs; ++j) {
        const size_t a = first + (half ? j : 2 * j) * step;
        const size_t b = first + (half ? j + pairs : 2 * j + 1) * step;
        y.data[a] = math_.negative(x.data[b]);
        y.data[b] = x.data[a];
      }
    }
    return y;
  }

  /// Puts x's positions, as f32, into the cache of this expression.
  Value appended(const Expression& e, const Value& x) {
    const Value fresh = in_order(x, "BL" + others(x.letters));
    Value& cache = caches_[{layer_, &e}];
    const Value old = std::move(cache);
    cache = {"BM" + fresh.letters.substr(2), fresh.shape, {}};
    cache.shape[1] = extent('M');
    cache.data.assign(count_of(cache.shape), math_.number(0));
    const auto B = static_cast<size_t>(fresh.shape[0]), L = static_cast<size_t>(fresh.shape[1]);
    const auto M = static_cast<size_t>(cache.shape[1]);
    const size_t width = cache.data.size() / (B * M);
    const size_t before = old.data.empty() ? 0 : static_cast<size_t>(old.shape[1]);
    for (size_t b = 0; b < B; ++b) {
      std::copy_n(old.data.data() + b * before * width, before * width,
                  cache.data.data() + b * M * width);
      for (size_t i = 0; i < L; ++i) {
        const std::int64_t p = positions_[b * L + i];
        if (p < 0) continue;
        for (size_t n = 0; n < width; ++n)
          cache.data[(b * M + static_cast<size_t>(p)) * width + n] =
              math_.named(fresh.data[(b * L + i) * width + n]);
      }
    }
    std::string letters = x.letters;
    letters[letters.find('L')] = 'M';
    return in_order(cache, letters);
  }

  static std::string others(std::string_view letters) {
    std::string rest;
    for (const char c : letters)
      if (c != 'B' && c != 'L') rest += c;
    return rest;
  }

  Value viewed(const Value& x, const std::string& from, const std::string& to) const {
    Value y = x;
    view(y.letters, y.shape, from, to);
    if (!y.presence) return y;
    Presence& p = *y.presence;
    if (p.letters.find(from) != std::string::npos) {
      view(p.letters, p.shape, from, to);
    } else if (p.letters.find_first_of(from) != std::string::npos) {
      // Some of the merged letters only: all of them first.
      Presence all{x.letters, x.shape, here_in(x.presence, x.letters, x.shape)};
      view(all.letters, all.shape, from, to);
      p = std::move(all);
    }
    return y;
  }

  void view(std::string& letters, Shape& shape, const std::string& from,
            const std::string& to) const {
    const auto at = letters.find(from);
    letters.replace(at, from.size(), to);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at),
                shape.begin() + static_cast<std::ptrdiff_t>(at + from.size()));
    const Shape other = shape_of(to);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), other.begin(), other.end());
  }

  // --- values one position earlier ---

  /// The part of a value at position i of the pass, L kept as 1; what lacks L stays whole.
  Value at_position(const Value& x, std::int64_t i) const {
    const auto at = x.letters.find('L');
    if (at == std::string::npos) return x;
    Value y{x.letters, x.shape, {}, x.presence};
    y.shape[at] = 1;
    const auto step = step_of(x.letters, x.shape, 'L');
    const auto places = places_in(y.letters, y.shape, x.letters, x.shape);
    for (const size_t place : places)
      y.data.push_back(x.data[place + static_cast<size_t>(step * i)]);
    if (y.presence && y.presence->letters.find('L') != std::string::npos) {
      Presence part{y.presence->letters, y.presence->shape, {}};
      part.shape[part.letters.find('L')] = 1;
      const auto move = step_of(y.presence->letters, y.presence->shape, 'L');
      for (const size_t place :
           places_in(part.letters, part.shape, y.presence->letters, y.presence->shape))
        part.here.push_back(y.presence->here[place + static_cast<size_t>(move * i)]);
      y.presence = std::move(part);
    }
    return y;
  }

  /// Values of one position each, joined along L.
  Value joined(const std::vector<Value>& parts, const std::string& letters) const {
    Value y{letters, parts[0].shape, {}};
    const auto at = letters.find('L');
    y.shape[at] = static_cast<std::int64_t>(parts.size());
    y.data.resize(count_of(y.shape));
    const auto step = static_cast<size_t>(step_of(letters, y.shape, 'L'));
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto places = places_in(letters, parts[i].shape, letters, y.shape);
      for (size_t n = 0; n < places.size(); ++n) y.data[places[n] + i * step] = parts[i].data[n];
    }
    bool partly = false;
    for (const Value& part : parts) partly = partly || part.presence.has_value();
    if (partly) {
      Presence whole{letters, y.shape, std::vector<std::uint8_t>(y.data.size(), 1)};
      for (size_t i = 0; i < parts.size(); ++i) {
        const auto here = here_in(parts[i].presence, letters, parts[i].shape);
        const auto places = places_in(letters, parts[i].shape, letters, y.shape);
        for (size_t n = 0; n < here.size(); ++n) whole.here[places[n] + i * step] = here[n];
      }
      y.presence = std::move(whole);
    }
    return y;
  }

  /// Lines that need one another one position earlier: all of them at one position, then at the
  /// next.
  void loop(const std::vector<const TextLine*>& lines, Names& names) {
    if (lines.empty()) return;
    const std::int64_t L = extent('L');
    const std::vector<std::int64_t> positions = positions_;
    std::map<std::string, std::vector<Value>, std::less<>> parts;
    for (std::int64_t i = 0; i < L; ++i) {
      Names here;
      for (const auto& [name, value] : names) here[name] = at_position(value, i);
      extents_['L'] = 1;
      positions_.clear();
      for (size_t b = 0; b < positions.size() / static_cast<size_t>(L); ++b)
        positions_.push_back(positions[b * static_cast<size_t>(L) + static_cast<size_t>(i)]);
      inside_ = &here;
      whole_ = &names;
      at_ = i;
      for (const TextLine* line : lines) {
        const Value value = evaluate(*line, here);
        here[line->name] = value;
        parts[line->name].push_back(value);
      }
      for (const TextLine* line : lines)
        carried_[line->name] = without_presence(here.at(line->name));
    }
    extents_['L'] = L;
    positions_ = positions;
    inside_ = whole_ = nullptr;
    carried_.clear();
    for (const TextLine* line : lines)
      names[line->name] = joined(parts.at(line->name), line->letters);
  }

  static Value without_presence(Value v) {
    v.presence.reset();
    return v;
  }

  /// The value one position earlier: of the pass before at the pass's first position, the start at
  /// position 0.
  Value previous(const Expression& e, const Names& names) {
    const std::string& name = e.args[0].text;
    const bool of_loop = inside_ != nullptr && whole_->find(name) == whole_->end();
    const Value start =
        e.args.size() == 2 ? value_of(e.args[1], names) : Value{"", {}, {math_.number(0)}};
    const std::string letters = letters_of_line(name);
    const Value* state = nullptr;
    if (const auto at = ended_.find({layer_, name}); at != ended_.end()) state = &at->second;
    Value y{letters, shape_of(letters), {}};
    const auto l = static_cast<size_t>(letters.find('L')), b = letters.find('B');
    const auto of_start = places_in(y.letters, y.shape, start.letters, start.shape);
    const std::int64_t L = y.shape[l];
    const size_t l_step = static_cast<size_t>(step_of(letters, y.shape, 'L'));
    const size_t b_step = static_cast<size_t>(step_of(letters, y.shape, 'B'));
    // A state has the value's letters without L.
    std::string rest = letters;
    rest.erase(l, 1);
    const auto in_state = places_in(letters, y.shape, rest, shape_of(rest));
    const Value* const loop_state =
        of_loop && carried_.contains(name) ? &carried_.at(name) : nullptr;
    const Value* const shifted = of_loop ? nullptr : source(name, names);
    for (size_t i = 0; i < count_of(y.shape); ++i) {
      const size_t row = i / b_step % static_cast<size_t>(y.shape[b]);
      const size_t token = i / l_step % static_cast<size_t>(L);
      const std::int64_t p = positions_[row * static_cast<size_t>(L) + token];
      const std::int64_t first_token = inside_ != nullptr ? at_ : static_cast<std::int64_t>(token);
      if (p <= 0)
        y.data.push_back(start.data[of_start[i]]);
      else if (loop_state != nullptr)
        y.data.push_back(loop_state->data[in_state[i]]);
      else if (first_token > 0 && shifted != nullptr)
        y.data.push_back(earlier(*shifted, y, i, static_cast<size_t>(first_token), l));
      else
        y.data.push_back(state == nullptr ? math_.number(0) : state->data[in_state[i]]);
    }
    return y;
  }

  /// The whole value of this name in the pass, or null where it is computed by the loop itself.
  const Value* source(const std::string& name, const Names& names) const {
    const Names& all = whole_ != nullptr ? *whole_ : names;
    const auto at = all.find(name);
    return at == all.end() ? nullptr : &at->second;
  }

  /// The element of `x` that stands where element i of `y` does, at token - 1.
  Scalar earlier(const Value& x, const Value& y, size_t i, size_t token, size_t l) const {
    size_t place = 0;
    for (size_t d = 0; d < y.letters.size(); ++d) {
      const auto step = static_cast<size_t>(step_of(y.letters, y.shape, y.letters[d]));
      const size_t index = d == l ? token - 1 : i / step % static_cast<size_t>(y.shape[d]);
      place += index * static_cast<size_t>(step_of(x.letters, x.shape, y.letters[d]));
    }
    return x.data[place];
  }

  std::string letters_of_line(const std::string& name) const {
    for (const TextLine& line : text_.section(section_).lines)
      if (line.name == name) return line.letters;
    return "";
  }

  /// Keeps a value's last position in each row that has a token.
  void keep_last(const std::string& name, const Value& value) {
    if (!is_read_before(name)) return;
    const auto L = static_cast<size_t>(extent('L'));
    Value last = at_position(value, 0);
    const auto old = ended_.find({layer_, name});
    last.presence.reset();
    const size_t b_step = static_cast<size_t>(step_of(last.letters, last.shape, 'B'));
    const auto rows = static_cast<size_t>(extent('B'));
    for (size_t i = 0; i < last.data.size(); ++i) {
      const size_t row = i / b_step % rows;
      std::int64_t token = -1;
      for (size_t t = 0; t < L; ++t)
        if (positions_[row * L + t] >= 0) token = static_cast<std::int64_t>(t);
      if (token >= 0)
        last.data[i] = earlier(value, last, i, static_cast<size_t>(token) + 1,
                               static_cast<size_t>(last.letters.find('L')));
      else
        last.data[i] = old == ended_.end() ? math_.number(0) : old->second.data[i];
    }
    next_ended_[{layer_, name}] = std::move(last);
  }

  bool is_read_before(const std::string& name) {
    if (!read_before_) {
      read_before_.emplace();
      for (const TextSection section : kTextSections)
        for (const TextLine& line : text_.section(section).lines)
          for (const std::string& read : reads_of(text_, line).before) read_before_->insert(read);
    }
    return read_before_->contains(name);
  }

  const ModelText& text_;
  const TextSizes& sizes_;
  const Math& math_;
  Weights weights_;
  Seen seen_;
  std::vector<std::vector<LineGroup>> orders_;
  std::map<char, std::int64_t> extents_;
  std::int64_t slots_ = 0;
  std::vector<std::int64_t> positions_;
  std::int64_t layer_ = -1;
  TextSection section_ = TextSection::embedding;
  const TextLine* line_ = nullptr;
  const Expression* outermost_ = nullptr;  // of the line, below store and views
  std::map<std::pair<std::int64_t, const Expression*>, Value> caches_;
  std::map<Key, Value> ended_, next_ended_;
  std::optional<std::set<std::string, std::less<>>> read_before_;
  // In a loop: the names at one position, those outside of it, and the loop's values one earlier.
  const Names* inside_ = nullptr;
  const Names* whole_ = nullptr;
  std::int64_t at_ = 0;
  std::map<std::string, Value, std::less<>> carried_;
};

}  // namespace shardproof::oracle::graph
