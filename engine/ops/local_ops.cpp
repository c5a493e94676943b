#include "engine/ops/local_ops.h"

#include <algorithm>
#include <initializer_list>

#include "engine/ops/detail/chip_map.h"
#include "engine/ops/detail/formulas.h"

namespace shardproof {
namespace {

/// Returns a value of t's shape with elements each(chip, element index).
template <class Formulas, class F>
Sharded elementwise(const Formulas& f, const Sharded& t, std::initializer_list<const Sharded*> all,
                    Threads& threads, F&& each) {
  const std::int64_t n = element_count(t.local());
  return map_chips(f, t.torus(), reading(all, threads), t.layout(), t.shape(), threads,
                   [&](std::int64_t chip, typename Formulas::Number* out) {
                     for (std::int64_t i = 0; i < n; ++i) out[i] = each(chip, i);
                   });
}

/// Applies each_of(formulas) to every element of t.
template <class F>
Sharded unary(const Sharded& t, Threads& threads, F&& each_of) {
  return with_formulas(t, [&](const auto& f) {
    const auto each = each_of(f);
    return elementwise(f, t, {&t}, threads, [&](std::int64_t chip, std::int64_t i) {
      return each(numbers_of(f, t, chip)[i]);
    });
  });
}

/// Applies each_of(formulas) to the elements of a and b, which have one layout.
template <class F>
Sharded binary(const Sharded& a, const Sharded& b, Threads& threads, F&& each_of) {
  return with_formulas(a, [&](const auto& f) {
    const auto each = each_of(f);
    return elementwise(f, a, {&a, &b}, threads, [&](std::int64_t chip, std::int64_t i) {
      return each(numbers_of(f, a, chip)[i], numbers_of(f, b, chip)[i]);
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
    for (std::int64_t base : index)
      for (std::int64_t i = 0; i < local[d]; ++i) wider.push_back(base + i * stride);
    index = std::move(wider);
  }
  return index;
}

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
      const Number* const in = numbers_of(f, x, chip);
      const Number* const gain = numbers_of(f, g, chip);
      const Number* const bias = b != nullptr ? numbers_of(f, *b, chip) : nullptr;
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto r = factor(numbers_of(f, ss, chip)[i]);
        for (std::int64_t e = 0; e < width; ++e)
          out[i * width + e] =
              f.normed(in[i * width + e], r, gain[e], bias != nullptr ? bias + e : nullptr);
      }
    };
    return map_chips(f, x.torus(), groups, x.layout(), x.shape(), threads, body);
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
      return f.product(numbers_of(f, t, chip)[i],
                       numbers_of(f, s, chip)[index[static_cast<std::size_t>(i)]]);
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
    return map_chips(
        f, t.torus(), groups, t.layout(), t.shape(), threads, [&](std::int64_t chip, Number* out) {
          for (std::int64_t i = 0; i < n; ++i) {
            Number v = numbers_of(f, t, chip)[i];
            for (std::size_t k = 0; k < b.size(); ++k)
              v = f.add(v, numbers_of(f, *b[k], chip)[index[k][static_cast<std::size_t>(i)]]);
            out[i] = v;
          }
        });
  });
}

Sharded center(const Sharded& t, const Sharded& mu, Threads& threads) {
  const std::vector<std::int64_t> index = broadcast_index(t, mu);
  return with_formulas(t, [&](const auto& f) {
    return elementwise(f, t, {&t, &mu}, threads, [&](std::int64_t chip, std::int64_t i) {
      return f.subtract(numbers_of(f, t, chip)[i],
                        numbers_of(f, mu, chip)[index[static_cast<std::size_t>(i)]]);
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

}  // namespace shardproof
