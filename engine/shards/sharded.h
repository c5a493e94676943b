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
#include "engine/shards/per_chip.h"
#include "engine/shards/summands.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

class CompensatedSum;

/// Where the exact terms of partial sums can be recomputed from: the contraction that produced
/// them, with every chip's operand buffers as they were executed. Never the global tensors: those
/// would heal a missing collective (docs/spec.md section 4).
class PartialSource {
 public:
  virtual ~PartialSource() = default;
  /// Adds to `sum` the products that element `index` of `chip`'s result shard stands for.
  virtual void add_terms(int chip, std::int64_t index, CompensatedSum& sum) const = 0;
  virtual void add_terms(int chip, std::int64_t index, ExactSum& sum) const = 0;
};

/// The chip and local index at which a term of a partial sum was produced.
struct Origin {
  std::int32_t chip;
  std::uint32_t index;
};

/// Shards that are summands (exact regime). An element is an f64 value, a bound on its distance
/// from the exact sum (f32, rounded up), and the multiset of its origins; one term that arrives
/// twice counts twice.
struct Partial {
  ChipArrays<double> values;
  ChipArrays<float> bounds;  ///< a chip's is empty where its values are exact
  /// `terms` origins per element. A chip's is empty while the shard is where it was computed:
  /// then element i of chip c has the one origin (c, i).
  ChipArrays<Origin> origins;
  int terms = 1;
  std::shared_ptr<const PartialSource> source;
  /// Where the values are not made but left to the one reduction that reads them: every chip's
  /// buffers are empty then, and chips that would share their values hold the same empty buffer.
  std::shared_ptr<const Summands> unmade;

  double bound(int chip, std::int64_t index) const {
    const auto& of_chip = bounds[static_cast<std::size_t>(chip)];
    return of_chip.empty() ? 0.0 : static_cast<double>(of_chip[static_cast<std::size_t>(index)]);
  }
  /// Appends the origins of one element.
  void append_origins(const Element& element, Buffer<Origin>& out) const;

  /// (float)RN64 of the exact sum of the elements: by the rounding test, or for the rare undecided
  /// sum from the origins' own terms.
  float rounded_sum(const std::vector<Element>& elements) const;
  /// The same from the origins alone, whatever values and bounds say.
  float sum_of_origins(const std::vector<Element>& elements) const;
};

/// A logical tensor laid out on a torus: layout, global shape, one buffer per chip. f32 or int32
/// data is complete; Partial data is what a layout with a partialsum carries, in the f32 regime f32
/// summands; in the field regime all but ids and positions is FieldShards, complete or summands.
/// Whatever is done to it, data, layout and shape fit together.
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
  Type type() const { return {layout_, shape_, stands_for_integers()}; }

  const Data& data() const { return data_; }
  const ChipArrays<float>& f32() const { return std::get<ChipArrays<float>>(data_); }
  const ChipArrays<std::int32_t>& i32() const { return std::get<ChipArrays<std::int32_t>>(data_); }
  const Partial& partial() const { return std::get<Partial>(data_); }
  bool holds_partial() const { return std::holds_alternative<Partial>(data_); }
  const FieldShards& field() const { return std::get<FieldShards>(data_); }
  bool holds_integers() const { return std::holds_alternative<ChipArrays<std::int32_t>>(data_); }
  bool holds_field() const { return std::holds_alternative<FieldShards>(data_); }
  /// int32, or what the field regime has in their place: indices and tokens.
  bool stands_for_integers() const;

  /// The same data, held in common, under another layout and shape of as many elements a chip.
  /// Throws as the constructor does.
  Sharded relabelled(Layout layout, Shape shape) const;

  /// One chip's numbers, to be changed for this value and chip alone; how many there are stays. Of
  /// a partial the values, and the bounds, none where the values are exact.
  std::span<float> f32_of(int chip);
  std::span<std::int32_t> i32_of(int chip);
  std::span<double> partial_values_of(int chip);
  std::span<float> partial_bounds_of(int chip);
  std::span<FieldElement> field_of(int chip);
  /// Every chip's numbers become NaN (-1 in integers), and all chips hold one buffer of them: what
  /// another value holds of the old ones stays.
  void poison();
  /// What a step knows of the value that it made, beside its elements (field regime).
  void set_field_degree(FieldDegree degree);

 private:
  Torus torus_;
  Layout layout_;
  Shape shape_;
  Shape local_;
  Data data_;
};

/// Whether chips that are given the same block of a tensor hold one buffer of it, or each its own.
enum class Replicas { shared, own };

/// Makes the shards of an unsharded tensor: chip c gets, of every dim, the block its layout says.
/// Throws Error("local_c1", ...) if a dim does not divide.
Sharded shard(const Tensor& tensor, const Layout& layout, const Torus& torus,
              Replicas replicas = Replicas::shared);
Sharded shard(const IntTensor& tensor, const Layout& layout, const Torus& torus,
              Replicas replicas = Replicas::shared);
/// Of numbers of the field regime.
Sharded shard(const Array<FieldElement>& tensor, const Layout& layout, const Torus& torus,
              std::shared_ptr<const Field> field, Replicas replicas = Replicas::shared);

/// The inverse: the unsharded tensor, each element from the lowest-numbered chip that holds it.
/// The value must be complete (no partialsum).
Tensor assemble(const Sharded& value);
IntTensor assemble_int(const Sharded& value);

}  // namespace shardproof
