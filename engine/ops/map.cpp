#include "engine/ops/map.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/field_map.h"
#include "engine/ops/detail/float_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/detail/places.h"

namespace shardproof {
namespace {

/// A value on one chip while it is computed.
template <class Number>
struct LocalValue {
  std::string letters;
  Shape shape;
  std::vector<Number> data;
};

/// The value of an expression on one chip: each op on all elements before the next.
template <class Math>
class Evaluation {
 public:
  using Number = typename Math::Number;
  using Value = LocalValue<Number>;

  Evaluation(const Math& math, const MapNames& names, const std::vector<const Sharded*>& operands,
             std::int64_t chip)
      : math_(math), names_(names), operands_(operands), chip_(chip) {}

  Value value(const Expression& e) const {
    if (e.kind != Expression::Kind::call) {
      if (const auto operand = names_.operand(e.text)) return read(*operands_[*operand]);
      return {"", {}, {math_.word(e.text)}};
    }
    if constexpr (Math::kFormal) {
      if (const auto call = math_.form().call(e))
        return each(value(*call->argument), math_.named(call->name));
      if (const auto d = math_.form().difference(e))
        return paired(ModelOp::mul, each(value(*d->first), math_.named(d->first_name())),
                      each(value(*d->second), math_.named(d->second_name())));
    }
    if (row_of(e.op).form == ModelForm::binary)
      return paired(e.op, value(e.args[0]), value(e.args[1]));
    return each(value(e.args[0]), math_.function(e));
  }

 private:
  Value read(const Sharded& operand) const {
    Value v{operand.layout().letters(), operand.local(), {}};
    const auto n = static_cast<std::size_t>(element_count(v.shape));
    v.data.reserve(n);
    if (operand.stores_int32())
      for (std::size_t i = 0; i < n; ++i)
        v.data.push_back(math_.integer(ints_of(operand, chip_)[i]));
    else
      for (std::size_t i = 0; i < n; ++i)
        v.data.push_back(math_.operand(math_.shard(operand, chip_)[i]));
    return v;
  }

  template <class F>
  static Value each(Value v, F&& f) {
    for (Number& number : v.data) number = f(number);
    return v;
  }

  Value paired(ModelOp op, const Value& a, const Value& b) const {
    Value y{a.letters, a.shape, {}};
    for (std::size_t d = 0; d < b.letters.size(); ++d)
      if (a.letters.find(b.letters[d]) == std::string::npos) {
        y.letters += b.letters[d];
        y.shape.push_back(b.shape[d]);
      }
    const auto in_a = places_in(y.letters, y.shape, a.letters, a.shape);
    const auto in_b = places_in(y.letters, y.shape, b.letters, b.shape);
    y.data.reserve(in_a.size());
    for (std::size_t i = 0; i < in_a.size(); ++i)
      y.data.push_back(math_.pair(op, a.data[static_cast<std::size_t>(in_a[i])],
                                  b.data[static_cast<std::size_t>(in_b[i])]));
    return y;
  }

  const Math& math_;
  const MapNames& names_;
  const std::vector<const Sharded*>& operands_;
  std::int64_t chip_;
};

/// Computes the map chip by chip; `f` makes the result of the numbers.
template <class Math, class Formulas>
Sharded evaluated(const Math& math, const Formulas& f, const MapExpression& map,
                  const std::vector<const Sharded*>& operands, const Layout& layout,
                  const Shape& shape, Threads& threads) {
  ChipGroups groups(operands[0]->torus(), threads);
  for (const Sharded* operand : operands) groups.split(*operand);
  return map_chips(f, operands[0]->torus(), groups, layout, shape, threads,
                   [&](std::int64_t chip, typename Math::Result* out) {
                     const auto value =
                         Evaluation<Math>(math, map.names, operands, chip).value(map.expression);
                     const std::string letters = layout.letters();
                     if (letters == value.letters) {
                       for (const auto& number : value.data) *out++ = Math::result(number);
                       return;
                     }
                     for (const std::int64_t place :
                          places_in(letters, extents_of(letters, value.letters, value.shape),
                                    value.letters, value.shape))
                       *out++ = Math::result(value.data[static_cast<std::size_t>(place)]);
                   });
}

/// The terms of partial sums, without those of elements that do not exist.
class PresentTerms : public PartialSource {
 public:
  PresentTerms(std::shared_ptr<const PartialSource> terms, ChipArrays<std::uint8_t> exists)
      : terms_(std::move(terms)), exists_(std::move(exists)) {}

