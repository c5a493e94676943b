#include "engine/ops/reductions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/detail/places.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

/// Where the elements of each maximum are: offsets of the result's elements, and from these of the
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

/// The larger of floats.
struct FloatMax {
  void see(float v) {
    if (!best || *best < v) best = v;
  }
  std::optional<float> best = {};
};

/// A hash of the set.
struct FieldMax {
  void see(const FieldElement& v) {
    const FieldElement hashed = field.apply(of, v);
    best = best ? field.add(*best, hashed) : hashed;
  }
  const Field& field;
  const FieldFunction& of;
  std::optional<FieldElement> best = {};
};

FloatMax max_of(const Sharded&, const FloatFormulas&) { return {}; }
FieldMax max_of(const Sharded& x, const FieldFormulas&) {
  const Field& field = *x.field().field;
  return {field, field.function("score to max")};
}

/// The global index of an element of a chip's shard, "[0,3]".
std::string index_of(const Torus& torus, const Layout& layout, const Shape& local,
                     std::int64_t chip, std::int64_t element) {
  Shape index(local.size());
  for (std::size_t d = local.size(); d-- > 0; element /= local[d])
    index[d] =
        element % local[d] + local[d] * torus.block(static_cast<int>(chip), layout.dims()[d].axes);
  return fmt::format("[{}]", fmt::join(index, ","));
}

}  // namespace

Sharded largest(const Sharded& x, const std::string& letters, const Sharded* indicator,
                const Layout& layout, const Shape& shape, Threads& threads) {
  const std::string kept = letters_without(x.layout().letters(), letters);
  const Reduced in_x(x, x, kept, letters);
  const std::optional<Reduced> in_w =
      indicator == nullptr ? std::nullopt : std::optional(Reduced(*indicator, x, kept, letters));
  return with_formulas(x, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    ChipGroups groups = reading({&x}, threads);
    if (indicator != nullptr) groups.split(*indicator);
    const auto body = [&](std::int64_t chip, Number* out) {
      const Number* const in = numbers_of(f, x, chip);
      const Number* const w = in_w ? numbers_of(f, *indicator, chip) : nullptr;
      for (std::size_t i = 0; i < in_x.first.size(); ++i) {
        auto max = max_of(x, f);
        for (std::size_t k = 0; k < in_x.next.size(); ++k)
          if (!in_w || !(w[in_w->first[i] + in_w->next[k]] == Number{}))
            max.see(in[in_x.first[i] + in_x.next[k]]);
        if (!max.best)
          throw Error("max_empty",
                      fmt::format("the maximum at {} is of nothing that exists",
                                  index_of(x.torus(), layout, local_shape(layout, shape, x.torus()),
                                           chip, static_cast<std::int64_t>(i))));
        out[i] = *max.best;
      }
    };
    return map_chips(f, x.torus(), groups, layout, shape, threads, body);
  });
}

Sharded sum_over(const SharedValue& x, const std::string& letters, const Layout& layout,
                 const Shape& shape, Threads& threads, Regime regime, FloatType acc,
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
