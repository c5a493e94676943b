#include "engine/local_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "engine/chip_groups.h"
#include "engine/formulas.h"
#include "engine/numeric/compensated_sum.h"
#include "engine/numeric/tile_sum.h"
#include "weights/error.h"

namespace shardproof {
namespace {

const std::int32_t* ints_of(const Sharded& value, std::int64_t chip) {
  return value.i32()[static_cast<std::size_t>(chip)].data();
}

template <class Formulas>
const typename Formulas::Number* of(const Formulas& f, const Sharded& value, std::int64_t chip) {
  return f.shards(value)[static_cast<std::size_t>(chip)].data();
}

/// The chips that read the very same buffers of all these operands, none of them null.
ChipGroups reading(std::initializer_list<const Sharded*> operands, const Threads& threads) {
  ChipGroups groups((*operands.begin())->torus(), threads);
  for (const Sharded* operand : operands) groups.split(*operand);
  return groups;
}

/// A result of this layout and shape: body(chip, buffer) fills one chip's shard, once for each of
/// the groups, which are of chips for which all that it reads is the same.
template <class Formulas, class Body>
Sharded map_chips(const Formulas& f, const Torus& torus, const ChipGroups& groups, Layout layout,
                  Shape shape, Threads& threads, Body&& body) {
  const auto count = static_cast<std::size_t>(element_count(local_shape(layout, shape, torus)));
  auto made = made_by<typename Formulas::Number>(groups, static_cast<std::size_t>(torus.chips()),
                                                 count, threads, body);
  return {torus, std::move(layout), std::move(shape), f.data(std::move(made), FieldSort::number)};
}

/// The same shape as t: each(chip, element) of t and of the other operands.
template <class Formulas, class F>
Sharded elementwise(const Formulas& f, const Sharded& t, std::initializer_list<const Sharded*> all,
                    Threads& threads, F&& each) {
  const std::int64_t n = element_count(t.local());
  return map_chips(f, t.torus(), reading(all, threads), t.layout(), t.shape(), threads,
                   [&](std::int64_t chip, typename Formulas::Number* out) {
                     for (std::int64_t i = 0; i < n; ++i) out[i] = each(chip, i);
                   });
}

/// each(formulas, the element) of t.
template <class F>
Sharded unary(const Sharded& t, Threads& threads, F&& each_of) {
  return with_formulas(t, [&](const auto& f) {
    const auto each = each_of(f);
    return elementwise(f, t, {&t}, threads,
                       [&](std::int64_t chip, std::int64_t i) { return each(of(f, t, chip)[i]); });
  });
}

/// each(formulas)(the elements) of a and b, which are of one layout.
template <class F>
Sharded binary(const Sharded& a, const Sharded& b, Threads& threads, F&& each_of) {
  return with_formulas(a, [&](const auto& f) {
    const auto each = each_of(f);
    return elementwise(f, a, {&a, &b}, threads, [&](std::int64_t chip, std::int64_t i) {
      return each(of(f, a, chip)[i], of(f, b, chip)[i]);
    });
  });
}

/// For each element of t's shard, the index in the shard of s, which has some of t's dims.
std::vector<std::int64_t> broadcast_index(const Sharded& t, const Sharded& s) {
  const Shape& local = t.local();
  const Shape& other = s.local();
  std::vector<std::int64_t> index{0};
  for (std::size_t d = 0; d < local.size(); ++d) {
    std::int64_t stride = 0;
    if (const auto at = s.layout().find(t.layout().dims()[d].letter)) {
      stride = 1;
      for (std::size_t e = *at + 1; e < other.size(); ++e) stride *= other[e];
    }
    std::vector<std::int64_t> wider;
    wider.reserve(index.size() * static_cast<std::size_t>(local[d]));
    for (std::int64_t base : index)
      for (std::int64_t i = 0; i < local[d]; ++i) wider.push_back(base + i * stride);
    index = std::move(wider);
  }
  return index;
}

Layout without(const Layout& layout, std::size_t dim) {
  std::vector<Layout::Dim> dims = layout.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return Layout(std::move(dims), layout.partial());
}

/// The rows of the table that a chip holds, looked up.
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

