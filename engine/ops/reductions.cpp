#include "engine/ops/reductions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/numeric/exact_sum.h"
#include "engine/numeric/larger.h"
#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/detail/places.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

/// Where the elements of each result are: offsets of the result's elements, and from these of the
/// elements that it is over.
struct Reduced {
  std::vector<std::int64_t> first, next;

  Reduced(const Sharded& of, const Sharded& x, const std::string& kept, const std::string& over) {
    const std::string all = x.layout().letters();
    const std::string own = of.layout().letters();
    first = places_in(kept, extents_of(kept, all, x.local()), own, of.local());
    next = places_in(over, extents_of(over, all, x.local()), own, of.local());
  }
};

/// The places of a value and of its indicators.
struct Places {
  Reduced in_x;
  std::vector<Reduced> in_indicators;

  Places(const Present& x, const std::string& kept, const std::string& over)
      : in_x(x.value, x.value, kept, over) {
    for (const Sharded* const w : x.indicators) in_indicators.emplace_back(*w, x.value, kept, over);
  }
};

/// The elements of one chip, by result and by number among those that it is over.
template <class Formulas>
class ChipElements {
 public:
  using Number = typename Formulas::Number;

  ChipElements(const Formulas& f, const Present& x, const Places& places, std::int64_t chip)
      : places_(places), in_(numbers_of(f, x.value, chip)) {
    for (const Sharded* const w : x.indicators) indicators_.push_back(numbers_of(f, *w, chip));
  }

  std::size_t count() const { return places_.in_x.next.size(); }
  std::int64_t place(std::size_t i, std::size_t k) const {
    return places_.in_x.first[i] + places_.in_x.next[k];
  }
  const Number& at(std::size_t i, std::size_t k) const { return in_[place(i, k)]; }
  bool exists(std::size_t i, std::size_t k) const {
    for (std::size_t w = 0; w < indicators_.size(); ++w) {
      const Reduced& in = places_.in_indicators[w];
      if (indicators_[w][in.first[i] + in.next[k]] == Number{}) return false;
    }
    return true;
  }

 private:
  const Places& places_;
  const Number* in_;
  std::vector<const Number*> indicators_;
};

ChipGroups groups_of(const Present& x, const Threads& threads) {
  ChipGroups groups = reading({&x.value}, threads);
  for (const Sharded* const w : x.indicators) groups.split(*w);
  return groups;
}

/// The global index of an element of a chip's shard, "[0,3]".
std::string index_of(const Torus& torus, const Layout& layout, const Shape& shape,
                     std::int64_t chip, std::size_t i) {
  const Shape local = local_shape(layout, shape, torus);
  auto element = static_cast<std::int64_t>(i);
  Shape index(local.size());
  for (std::size_t d = local.size(); d-- > 0; element /= local[d])
    index[d] =
        element % local[d] + local[d] * torus.block(static_cast<int>(chip), layout.dims()[d].axes);
  return fmt::format("[{}]", fmt::join(index, ","));
}

/// Computes a result from the elements that exist: begin(f) makes what sees them, one by one, and
/// then gives the result, or nullopt if there is none. `label`: of the error where there is none.
template <class Begin>
Sharded reduced(const Present& x, const std::string& letters, const Layout& layout,
                const Shape& shape, Threads& threads, std::string_view label, Begin&& begin) {
  const Places places(x, letters_without(x.value.layout().letters(), letters), letters);
  return with_formulas(x.value, [&](const auto& f) {
    using Formulas = std::decay_t<decltype(f)>;
    const auto body = [&](std::int64_t chip, typename Formulas::Number* out) {
      const ChipElements<Formulas> elements(f, x, places, chip);
      for (std::size_t i = 0; i < places.in_x.first.size(); ++i) {
        auto reduction = begin(f);
        for (std::size_t k = 0; k < elements.count(); ++k)
          if (elements.exists(i, k)) reduction.see(elements.at(i, k));
        const auto result = reduction.result();
        if (!result)
          throw Error(label, fmt::format("the element {} is of nothing that exists",
                                         index_of(x.value.torus(), layout, shape, chip, i)));
        out[i] = *result;
      }
    };
    return map_chips(f, x.value.torus(), groups_of(x, threads), layout, shape, threads, body);
  });
}

/// The larger of floats.
struct FloatMax {
  void see(float v) { best = best ? larger(*best, v) : v; }
  std::optional<float> result() const { return best; }
  static float nothing() { return -std::numeric_limits<float>::infinity(); }
  std::optional<float> best = {};
};

/// A hash of the set.
struct FieldMax {
  void see(const FieldElement& v) {
    const FieldElement hashed = field.apply(of, v);
    best = best ? field.add(*best, hashed) : hashed;
  }
  std::optional<FieldElement> result() const { return best; }
  static FieldElement nothing() { return {}; }
  const Field& field;
  const FieldFunction& of;
  std::optional<FieldElement> best = {};
};

/// A maximum of a block, which may be of nothing.
template <class Max>
struct BlockMax : Max {
  auto result() const { return this->best ? this->best : std::optional(Max::nothing()); }
};

