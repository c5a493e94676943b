#include "engine/local_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/numeric/functions.h"
#include "weights/bf16.h"
#include "weights/error.h"

namespace shardproof {
namespace {

const float* of(const Sharded& value, std::int64_t chip) {
  return value.f32()[static_cast<std::size_t>(chip)].data();
}
const std::int32_t* ints_of(const Sharded& value, std::int64_t chip) {
  return value.i32()[static_cast<std::size_t>(chip)].data();
}

/// A result with `like`'s torus and, unless given, its layout and shape: body(chip, buffer) fills
/// one chip's shard of `count` elements.
template <class Body>
Sharded map_chips(const Sharded& like, Layout layout, Shape shape, Threads& threads, Body&& body) {
  ChipArrays<float> chips(static_cast<std::size_t>(like.torus().chips()));
  const auto count =
      static_cast<std::size_t>(element_count(local_shape(layout, shape, like.torus())));
  threads.for_each(like.torus().chips(), [&](std::int64_t chip) {
    auto& buffer = chips[static_cast<std::size_t>(chip)];
    buffer.resize(count);
    body(chip, buffer.data());
  });
  return {like.torus(), std::move(layout), std::move(shape), std::move(chips)};
}

template <class F>
Sharded elementwise(const Sharded& t, Threads& threads, F&& f) {
  const std::int64_t n = element_count(t.local());
  return map_chips(t, t.layout(), t.shape(), threads, [&](std::int64_t chip, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(chip, i);
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

float product(float a, float b) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
}

Layout without(const Layout& layout, std::size_t dim) {
  std::vector<Layout::Dim> dims = layout.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return Layout(std::move(dims), layout.partial());
}

/// The rows of the table that a chip holds, looked up: the source of embed_lookup's partial sums.
class Lookup : public PartialSource {
 public:
  Lookup(std::shared_ptr<const Sharded> table, const Sharded& ids)
      : table_(std::move(table)),
        ids_(ids),
        width_(table_->local()[1]),
        rows_(table_->local()[0]) {}

  float value(int chip, std::int64_t index) const {
    const std::int64_t id = ints_of(ids_, chip)[index / width_];
    const std::int64_t row = id - table_->torus().block(chip, table_->layout().axes('V')) * rows_;
    if (row < 0 || row >= rows_) return 0.0F;
    // A sum over the chips has no -0, so the table's counts as +0 everywhere.
    return of(*table_, chip)[row * width_ + index % width_] + 0.0F;
  }

  void add_terms(int chip, std::int64_t index, ExactSum& sum) const override {
    sum.add_product(value(chip, index), 1.0F);
  }

 private:
  std::shared_ptr<const Sharded> table_;
  Sharded ids_;
  std::int64_t width_, rows_;
};

}  // namespace

Sharded norm(const Sharded& x, const Sharded& ss, const Sharded& g, const Sharded* b, double eps,
             Threads& threads) {
  const Shape& local = x.local();
  const std::int64_t width = local.back();
  const std::int64_t rows = element_count(local) / width;
  const auto E = static_cast<double>(x.shape().back());
  return map_chips(x, x.layout(), x.shape(), threads, [&](std::int64_t chip, float* out) {
    const float* in = of(x, chip);
    const float* gain = of(g, chip);
    const float* bias = b != nullptr ? of(*b, chip) : nullptr;
    for (std::int64_t i = 0; i < rows; ++i) {
      const double r = 1.0 / std::sqrt(static_cast<double>(of(ss, chip)[i]) / E + eps);
      for (std::int64_t e = 0; e < width; ++e) {
        double v = (static_cast<double>(in[i * width + e]) * r) * static_cast<double>(gain[e]);
        if (bias != nullptr) v = v + static_cast<double>(bias[e]);
        out[i * width + e] = static_cast<float>(v);
      }
    }
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
  return map_chips(t, t.layout(), t.shape(), threads, [&](std::int64_t chip, float* out) {
    const float* in = of(t, chip);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t p = ints_of(pos, chip)[i];
      if (p < 0 || p >= table_rows)
        throw Error("rope_range",
                    fmt::format("position {} is outside the RoPE table of {} rows", p, table_rows));
      const float* c = of(cos, chip) + p * J;
      const float* s = of(sin, chip) + p * J;
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t base = (i * heads + h) * Q;
        for (std::int64_t j = 0; j < J; ++j) {
          const std::int64_t first = base + j * step;
          const auto a = static_cast<double>(in[first]);
          const auto b = static_cast<double>(in[first + apart]);
          const auto cj = static_cast<double>(c[j]);
          const auto sj = static_cast<double>(s[j]);
          out[first] = static_cast<float>(a * cj - b * sj);
          out[first + apart] = static_cast<float>(b * cj + a * sj);
        }
        std::copy_n(in + base + 2 * J, Q - 2 * J, out + base + 2 * J);
      }
    }
  });
}

Sharded scale_by(const Sharded& t, float s, Threads& threads) {
  return elementwise(t, threads,
                     [&](std::int64_t chip, std::int64_t i) { return product(of(t, chip)[i], s); });
}

Sharded scale(const Sharded& t, const Sharded& s, Threads& threads) {
  const std::vector<std::int64_t> index = broadcast_index(t, s);
  return elementwise(t, threads, [&](std::int64_t chip, std::int64_t i) {
    return product(of(t, chip)[i], of(s, chip)[index[static_cast<std::size_t>(i)]]);
  });
}

Sharded divide_by(const Sharded& t, double n, Threads& threads) {
  return elementwise(t, threads, [&](std::int64_t chip, std::int64_t i) {
    return static_cast<float>(static_cast<double>(of(t, chip)[i]) / n);
  });
}

Sharded bias(const Sharded& t, const std::vector<const Sharded*>& b, Threads& threads) {
  std::vector<std::vector<std::int64_t>> index;
  for (const Sharded* vector : b) index.push_back(broadcast_index(t, *vector));
  return elementwise(t, threads, [&](std::int64_t chip, std::int64_t i) {
    float v = of(t, chip)[i];
    for (std::size_t n = 0; n < b.size(); ++n)
      v = v + of(*b[n], chip)[index[n][static_cast<std::size_t>(i)]];
    return v;
  });
}

Sharded center(const Sharded& t, const Sharded& mu, Threads& threads) {
  const std::vector<std::int64_t> index = broadcast_index(t, mu);
  return elementwise(t, threads, [&](std::int64_t chip, std::int64_t i) {
    return of(t, chip)[i] - of(mu, chip)[index[static_cast<std::size_t>(i)]];
  });
}

Sharded add(const Sharded& a, const Sharded& b, Threads& threads) {
  return elementwise(a, threads, [&](std::int64_t chip, std::int64_t i) {
    return of(a, chip)[i] + of(b, chip)[i];
  });
}

Sharded swiglu(const Sharded& g, const Sharded& u, Threads& threads) {
  return elementwise(g, threads, [&](std::int64_t chip, std::int64_t i) {
    return swish32(of(g, chip)[i]) * of(u, chip)[i];
  });
}

Sharded geglu(const Sharded& g, const Sharded& u, Threads& threads) {
  return elementwise(g, threads, [&](std::int64_t chip, std::int64_t i) {
    return gelu32(of(g, chip)[i]) * of(u, chip)[i];
  });
}

Sharded gelu(const Sharded& g, Threads& threads) {
  return elementwise(g, threads,
                     [&](std::int64_t chip, std::int64_t i) { return gelu32(of(g, chip)[i]); });
}

Sharded gelu_erf(const Sharded& g, Threads& threads) {
  return elementwise(g, threads,
                     [&](std::int64_t chip, std::int64_t i) { return gelu_erf32(of(g, chip)[i]); });
}

Sharded store(const Sharded& t, Threads& threads) {
  return elementwise(
      t, threads, [&](std::int64_t chip, std::int64_t i) { return round_to_bf16(of(t, chip)[i]); });
}

Sharded append(const Sharded& cache, const Sharded& t, const Sharded& pos, Threads& threads,
               CacheType kept) {
  const Shape& old_local = cache.local();
  const Shape& new_rows = t.local();
  const std::int64_t B = old_local[0];
  const std::int64_t M = old_local[1];
  const std::int64_t L = new_rows[1];
  const std::int64_t row = new_rows[2] * new_rows[3];
  Shape shape = cache.shape();
  shape[1] += L;
  return map_chips(cache, cache.layout(), shape, threads, [&](std::int64_t chip, float* out) {
    std::fill_n(out, B * (M + L) * row, std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t b = 0; b < B; ++b) {
      std::copy_n(of(cache, chip) + b * M * row, M * row, out + b * (M + L) * row);
      for (std::int64_t l = 0; l < L; ++l) {
        const std::int64_t slot = ints_of(pos, chip)[b * L + l];
        if (slot < 0 || slot >= M + L)
          throw Error("append_range",
                      fmt::format("slot {} is outside a cache of length {}", slot, M + L));
        float* const slots = out + (b * (M + L) + slot) * row;
        std::copy_n(of(t, chip) + (b * L + l) * row, row, slots);
        if (kept == CacheType::bf16) std::transform(slots, slots + row, slots, round_to_bf16);
      }
    }
  });
}

Sharded embed_lookup(const Sharded& ids, const std::shared_ptr<const Sharded>& table,
                     const Layout& layout, Threads& threads, Regime regime) {
  for (const auto& of_chip : ids.i32())
    for (const std::int32_t id : of_chip)
      if (id < 0 || id >= table->shape()[0])
        throw Error("embed_range",
                    fmt::format("id {} is outside a vocabulary of {}", id, table->shape()[0]));
  Shape shape = ids.shape();
  shape.push_back(table->shape()[1]);
  const auto count =
      static_cast<std::size_t>(element_count(local_shape(layout, shape, ids.torus())));
  auto source = std::make_shared<Lookup>(table, ids);
  if (!layout.is_partial() || regime == Regime::f32) {
    return map_chips(ids, layout, shape, threads, [&](std::int64_t chip, float* out) {
      for (std::size_t i = 0; i < count; ++i)
        out[i] = source->value(static_cast<int>(chip), static_cast<std::int64_t>(i));
    });
  }
  Partial partial;
  const auto chips = static_cast<std::size_t>(ids.torus().chips());
  partial.values.resize(chips);
  partial.bounds.resize(chips);
  partial.origins.resize(chips);
  threads.for_each(ids.torus().chips(), [&](std::int64_t chip) {
    auto& buffer = partial.values[static_cast<std::size_t>(chip)];
    buffer.resize(count);
    for (std::size_t i = 0; i < count; ++i)
      buffer[i] =
          static_cast<double>(source->value(static_cast<int>(chip), static_cast<std::int64_t>(i)));
  });
  partial.source = std::move(source);
  return {ids.torus(), layout, shape, std::move(partial)};
}

Candidates local_argmax(const Sharded& z, Threads& threads) {
  const Shape& local = z.local();
  const std::int64_t rows = local[0];
  const std::int64_t width = local[1];
  const Layout layout({z.layout().dims()[0], {'C', z.layout().axes('V')}}, Axes());
  const Shape shape{z.shape()[0], z.torus().size(z.layout().axes('V'))};
  const auto chips = static_cast<std::size_t>(z.torus().chips());
  ChipArrays<float> values(chips);
  ChipArrays<std::int32_t> indices(chips);
  threads.for_each(z.torus().chips(), [&](std::int64_t chip) {
    const auto c = static_cast<std::size_t>(chip);
    const std::int64_t base = z.torus().block(static_cast<int>(chip), z.layout().axes('V')) * width;
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* row = of(z, chip) + i * width;
      std::int64_t best = 0;
      for (std::int64_t v = 1; v < width; ++v)
        if (row[v] > row[best]) best = v;
      values[c].push_back(row[best]);
      indices[c].push_back(static_cast<std::int32_t>(base + best));
    }
  });
  return {{z.torus(), layout, shape, std::move(values)},
          {z.torus(), layout, shape, std::move(indices)}};
}

Sharded argmax(const Sharded& value, const Sharded& index, Threads& threads) {
  const Shape& local = value.local();
  ChipArrays<std::int32_t> tokens(static_cast<std::size_t>(value.torus().chips()));
  threads.for_each(value.torus().chips(), [&](std::int64_t chip) {
    for (std::int64_t i = 0; i < local[0]; ++i) {
      const float* row = of(value, chip) + i * local[1];
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < local[1]; ++c)
        if (row[c] > row[best]) best = c;
      tokens[static_cast<std::size_t>(chip)].push_back(ints_of(index, chip)[i * local[1] + best]);
    }
  });
  return {value.torus(), without(value.layout(), 1), {value.shape()[0]}, std::move(tokens)};
}

}  // namespace shardproof