  /// All that a chip looks up, one row after the other.
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

  /// Adds those of its rows that the chip has: the others are zeros.
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
  /// Of token i the row of the table; null where another chip has it.
  const Number* row_of(int chip, std::int64_t i) const {
    const std::int64_t row = ints_of(ids_, chip)[i] - first_row_[static_cast<std::size_t>(chip)];
    return row < 0 || row >= rows_ ? nullptr : of(f_, *table_, chip) + row * width_;
  }

  Formulas f_;
  std::shared_ptr<const Sharded> table_;
  Sharded ids_;
  std::int64_t width_, rows_;
  std::vector<std::int64_t> first_row_;  // of the table, by chip
};

/// The source of embed_lookup's partial sums, and they themselves where they are left unmade.
class Lookup : public PartialSource, public Summands {
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

Sharded norm(const Sharded& x, const Sharded& ss, const Sharded& g, const Sharded* b, double eps,
             Threads& threads) {
  const Shape& local = x.local();
  const std::int64_t width = local.back();
  const std::int64_t rows = element_count(local) / width;
  return with_formulas(x, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const auto factor = f.norm_factor(x.shape().back(), eps);
    const ChipGroups groups = reading({&x, &ss, &g, b != nullptr ? b : &g}, threads);
    const auto body = [&](std::int64_t chip, Number* out) {
      const Number* const in = of(f, x, chip);
      const Number* const gain = of(f, g, chip);
      const Number* const bias = b != nullptr ? of(f, *b, chip) : nullptr;
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto r = factor(of(f, ss, chip)[i]);
        for (std::int64_t e = 0; e < width; ++e)
          out[i * width + e] =
              f.normed(in[i * width + e], r, gain[e], bias != nullptr ? bias + e : nullptr);
      }
    };
    return map_chips(f, x.torus(), groups, x.layout(), x.shape(), threads, body);
  });
}

Sharded rope(RopePairs pairs, const Sharded& t, const Sharded& pos, const Sharded& cos,
             const Sharded& sin, Threads& threads) {
  const Shape& local = t.local();
  const std::int64_t rows = local[0] * local[1];
  const std::int64_t heads = local[2];
  const std::int64_t Q = local[3];
  const std::int64_t table_rows = cos.shape()[0];
  const std::int64_t J = cos.shape()[1];
  const std::int64_t step = pairs == RopePairs::half_split ? 1 : 2;
  const std::int64_t apart = pairs == RopePairs::half_split ? J : 1;
  return with_formulas(t, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const ChipGroups groups = reading({&t, &pos, &cos, &sin}, threads);
    const auto body = [&](std::int64_t chip, Number* out) {
      const Number* const in = of(f, t, chip);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t p = ints_of(pos, chip)[i];
        if (p < 0 || p >= table_rows)
          throw Error("rope_range", fmt::format("position {} is outside the RoPE table of {} rows",
                                                p, table_rows));
        const Number* const c = of(f, cos, chip) + p * J;
        const Number* const s = of(f, sin, chip) + p * J;
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t base = (i * heads + h) * Q;
          for (std::int64_t j = 0; j < J; ++j) {
            const std::int64_t first = base + j * step;
            const auto turned = f.rotated(in[first], in[first + apart], c[j], s[j]);
            out[first] = turned.first;
            out[first + apart] = turned.second;
          }
          std::copy_n(in + base + 2 * J, Q - 2 * J, out + base + 2 * J);
        }
      }
    };
    return map_chips(f, t.torus(), groups, t.layout(), t.shape(), threads, body);
  });
}

Sharded scale_by(const Sharded& t, float s, Threads& threads, std::string_view name) {
  return unary(t, threads, [&](const auto& f) {
    return [&f, by = f.constant(name, s)](const auto& v) { return f.product(v, by); };
  });
}

Sharded scale(const Sharded& t, const Sharded& s, Threads& threads) {
  const std::vector<std::int64_t> index = broadcast_index(t, s);
  return with_formulas(t, [&](const auto& f) {
    return elementwise(f, t, {&t, &s}, threads, [&](std::int64_t chip, std::int64_t i) {
      return f.product(of(f, t, chip)[i], of(f, s, chip)[index[static_cast<std::size_t>(i)]]);
    });
  });
}