FloatMax max_of(const Sharded&, const FloatFormulas&) { return {}; }
FieldMax max_of(const Sharded& x, const FieldFormulas&) {
  const Field& field = *x.field().field;
  return {field, field.function("score to max")};
}

/// The mean of floats, of an exact sum or of a chain of f32 additions.
struct FloatMean {
  void see(float v) {
    if (exact) sum.add_product(v, 1.0F);
    chain += v;
    ++n;
  }
  std::optional<float> result() const {
    if (n == 0) return std::nullopt;
    const double total = exact ? sum.rounded64() : static_cast<double>(chain);
    return static_cast<float>(total / static_cast<double>(n));
  }
  bool exact;
  ExactSum sum = {};
  float chain = 0.0F;
  std::int64_t n = 0;
};

struct FieldMean {
  void see(const FieldElement& v) {
    sum = field.add(sum, v);
    ++n;
  }
  std::optional<FieldElement> result() const {
    if (n == 0) return std::nullopt;
    return field.multiply(sum, field.inverse(field.integer(n)));
  }
  const Field& field;
  FieldElement sum = {};
  std::int64_t n = 0;
};

FloatMean sum_for_mean(const Sharded&, const FloatFormulas&, Regime regime) {
  return {regime == Regime::exact};
}
FieldMean sum_for_mean(const Sharded& x, const FieldFormulas&, Regime) {
  return {*x.field().field};
}

/// A sum that is stored after each addition.
template <class Formulas>
struct Storing {
  using Number = typename Formulas::Number;

  void see(const Number& v) {
    total = f.add(total, v);
    if (act == NumberFormat::bf16) total = f.stored()(total);
  }
  std::optional<Number> result() const { return total; }
  const Formulas& f;
  NumberFormat act;
  Number total = {};
};

}  // namespace

Sharded largest(const Present& x, const std::string& letters, const Layout& layout,
                const Shape& shape, Threads& threads) {
  if (layout.is_partial())
    return reduced(x, letters, layout, shape, threads, "max_empty", [&](const auto& f) {
      return BlockMax<decltype(max_of(x.value, f))>{max_of(x.value, f)};
    });
  return reduced(x, letters, layout, shape, threads, "max_empty",
                 [&](const auto& f) { return max_of(x.value, f); });
}

Sharded mean_of(const Present& x, const std::string& letters, const Layout& layout,
                const Shape& shape, Threads& threads, Regime regime) {
  return reduced(x, letters, layout, shape, threads, "mean_empty",
                 [&](const auto& f) { return sum_for_mean(x.value, f, regime); });
}

Sharded stored_sum(const Present& x, const std::string& letters, const Layout& layout,
                   const Shape& shape, Threads& threads, NumberFormat act) {
  return reduced(x, letters, layout, shape, threads, "", [&](const auto& f) {
    return Storing<std::decay_t<decltype(f)>>{f, act};
  });
}

Sharded mark_top(const Present& x, char letter, std::int64_t count, Threads& threads) {
  if (x.value.holds_field())
    throw Error("top_order", "numbers of a field have no order, which top asks for");
  const FloatFormulas f;
  const std::string over(1, letter);
  const Places places(x, letters_without(x.value.layout().letters(), over), over);
  const auto n = static_cast<std::size_t>(element_count(x.value.local()));
  const auto body = [&](std::int64_t chip, float* out) {
    std::fill_n(out, n, 0.0F);
    const ChipElements<FloatFormulas> elements(f, x, places, chip);
    for (std::size_t i = 0; i < places.in_x.first.size(); ++i)
      for (std::int64_t marked = 0; marked < count; ++marked) {
        std::optional<std::size_t> best;  // of equals the first
        for (std::size_t k = 0; k < elements.count(); ++k)
          if (elements.exists(i, k) && out[elements.place(i, k)] == 0.0F &&
              (!best || elements.at(i, *best) < elements.at(i, k)))
            best = k;
        if (!best) break;
        out[elements.place(i, *best)] = 1.0F;
      }
  };
  return map_chips(f, x.value.torus(), groups_of(x, threads), x.value.layout(), x.value.shape(),
                   threads, body);
}

Sharded sum_over(const SharedValue& x, const std::string& letters, const Layout& layout,
                 const Shape& shape, Threads& threads, Regime regime, NumberFormat acc,
                 PartialSums values) {
  const std::string all = x->layout().letters();
  std::vector<Layout::Dim> dims;
  for (const char letter : letters) dims.push_back({letter, x->layout().axes(letter)});
  const EinsumSpec spec{{{all, letters, letters_without(all, letters)}}};
  const auto ones = with_formulas(*x, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    return map_chips(f, x->torus(), ChipGroups(x->torus(), threads), Layout(dims, Axes()),
                     extents_of(letters, all, x->shape()), threads,
                     [&, n = element_count(extents_of(letters, all, x->local()))](
                         std::int64_t, Number* out) { std::fill_n(out, n, f.integer(1)); });
  });
  return einsum(spec, {{x, std::make_shared<const Sharded>(ones)}}, layout, shape, threads, regime,
                acc, {}, values);
}

}  // namespace shardproof
