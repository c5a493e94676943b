// Typing of the ops that only programs of a model's text have.
#include <algorithm>

#include "engine/ops/map_names.h"
#include "engine/program/detail/typing_rules.h"
#include "weights/text/formula.h"

namespace shardproof::typing {
namespace {

/// The dims of an expression's value: of its names in the order of their first appearance.
class Dims {
 public:
  Dims(const Rules& rules, const MapNames& names) : rules_(rules), names_(names) {}

  void add(const Expression& e) {
    if (e.kind == Expression::Kind::number) return;
    if (e.kind == Expression::Kind::name) {
      if (const auto operand = names_.operand(e.text)) add(rules_.arg(*operand));
      return;
    }
    const ModelForm form = row_of(e.op).form;
    rules_.require(
        form == ModelForm::binary || form == ModelForm::unary || form == ModelForm::range, 2,
        "{} is not an op on single elements; give its result a name, in a step of its own",
        row_of(e.op).name);
    for (const std::string& word : e.parameters)
      rules_.require(names_.number(word).has_value(), 5,
                     "{} in {} is neither a number nor named behind the semicolon", word, print(e));
    for (const Expression& arg : e.args) add(arg);
  }

  Type type() const {
    for (std::size_t i = 0; i < dims_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        for (const Axis axis : dims_[i].axes)
          rules_.require(!dims_[j].axes.has(axis), 4, "axis {} shards both {} and {}",
                         to_char(axis), named(dims_[j].letter, dims_[j].axes),
                         named(dims_[i].letter, dims_[i].axes));
    return {Layout(dims_, Axes()), shape_, false};
  }

 private:
  void add(const Type& t) {
    for (std::size_t d = 0; d < t.layout.rank(); ++d) {
      const Layout::Dim& dim = t.layout.dims()[d];
      if (std::none_of(dims_.begin(), dims_.end(),
                       [&](const Layout::Dim& known) { return known.letter == dim.letter; })) {
        dims_.push_back(dim);
        shape_.push_back(t.shape[d]);
      }
    }
  }

  const Rules& rules_;
  const MapNames& names_;
  std::vector<Layout::Dim> dims_;
  Shape shape_;
};

/// A type without some of its letters, whose axes become those of a partial sum, or of a maximum.
Type without(const Type& t, std::string_view letters, bool by_max) {
  Type rest{Layout(), {}, false};
  std::vector<Layout::Dim> dims;
  Axes summed;
  for (std::size_t d = 0; d < t.layout.rank(); ++d) {
    const Layout::Dim& dim = t.layout.dims()[d];
    if (letters.find(dim.letter) != std::string_view::npos) {
      summed = summed.with(dim.axes);
      continue;
    }
    dims.push_back(dim);
    rest.shape.push_back(t.shape[d]);
  }
  rest.layout = Layout(std::move(dims), summed, by_max);
  return rest;
}

/// The type with its letters in another order.
Type in_order(const Rules& rules, const Type& t, const std::string& letters) {
  const std::string own = t.layout.letters();
  rules.require(std::is_permutation(letters.begin(), letters.end(), own.begin(), own.end()), 7,
                "{} is not an order of the dims of {}", letters, t.layout);
  std::vector<Layout::Dim> dims;
  Shape shape;
  for (const char letter : letters) {
    const std::size_t at = *t.layout.find(letter);
    dims.push_back(t.layout.dims()[at]);
    shape.push_back(t.shape[at]);
  }
  return {Layout(std::move(dims), t.layout.partial()), std::move(shape), t.integer};
}

/// Requires that the operand has the letters, each of which is given once.
void has_letters(const Rules& rules, const Type& x, const std::string& letters) {
  for (std::size_t i = 0; i < letters.size(); ++i) {
    rules.require(x.layout.find(letters[i]).has_value(), 2, "{} has no dim {}", x.layout,
                  letters[i]);
    rules.require(letters.find(letters[i]) == i, 2, "{} is given twice", letters[i]);
  }
}

}  // namespace

Types map(const Rules& rules, const Op& op) {
  rules.require(op.expression.has_value(), 2, "it has no expression");
  const MapNames names(*op.expression, op.constants, op.formulas);
  rules.require(names.operands().size() == op.operands(), 2, "{} has {} operands, not {}",
                op.to_string(), names.operands().size(), op.operands());
  Dims dims(rules, names);
  dims.add(*op.expression);
  for (const NamedFormula& formula : op.formulas) {
    const auto operand = names.operand(formula.name);
    rules.require(operand.has_value(), 5, "{}, which has a formula, is not an operand of {}",
                  formula.name, op.to_string());
    Dims own(rules, names);
    own.add(formula.expression);
    const Type type = own.type();
    const Type& is = rules.arg(*operand);
    const std::string letters = is.layout.letters(), computed = type.layout.letters();
    rules.require(
        std::is_permutation(letters.begin(), letters.end(), computed.begin(), computed.end()), 5,
        "{} is {}, but its formula is {}", formula.name, is.layout, type.layout);
  }
  for (std::size_t i = 0; i < op.operands(); ++i)
    for (std::size_t j = 0; j < i; ++j) rules.aligned(3, j, i);
  Type type = dims.type();
  if (!op.parameter.empty()) type = in_order(rules, type, op.parameter);
  rules.indicators(6, type);
  return {std::move(type)};
}

Types local_reduction(const Rules& rules, const Op& op) {
  const Type& x = rules.arg(0);
  has_letters(rules, x, op.parameter);
  const bool most = op.kind == OpKind::max;
  for (const char letter : op.parameter)
    rules.require(most || x.layout.axes(letter).empty(), 3, "{} of {} is sharded; gather it first",
                  named(letter, x.layout.axes(letter)), x.layout);
  rules.indicators(most ? 3 : 4, x);
  return {without(x, op.parameter, true)};
}

Types sum(const Rules& rules, const Op& op) {
  const Type& x = rules.arg(0);
  has_letters(rules, x, op.parameter);
  return {without(x, op.parameter, false)};
}

Types top(const Rules& rules, const Op& op) {
  const Type& x = rules.arg(0);
  const std::size_t at = rules.dim(2, x.layout, op.dim);
  rules.unsharded(3, 0, std::string_view(&op.dim, 1));
  rules.require(op.count >= 1 && op.count <= x.shape[at], 4, "{} of {}={}", op.count, op.dim,
                x.shape[at]);
  rules.indicators(5, x);
  return {x};
}

Types turn(const Rules& rules, const Op& op) {
  const Type& x = rules.arg(0);
  const std::size_t at = rules.dim(2, x.layout, op.dim);
  rules.unsharded(3, 0, std::string_view(&op.dim, 1));
  rules.require(op.count % 2 == 0 && op.count >= 0 && op.count <= x.shape[at], 4,
                "{} channels in pairs of {}={}", op.count, op.dim, x.shape[at]);
  rules.indicators(5, x);
  return {x};
}

Types gather(const Rules& rules, const Type& index, const Type& table) {
  rules.require(index.integer, 2, "the index is int32, not {}", rules.full(0));
  rules.require(table.layout.rank() > 0, 2, "the table has no dims");
  const Layout::Dim& rows = table.layout.dims()[0];
  std::vector<Layout::Dim> dims = index.layout.dims();
  Shape shape = index.shape;
  for (const Layout::Dim& dim : table.layout.dims())
    rules.require(!index.layout.find(dim.letter), 2, "both {} and {} have {}", index.layout,
                  table.layout, dim.letter);
  rules.require(rows.axes.empty(), 3, "{} of {} is sharded; gather it first",
                named(rows.letter, rows.axes), table.layout);
  rules.require(!index.layout.used().has_any(table.layout.used()), 4,
                "an axis shards both the index {} and the table {}", index.layout, table.layout);
  dims.insert(dims.end(), table.layout.dims().begin() + 1, table.layout.dims().end());
  shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
  return {{Layout(std::move(dims), Axes()), std::move(shape), false}};
}

}  // namespace shardproof::typing