Sharded divide_by(const Sharded& t, double n, Threads& threads) {
  return unary(t, threads, [&](const auto& f) { return f.divided_by(n); });
}

Sharded bias(const Sharded& t, const std::vector<const Sharded*>& b, Threads& threads) {
  std::vector<std::vector<std::int64_t>> index;
  for (const Sharded* vector : b) index.push_back(broadcast_index(t, *vector));
  return with_formulas(t, [&](const auto& f) {
    ChipGroups groups = reading({&t}, threads);
    for (const Sharded* vector : b) groups.split(*vector);
    const std::int64_t n = element_count(t.local());
    using Number = typename std::decay_t<decltype(f)>::Number;
    return map_chips(f, t.torus(), groups, t.layout(), t.shape(), threads,
                     [&](std::int64_t chip, Number* out) {
                       for (std::int64_t i = 0; i < n; ++i) {
                         Number v = of(f, t, chip)[i];
                         for (std::size_t k = 0; k < b.size(); ++k)
                           v = f.add(v, of(f, *b[k], chip)[index[k][static_cast<std::size_t>(i)]]);
                         out[i] = v;
                       }
                     });
  });
}

Sharded center(const Sharded& t, const Sharded& mu, Threads& threads) {
  const std::vector<std::int64_t> index = broadcast_index(t, mu);
  return with_formulas(t, [&](const auto& f) {
    return elementwise(f, t, {&t, &mu}, threads, [&](std::int64_t chip, std::int64_t i) {
      return f.subtract(of(f, t, chip)[i], of(f, mu, chip)[index[static_cast<std::size_t>(i)]]);
    });
  });
}

Sharded add(const Sharded& a, const Sharded& b, Threads& threads) {
  return binary(a, b, threads, [](const auto& f) {
    return [&f](const auto& x, const auto& y) { return f.add(x, y); };
  });
}

Sharded swiglu(const Sharded& g, const Sharded& u, Threads& threads, Softmax softmax) {
  return binary(g, u, threads, [softmax](const auto& f) {
    return [&f, h = f.swish(softmax)](const auto& x, const auto& y) { return f.gated(h(x), y); };
  });
}

Sharded geglu(const Sharded& g, const Sharded& u, Threads& threads) {
  return binary(g, u, threads, [](const auto& f) {
    return [&f, h = f.gelu()](const auto& x, const auto& y) { return f.gated(h(x), y); };
  });
}

Sharded gelu(const Sharded& g, Threads& threads) {
  return unary(g, threads, [](const auto& f) { return f.gelu(); });
}

Sharded gelu_erf(const Sharded& g, Threads& threads) {
  return unary(g, threads, [](const auto& f) { return f.gelu_erf(); });
}

Sharded store(const Sharded& t, Threads& threads) {
  return unary(t, threads, [](const auto& f) { return f.stored(); });
}

Sharded append(const Sharded& cache, const Sharded& t, const Sharded& pos, Threads& threads,
               CacheType kept, const RowTokens* rows, std::int64_t prefix) {
  const Shape& old_local = cache.local();
  const Shape& new_rows = t.local();
  const std::int64_t B = old_local[0];
  const std::int64_t M = old_local[1];
  const std::int64_t L = new_rows[1];
  const std::int64_t row = new_rows[2] * new_rows[3];
  Shape shape = cache.shape();
  shape[1] += L;
  return with_formulas(t, [&](const auto& f) {
    using Number = typename std::decay_t<decltype(f)>::Number;
    const auto stored = f.stored();
    const auto first_row_of = [&](std::int64_t chip) {
      return cache.torus().block(static_cast<int>(chip), cache.layout().dims()[0].axes) * B;
    };
    ChipGroups groups = reading({&cache, &t, &pos}, threads);
    if (rows != nullptr) groups.split(first_row_of);
    const auto body = [&](std::int64_t chip, Number* out) {
      std::fill_n(out, B * (M + L) * row, f.unwritten());
      const std::int64_t first_row = first_row_of(chip);
      for (std::int64_t b = 0; b < B; ++b) {
        std::copy_n(of(f, cache, chip) + b * M * row, M * row, out + b * (M + L) * row);
        const std::int64_t tokens =
            rows == nullptr ? L : rows->tokens.at(static_cast<std::size_t>(first_row + b));
        for (std::int64_t l = 0; l < tokens; ++l) {
          const std::int64_t slot = ints_of(pos, chip)[b * L + l] - prefix;
          if (slot < 0 || slot >= M + L)
            throw Error("append_range",
                        fmt::format("slot {} is outside a cache of length {}", slot, M + L));
          Number* const slots = out + (b * (M + L) + slot) * row;
          std::copy_n(of(f, t, chip) + (b * L + l) * row, row, slots);
          if (kept == CacheType::bf16) std::transform(slots, slots + row, slots, stored);
        }
      }
    };
    return map_chips(f, cache.torus(), groups, cache.layout(), shape, threads, body);
  });
}

