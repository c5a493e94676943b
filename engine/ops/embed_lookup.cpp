#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/numeric/detail/compensated_sum.h"
#include "engine/numeric/detail/tile_sum.h"
#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"
#include "engine/ops/local_ops.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

/// Looks up rows of the table in a chip's own block.
template <class Formulas>
class Rows {
 public:
  using Number = typename Formulas::Number;

  Rows(Formulas f, std::shared_ptr<const Sharded> table, const Sharded& ids)
      : f_(std::move(f)),
        table_(std::move(table)),
        ids_(ids),
        width_(table_->local()[1]),
        rows_(table_->local()[0]) {
    const Axes axes = table_->layout().axes('V');
    for (int chip = 0; chip < table_->torus().chips(); ++chip)
      first_row_.push_back(table_->torus().block(chip, axes) * rows_);
  }

  /// Writes all rows that a chip looks up, one after the other.
  template <class To>
  void fill(int chip, std::int64_t count, To* to) const {
    for (std::int64_t i = 0; i < count; i += width_, to += width_) {
      const Number* const row = row_of(chip, i / width_);
      if (row == nullptr)
        std::fill_n(to, width_, To{});
      else
        std::transform(row, row + width_, to, [&](const Number& v) { return To(f_.looked_up(v)); });
    }
  }

  /// Adds the rows that are in the chip's block; all others are zeros.
  void add_to(TileSum& sum, int chip, std::int64_t begin) const {
    std::vector<double> values(static_cast<std::size_t>(width_));
    for (std::int64_t i = 0; i < sum.size(); i += width_) {
      const Number* const row = row_of(chip, (begin + i) / width_);
      if (row == nullptr) continue;
      std::transform(row, row + width_, values.data(),
                     [&](const Number& v) { return static_cast<double>(f_.looked_up(v)); });
      sum.add(i, width_, values.data(), nullptr);
    }
  }
  std::int64_t width() const { return width_; }

  Number value(int chip, std::int64_t index) const {
    const Number* const row = row_of(chip, index / width_);
    return row == nullptr ? Number{} : f_.looked_up(row[index % width_]);
  }

 private:
  /// The table row of token i; null where another chip holds it.
  const Number* row_of(int chip, std::int64_t i) const {
    const std::int64_t row = ints_of(ids_, chip)[i] - first_row_[static_cast<std::size_t>(chip)];
    return row < 0 || row >= rows_ ? nullptr : numbers_of(f_, *table_, chip) + row * width_;
  }

  Formulas f_;
  std::shared_ptr<const Sharded> table_;
  Sharded ids_;
  std::int64_t width_, rows_;
  std::vector<std::int64_t> first_row_;  // first table row of each chip's block
};

/// The source of embed_lookup's partial sums; where they are lazy, it also computes them.
class Lookup : public PartialSource, public PartialTiles {
 public:
  explicit Lookup(Rows<FloatFormulas> rows) : rows_(std::move(rows)) {}

  /// A chip's partial sums, which are exact.
  void fill(int chip, std::int64_t count, double* to) const { rows_.fill(chip, count, to); }
  std::int64_t row() const override { return rows_.width(); }
  void add_to(TileSum& sum, int chip, std::int64_t begin) const override {
    rows_.add_to(sum, chip, begin);
  }
  float exact_sum(const std::vector<Element>& elements) const override {
    return settled([&](auto& sum) {
      for (const Element& element : elements) add_terms(element.chip, element.index, sum);
    });
  }
  void add_terms(int chip, std::int64_t index, CompensatedSum& sum) const override {
    sum.add_product(rows_.value(chip, index), 1.0F);
  }
  void add_terms(int chip, std::int64_t index, ExactSum& sum) const override {
    sum.add_product(rows_.value(chip, index), 1.0F);
  }

 private:
  Rows<FloatFormulas> rows_;
};

}  // namespace

Sharded embed_lookup(const Sharded& ids, const std::shared_ptr<const Sharded>& table,
                     const Layout& layout, Threads& threads, Regime regime, std::int64_t V,
                     PartialSums values) {
  const std::int64_t rows_of_ids = V > 0 ? std::min(V, table->shape()[0]) : table->shape()[0];
  const ChipGroups same_ids = reading({&ids}, threads);
  for (const int chip : same_ids.first_chips())
    for (const std::int32_t id : ids.i32()[static_cast<std::size_t>(chip)])
      if (id < 0 || id >= rows_of_ids)
        throw Error("embed_range",
                    fmt::format("id {} is outside a vocabulary of {}", id, rows_of_ids));
  Shape shape = ids.shape();
  shape.push_back(table->shape()[1]);
  const auto count =
      static_cast<std::size_t>(element_count(local_shape(layout, shape, ids.torus())));
  ChipGroups groups = reading({&ids, table.get()}, threads);
  groups.split([&](int chip) { return ids.torus().block(chip, table->layout().axes('V')); });
  if (!layout.is_partial() || regime == Regime::f32 || table->holds_field())
    return with_formulas(*table, [&](const auto& f) {
      using Formulas = std::decay_t<decltype(f)>;
      const Rows<Formulas> rows(f, table, ids);
      return map_chips(f, ids.torus(), groups, layout, shape, threads,
                       [&](std::int64_t chip, typename Formulas::Number* out) {
                         rows.fill(static_cast<int>(chip), static_cast<std::int64_t>(count), out);
                       });
    });
  auto source = std::make_shared<Lookup>(Rows<FloatFormulas>(FloatFormulas(), table, ids));
  Partial partial;
  const auto chips = static_cast<std::size_t>(ids.torus().chips());
  if (values == PartialSums::allow_lazy) {
    partial.values = empty_by<Buffer<double>>(groups, chips);
    partial.lazy = source;
  } else {
    partial.values =
        made_by<double>(groups, chips, count, threads, [&](std::int64_t chip, double* to) {
          source->fill(static_cast<int>(chip), static_cast<std::int64_t>(count), to);
        });
  }
  partial.bounds.resize(chips);
  partial.origins.resize(chips);
  partial.source = std::move(source);
  return {ids.torus(), layout, shape, std::move(partial)};
}

}  // namespace shardproof