  void add_terms(int chip, std::int64_t index, CompensatedSum& sum) const override {
    if (exists(chip, index)) terms_->add_terms(chip, index, sum);
  }
  void add_terms(int chip, std::int64_t index, ExactSum& sum) const override {
    if (exists(chip, index)) terms_->add_terms(chip, index, sum);
  }

 private:
  bool exists(int chip, std::int64_t index) const {
    return exists_[static_cast<std::size_t>(chip)][static_cast<std::size_t>(index)] != 0;
  }

  std::shared_ptr<const PartialSource> terms_;
  ChipArrays<std::uint8_t> exists_;
};

/// Partial sums that lie where they were computed, each of its own terms.
Sharded partial_where_present(const Sharded& value, const Sharded& indicator, Threads& threads) {
  const Partial& from = value.partial();
  if (from.lazy != nullptr || from.terms != 1)
    throw std::logic_error("where takes partial sums as they were computed");
  const auto places = places_in(value.layout().letters(), value.local(),
                                indicator.layout().letters(), indicator.local());
  const ChipGroups groups = reading({&value, &indicator}, threads);
  const std::size_t chips = from.values.size();
  const auto here = [&](std::int64_t chip, std::size_t i) {
    return indicator.f32()[static_cast<std::size_t>(chip)][static_cast<std::size_t>(places[i])] !=
           0.0F;
  };
  Partial to = from;
  to.values =
      made_by<double>(groups, chips, places.size(), threads, [&](std::int64_t chip, double* out) {
        const auto& own = from.values[static_cast<std::size_t>(chip)];
        for (std::size_t i = 0; i < places.size(); ++i) out[i] = here(chip, i) ? own[i] : 0.0;
      });
  to.bounds =
      made_by<float>(groups, chips, places.size(), threads, [&](std::int64_t chip, float* out) {
        for (std::size_t i = 0; i < places.size(); ++i)
          out[i] = here(chip, i) ? static_cast<float>(from.bound(static_cast<int>(chip),
                                                                 static_cast<std::int64_t>(i)))
                                 : 0.0F;
      });
  auto exists = made_by<std::uint8_t>(groups, chips, places.size(), threads,
                                      [&](std::int64_t chip, std::uint8_t* out) {
                                        for (std::size_t i = 0; i < places.size(); ++i)
                                          out[i] = here(chip, i) ? 1 : 0;
                                      });
  to.source = std::make_shared<const PresentTerms>(from.source, std::move(exists));
  return {value.torus(), value.layout(), value.shape(), std::move(to)};
}

}  // namespace

Sharded map_elements(const MapExpression& map, const std::vector<const Sharded*>& operands,
                     const Layout& layout, const Shape& shape, std::shared_ptr<const Field> field,
                     Threads& threads) {
  if (field != nullptr)
    return evaluated(FieldMap(map, field), FieldFormulas(field), map, operands, layout, shape,
                     threads);
  return evaluated(FloatMap(map), FloatFormulas(), map, operands, layout, shape, threads);
}

Sharded where_present(const Sharded& value, const Sharded& indicator, Threads& threads) {
  if (value.holds_partial()) return partial_where_present(value, indicator, threads);
  return with_formulas(value, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const auto places = places_in(value.layout().letters(), value.local(),
                                  indicator.layout().letters(), indicator.local());
    return map_chips(f, value.torus(), reading({&value, &indicator}, threads), value.layout(),
                     value.shape(), threads, [&](std::int64_t chip, Number* out) {
                       const Number* const in = numbers_of(f, value, chip);
                       const Number* const w = numbers_of(f, indicator, chip);
                       for (std::size_t i = 0; i < places.size(); ++i)
                         out[i] = w[places[i]] == Number{} ? Number{} : in[i];
                     });
  });
}

}  // namespace shardproof
