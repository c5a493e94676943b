#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/shards/sharded.h"
#include "weights/model/numerics.h"

// Changes of what chips hold, in every regime: floats, partial sums of floats, field elements.

namespace shardproof::faults {

/// Calls on_numbers(chips, to): what each chip of `from` has, and a chip's numbers of `changed`,
/// which has the same data. Integers are left alone.
template <class OnNumbers>
void on_numbers(const Sharded& from, Sharded& changed, OnNumbers&& on_numbers_of) {
  if (from.holds_field())
    on_numbers_of(from.field().values, [&](int chip) { return changed.field_of(chip); });
  else if (from.holds_partial())
    on_numbers_of(from.partial().values, [&](int chip) { return changed.partial_values_of(chip); });
  else if (from.stores_int32())
    on_numbers_of(from.i32(), [&](int chip) { return changed.i32_of(chip); });
  else
    on_numbers_of(from.f32(), [&](int chip) { return changed.f32_of(chip); });
}

inline FieldElement sum_of(const Sharded& of, const FieldElement& a, const FieldElement& b) {
  return of.field().field->add(a, b);
}
inline float sum_of(const Sharded&, float a, float b) { return a + b; }
inline double sum_of(const Sharded&, double a, double b) { return a + b; }
inline std::int32_t sum_of(const Sharded&, std::int32_t a, std::int32_t b) { return a + b; }

/// top/bottom times an element.
inline FieldElement share_of(const Sharded& of, const FieldElement& v, std::int64_t top,
                             std::int64_t bottom) {
  const Field& field = *of.field().field;
  if (!field.is_number(v)) return v;
  return field.multiply(v,
                        field.multiply(field.integer(top), field.inverse(field.integer(bottom))));
}
template <class T>
T share_of(const Sharded&, T v, std::int64_t top, std::int64_t bottom) {
  return static_cast<T>(static_cast<double>(v) * static_cast<double>(top) /
                        static_cast<double>(bottom));
}

/// Multiplies every number by top/bottom.
inline void multiply(Sharded& value, std::int64_t top, std::int64_t bottom = 1) {
  const Sharded from = value;
  on_numbers(from, value, [&](const auto& chips, const auto& to) {
    for (int chip = 0; chip < from.torus().chips(); ++chip) {
      const auto out = to(chip);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = share_of(from, chips[static_cast<std::size_t>(chip)][i], top, bottom);
    }
  });
}

/// Each chip takes what chip source(chip) has; both have equally many elements.
template <class Source>
void take(Sharded& value, Source&& source) {
  const Sharded from = value;
  on_numbers(from, value, [&](const auto& chips, const auto& to) {
    for (int chip = 0; chip < from.torus().chips(); ++chip) {
      const auto& other = chips[static_cast<std::size_t>(source(chip))];
      const auto out = to(chip);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = other[i];
    }
  });
}

/// Each element of a chip's shard becomes the chip's own element at from(local index).
template <class From>
void shuffle(Sharded& value, From&& from_index) {
  const Sharded from = value;
  on_numbers(from, value, [&](const auto& chips, const auto& to) {
    for (int chip = 0; chip < from.torus().chips(); ++chip) {
      const auto out = to(chip);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = chips[static_cast<std::size_t>(chip)]
                      [static_cast<std::size_t>(from_index(static_cast<std::int64_t>(i)))];
    }
  });
}

/// The extents of a shard's dims before, of and after `dim`.
struct Extents3 {
  std::int64_t outer = 1, own = 1, inner = 1;
};
inline Extents3 around(const Shape& local, std::size_t dim) {
  Extents3 e;
  for (std::size_t d = 0; d < local.size(); ++d)
    (d < dim ? e.outer : d == dim ? e.own : e.inner) *= local[d];
  return e;
}

/// Each chip's own rows along a dim in another order: row r becomes row order(r, n).
template <class Order>
void order_rows(Sharded& placed, char letter, Order&& order) {
  const auto dim = placed.layout().find(letter);
  if (!dim) return;
  const Extents3 e = around(placed.local(), *dim);
  shuffle(placed, [&](std::int64_t i) {
    const std::int64_t inner = i % e.inner, row = i / e.inner % e.own, outer = i / e.inner / e.own;
    return (outer * e.own + order(row, e.own)) * e.inner + inner;
  });
}

/// Sets a number to 1, of floats and of the field alike.
inline void set_one(const Sharded& of, FieldElement& v) { v = of.field().field->integer(1); }
template <class T>
void set_one(const Sharded&, T& v) {
  v = T{1};
}

/// What nothing was written to holds 0, as in fresh memory it often does.
inline void zero_unwritten(Sharded& value) {
  for (int chip = 0; chip < value.torus().chips(); ++chip)
    if (value.holds_field()) {
      for (FieldElement& v : value.field_of(chip))
        if (!value.field().field->is_number(v)) v = {};
    } else if (!value.stores_int32()) {
      for (float& v : value.f32_of(chip))
        if (std::isnan(v)) v = 0.0F;
    }
}

/// The shards alone, each a whole value: the axes of `dim` and the blocks of other chips are
/// forgotten.
inline Sharded own_block(const Sharded& value, char dim) {
  const auto at = value.layout().find(dim);
  Shape shape = value.shape();
  if (!at) return value;
  shape[*at] = value.local()[*at];
  return value.relabelled(value.layout().with_axes(*at, {}), shape);
}

/// The value as its declaration says: a run without any check of types takes what it is told,
/// partial sums for complete values, and one order of axes for another.
void believe(const Layout& declared, Regime regime, Sharded& value);

/// Complete floats as partial sums of one term each, as the exact regime adds them.
Sharded::Data partial_sums(const ChipArrays<float>& values);

}  // namespace shardproof::faults
