#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "engine/layout/type.h"
#include "engine/numeric/buffer.h"
#include "engine/numeric/exact_sum.h"
#include "engine/shards/field_shards.h"
#include "engine/shards/partial_tiles.h"
#include "engine/shards/per_chip.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

class CompensatedSum;

/// Recomputes the exact terms of partial sums: the contraction that produced them, with every
/// chip's operand buffers as they were executed. Never reads global tensors: those would hide a
/// missing collective (docs/spec.md section 4).
class PartialSource {
 public:
  virtual ~PartialSource() = default;
  /// Adds to `sum` the products that make up element `index` of `chip`'s result shard.
  virtual void add_terms(int chip, std::int64_t index, CompensatedSum& sum) const = 0;
  virtual void add_terms(int chip, std::int64_t index, ExactSum& sum) const = 0;
};

/// The chip and local index at which a term of a partial sum was computed.
struct Origin {
  std::int32_t chip;
  std::uint32_t index;
};

/// Shards of partial sums (exact regime). An element is an f64 value, a bound on its distance from
/// the exact sum (f32, rounded up), and the multiset of its origins: a term that arrives twice
/// counts twice.
struct Partial {
  ChipArrays<double> values;
  ChipArrays<float> bounds;  ///< empty for a chip whose values are exact
  /// `terms` origins per element. Empty for a chip whose shard is where it was computed: element i
  /// of chip c then has the one origin (c, i).
  ChipArrays<Origin> origins;
  int terms = 1;
  std::shared_ptr<const PartialSource> source;
  /// Set if the values are left to the one reduction that reads them: every chip's buffers are then
  /// empty, and chips that would share values share the empty buffer.
  std::shared_ptr<const PartialTiles> lazy;

  double bound(int chip, std::int64_t index) const {
    const auto& of_chip = bounds[static_cast<std::size_t>(chip)];
    return of_chip.empty() ? 0.0 : static_cast<double>(of_chip[static_cast<std::size_t>(index)]);
  }
  /// Appends the origins of one element.
  void append_origins(const Element& element, Buffer<Origin>& out) const;

  /// (float)RN64 of the exact sum of the elements: by the rounding test, or, for the rare undecided
  /// sum, from the terms of their origins.
  float rounded_sum(const std::vector<Element>& elements) const;
  /// (float)RN64 of the exact sum of the elements, from their origins alone, not values and bounds.
  float sum_of_origins(const std::vector<Element>& elements) const;
};

/// A logical tensor sharded over a torus: layout, global shape, one buffer per chip. f32 and int32
/// data are complete; a layout with a partialsum has Partial data, or f32 data in the f32 regime.
/// In the field regime all values but ids and positions are FieldShards, complete or partial. Data,
/// layout and shape always fit together.
class Sharded {
 public:
  using Data = std::variant<ChipArrays<float>, ChipArrays<std::int32_t>, Partial, FieldShards>;

  /// Throws Error("sharded_c1", ...) naming what does not fit: the layout's dims and the shape's, a
  /// dim's extent and its axes, the number of buffers and of chips, a buffer and the shard's size,
  /// partial sums and a complete layout, integers and a partial one.
  Sharded(const Torus& torus, Layout layout, Shape shape, Data data);

  const Torus& torus() const { return torus_; }
  const Layout& layout() const { return layout_; }
  const Shape& shape() const { return shape_; }  ///< global
  const Shape& local() const { return local_; }  ///< of one chip's shard
  Type type() const { return {layout_, shape_, is_integral()}; }

  const Data& data() const { return data_; }
  const ChipArrays<float>& f32() const { return std::get<ChipArrays<float>>(data_); }
  const ChipArrays<std::int32_t>& i32() const { return std::get<ChipArrays<std::int32_t>>(data_); }
  const Partial& partial() const { return std::get<Partial>(data_); }
  bool holds_partial() const { return std::holds_alternative<Partial>(data_); }
  const FieldShards& field() const { return std::get<FieldShards>(data_); }
  bool stores_int32() const { return std::holds_alternative<ChipArrays<std::int32_t>>(data_); }
  bool holds_field() const { return std::holds_alternative<FieldShards>(data_); }
  /// Returns true for int32, and for indices and tokens of the field regime.
  bool is_integral() const;

  /// Shares the data under another layout and shape with as many elements per chip. Throws as the
  /// constructor does.
  Sharded relabelled(Layout layout, Shape shape) const;

  /// Mutable access to one chip's numbers, for this value and chip alone; the size is fixed. For a
  /// partial sum the values, and the bounds, which are empty if the values are exact.
  std::span<float> f32_of(int chip);
  std::span<std::int32_t> i32_of(int chip);
  std::span<double> partial_values_of(int chip);
  std::span<float> partial_bounds_of(int chip);
  std::span<FieldElement> field_of(int chip);
  /// Replaces every chip's numbers by one shared buffer of NaN (-1 in integers); other values that
  /// share the old buffers keep them.
  void poison();
  /// Sets the degree that a step computed for its result (field regime).
  void set_field_degree(FieldDegree degree);

 private:
  Torus torus_;
  Layout layout_;
  Shape shape_;
  Shape local_;
  Data data_;
};

/// shared: chips that are given the same block of a tensor share one buffer; own: each has its own.
enum class Replicas { shared, own };

/// Shards a global tensor: chip c gets, of every dim, the block that its layout says. Throws
/// Error("local_c1", ...) if a dim does not divide.
Sharded shard(const Tensor& tensor, const Layout& layout, const Torus& torus,
              Replicas replicas = Replicas::shared);
Sharded shard(const IntTensor& tensor, const Layout& layout, const Torus& torus,
              Replicas replicas = Replicas::shared);
/// Shards a tensor of field elements.
Sharded shard(const Array<FieldElement>& tensor, const Layout& layout, const Torus& torus,
              std::shared_ptr<const Field> field, Replicas replicas = Replicas::shared);

/// The inverse of shard: the global tensor, each element from the lowest-numbered chip that holds
/// it. The value must be complete (no partialsum).
Tensor assemble(const Sharded& value);
IntTensor assemble_int(const Sharded& value);

}  // namespace shardproof