Sharded embed_lookup(const Sharded& ids, const std::shared_ptr<const Sharded>& table,
                     const Layout& layout, Threads& threads, Regime regime, std::int64_t V,
                     PartialValues values) {
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
  if (values == PartialValues::may_be_unmade) {
    partial.values = empty_by<Buffer<double>>(groups, chips);
    partial.unmade = source;
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

Candidates local_argmax(const Sharded& z, Threads& threads, std::int64_t V) {
  const Shape& local = z.local();
  const std::int64_t rows = local[0];
  const std::int64_t width = local[1];
  const Layout layout({z.layout().dims()[0], {'C', z.layout().axes('V')}}, Axes());
  const Shape shape{z.shape()[0], z.torus().size(z.layout().axes('V'))};
  const auto chips = static_cast<std::size_t>(z.torus().chips());
  return with_formulas(z, [&](const auto& f) -> Candidates {
    using Formulas = std::decay_t<decltype(f)>;
    ChipArrays<typename Formulas::Number> values(chips);
    ChipArrays<typename Formulas::Index> indices(chips);
    const auto base_of = [&](std::int64_t chip) {
      return z.torus().block(static_cast<int>(chip), z.layout().axes('V')) * width;
    };
    ChipGroups groups = reading({&z}, threads);
    groups.split(base_of);
    groups.for_each(threads, [&](std::int64_t chip) {
      const auto c = static_cast<std::size_t>(chip);
      const std::int64_t base = base_of(chip);
      const std::int64_t ids = V > 0 ? std::clamp<std::int64_t>(V - base, 0, width) : width;
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto best =
            ids > 0 ? f.best_of_block(of(f, z, chip) + i * width, ids, base) : f.no_candidate();
        values[c].push_back(best.first);
        indices[c].push_back(best.second);
      }
    });
    groups.share(values);
    groups.share(indices);
    return {{z.torus(), layout, shape, f.data(std::move(values), FieldSort::candidate)},
            {z.torus(), layout, shape, f.data(std::move(indices), FieldSort::index)}};
  });
}

Sharded argmax(const Sharded& value, const Sharded& index, Threads& threads, std::int64_t width,
               std::int64_t V) {
  const Shape& local = value.local();
  const std::int64_t blocks = V > 0 && width > 0 ? (V + width - 1) / width : local[1];
  return with_formulas(value, [&](const auto& f) -> Sharded {
    using Index = typename std::decay_t<decltype(f)>::Index;
    ChipArrays<Index> tokens(static_cast<std::size_t>(value.torus().chips()));
    const ChipGroups groups = reading({&value, &index}, threads);
    groups.for_each(threads, [&](std::int64_t chip) {
      const Index* const ids = f.indices(index)[static_cast<std::size_t>(chip)].data();
      for (std::int64_t i = 0; i < local[0]; ++i)
        tokens[static_cast<std::size_t>(chip)].push_back(f.best_of_candidates(
            of(f, value, chip) + i * local[1], ids + i * local[1], blocks, width));
    });
    groups.share(tokens);
    return {value.torus(),
            without(value.layout(), 1),
            {value.shape()[0]},
            f.data(std::move(tokens), FieldSort::token)};
  });
}

}  // namespace shardproof
