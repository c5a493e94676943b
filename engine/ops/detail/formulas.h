#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "engine/numeric/contract.h"
#include "engine/numeric/detail/functions.h"
#include "engine/shards/field.h"
#include "engine/shards/sharded.h"
#include "weights/base/bf16.h"
#include "weights/model/numerics.h"
#include "weights/model/softmax.h"

namespace shardproof {

// Arithmetic on single numbers for the ops that each chip performs alone. Each op (indices, heads,
// positions, slots) is written once over these classes; the field regime runs the floats' code.

/// The keys, or the values, that a query reads from one cache: `n` of them, `apart` elements from
/// each other, each with contiguous channels.
template <class Number>
struct KeysOrValues {
  const Number* first;
  std::int64_t apart, n;
};

/// Formulas on floats: docs/spec.md section 2.
class FloatFormulas {
 public:
  using Number = float;
  using Index = std::int32_t;

  explicit FloatFormulas(Regime regime = Regime::exact) : regime_(regime) {}

  static const ChipArrays<float>& shards(const Sharded& value) { return value.f32(); }
  static const ChipArrays<std::int32_t>& indices(const Sharded& value) { return value.i32(); }
  static Sharded::Data data(ChipArrays<float> chips, FieldSort) { return chips; }
  static Sharded::Data data(ChipArrays<std::int32_t> chips, FieldSort) { return chips; }

  /// The content of elements that were never written.
  static float unwritten() { return std::numeric_limits<float>::quiet_NaN(); }
  static float integer(std::int64_t i) { return static_cast<float>(i); }
  static float negative(float v) { return -v; }
  static float add(float a, float b) { return a + b; }
  static float subtract(float a, float b) { return a - b; }
  /// Rounded once, from f64.
  static float product(float a, float b) {
    return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
  }
  static float gated(float h, float u) { return h * u; }
  static float constant(std::string_view, float value) { return value; }
  static auto divided_by(double n) {
    return [n](float t) { return static_cast<float>(static_cast<double>(t) / n); };
  }
  static auto swish(Softmax softmax) { return softmax == Softmax::base2 ? swish2_32 : swish32; }
  static auto gelu() { return gelu32; }
  static auto gelu_erf() { return gelu_erf32; }
  static auto stored() { return round_to_bf16; }
  /// Returns the function from ss to a norm's factor r.
  static auto norm_factor(std::int64_t E, double eps) {
    return [n = static_cast<double>(E), eps](float ss) {
      return 1.0 / std::sqrt(static_cast<double>(ss) / n + eps);
    };
  }
  static float normed(float x, double r, float g, const float* b) {
    double v = (static_cast<double>(x) * r) * static_cast<double>(g);
    if (b != nullptr) v = v + static_cast<double>(*b);
    return static_cast<float>(v);
  }
  static std::pair<float, float> rotated(float first, float second, float cos, float sin) {
    const auto a = static_cast<double>(first);
    const auto b = static_cast<double>(second);
    const auto c = static_cast<double>(cos);
    const auto s = static_cast<double>(sin);
    return {static_cast<float>(a * c - b * s), static_cast<float>(b * c + a * s)};
  }
  /// A row of the table: a sum over the chips has no -0, so the table's counts as +0 everywhere.
  static float looked_up(float v) { return v + 0.0F; }

  /// The first of the largest of a block of logits, and its id; the block begins with id `base`.
  static std::pair<float, std::int32_t> best_of_block(const float* row, std::int64_t width,
                                                      std::int64_t base) {
    const float* const best = first_largest(row, width);
    return {*best, static_cast<std::int32_t>(base + (best - row))};
  }
  /// The candidate of a block that has only padding ids: the largest f32 and -1, so that using it
  /// as a candidate is detected.
  static std::pair<float, std::int32_t> no_candidate() {
    return {std::numeric_limits<float>::max(), -1};
  }
  /// The id that belongs to the first of the largest of C candidates.
  static std::int32_t best_of_candidates(const float* row, const std::int32_t* ids, std::int64_t C,
                                         std::int64_t) {
    return ids[first_largest(row, C) - row];
  }

  /// Attention of one query: scores over its visible keys, their maximum, softmax weights and mean.
  struct Attend {
    Regime regime;
    double scale;
    bool base2;

    /// Scores of a query with each key; `distance` is the first key's position minus the query's.
    void scores(const float* q, const KeysOrValues<float>& keys, std::int64_t Q, const float* slope,
                std::int64_t distance, float* out) const {
      const Pairs pairs{q, 1, keys.first, 1, Q};
      if (regime == Regime::exact)
        exact_dots({&pairs, 1}, keys.n, keys.apart, out);
      else
        chain_dots({&pairs, 1}, keys.n, keys.apart, out);
      for (std::int64_t m = 0; m < keys.n; ++m) {
        double scaled = static_cast<double>(out[m]) * scale;
        if (slope != nullptr)
          scaled = scaled + static_cast<double>(*slope) * static_cast<double>(distance + m);
        out[m] = static_cast<float>(scaled);
      }
    }
    static float max(const float* s, std::int64_t n) { return n > 0 ? *first_largest(s, n) : 0.0F; }
    float exp(float s, float top) const { return base2 ? exp2_32(s - top) : exp32(s - top); }
    float sum(const float* e, std::int64_t n) const {
      static constexpr float kOne = 1.0F;
      return dot(Pairs{e, 1, &kOne, 0, n});
    }
    /// The divisor passed to means() for this softmax denominator.
    static double divisor(float denom) { return static_cast<double>(denom); }
    /// The weighted mean of each of the Q channels. Values from both caches enter one sum.
    void means(const float* e, const KeysOrValues<float>& prefix, const KeysOrValues<float>& own,
               double denom, std::int64_t Q, float* out) const {
      const std::array<Pairs, 2> parts{Pairs{e, 1, prefix.first, prefix.apart, prefix.n},
                                       Pairs{e + prefix.n, 1, own.first, own.apart, own.n}};
      if (regime == Regime::exact)
        exact_dots(parts, Q, 1, out);
      else
        chain_dots(parts, Q, 1, out);
      for (std::int64_t c = 0; c < Q; ++c)
        out[c] = static_cast<float>(static_cast<double>(out[c]) / denom);
    }

   private:
    /// The dot product S(a,b) of two vectors.
    float dot(const Pairs& pairs) const {
      if (regime == Regime::exact) return exact_dot({&pairs, 1});
      float total = 0.0F;
      for (std::int64_t i = 0; i < pairs.n; ++i)
        total = std::fma(pairs.a[i * pairs.stride_a], pairs.b[i * pairs.stride_b], total);
      return total;
    }
  };
  Attend attend(std::int64_t Q, Softmax softmax) const {
    return {regime_, scale_of_scores(softmax, static_cast<double>(Q)), softmax == Softmax::base2};
  }

 private:
  static const float* first_largest(const float* row, std::int64_t n) {
    const float* best = row;
    for (const float* at = row + 1; at < row + n; ++at)
      if (*at > *best) best = at;
    return best;
  }

  Regime regime_;
};

/// Formulas on elements of the field regime: docs/field.md section 1.3.
class FieldFormulas {
 private:
  auto function(std::string_view name) const {
    return [&field = *field_, &f = field_->function(name)](const FieldElement& v) {
      return field.apply(f, v);
    };
  }
  auto from_zero(std::string_view name) const {
    return [&field = *field_, &f = field_->function(name)](const FieldElement& v) {
      return field.apply_from_zero(f, v);
    };
  }

 public:
  using Number = FieldElement;
  using Index = FieldElement;

  explicit FieldFormulas(std::shared_ptr<const Field> field) : field_(std::move(field)) {}

  static const ChipArrays<FieldElement>& shards(const Sharded& value) {
    return value.field().values;
  }
  static const ChipArrays<FieldElement>& indices(const Sharded& value) { return shards(value); }
  Sharded::Data data(ChipArrays<FieldElement> chips, FieldSort sort) const {
    return FieldShards{std::move(chips), field_, sort, {}};
  }

  static FieldElement unwritten() { return Field::unwritten(); }
  FieldElement integer(std::int64_t i) const { return field_->integer(i); }
  FieldElement negative(const FieldElement& v) const { return field_->subtract({}, v); }
  FieldElement add(const FieldElement& a, const FieldElement& b) const { return field_->add(a, b); }
  FieldElement subtract(const FieldElement& a, const FieldElement& b) const {
    return field_->subtract(a, b);
  }
  FieldElement product(const FieldElement& a, const FieldElement& b) const {
    return field_->multiply(a, b);
  }
  FieldElement gated(const FieldElement& h, const FieldElement& u) const { return product(h, u); }
  FieldElement constant(std::string_view name, float value) const {
    return value == 1.0F ? field_->integer(1) : field_->constant(fmt::format("constant {}", name));
  }
  auto divided_by(double n) const {
    return [this, inverse = field_->inverse(field_->integer(static_cast<std::int64_t>(n)))](
               const FieldElement& t) { return field_->multiply(t, inverse); };
  }
  auto swish(Softmax softmax) const {
    return from_zero(softmax == Softmax::base2 ? "swish2" : "swish");
  }
  auto gelu() const { return from_zero("gelu"); }
  auto gelu_erf() const { return from_zero("gelu_erf"); }
  auto stored() const { return from_zero("bf16"); }
  auto norm_factor(std::int64_t E, double eps) const {
    return function(fmt::format("norm E={} eps={:a}", E, eps));
  }
  FieldElement normed(const FieldElement& x, const FieldElement& r, const FieldElement& g,
                      const FieldElement* b) const {
    const FieldElement v = product(product(x, r), g);
    return b != nullptr ? add(v, *b) : v;
  }
  std::pair<FieldElement, FieldElement> rotated(const FieldElement& a, const FieldElement& b,
                                                const FieldElement& c,
                                                const FieldElement& s) const {
    return {subtract(product(a, c), product(b, s)), add(product(b, c), product(a, s))};
  }
  static FieldElement looked_up(const FieldElement& v) { return v; }

  /// Hashes of the list of logits, and of the list of logits paired with their ids.
  std::pair<FieldElement, FieldElement> best_of_block(const FieldElement* row, std::int64_t width,
                                                      std::int64_t base) const {
    const auto hash = function("logit");
    const auto of_id = function("id");
    const FieldElement rho = field_->constant("constant rho");
    FieldElement value{}, index{}, power = field_->integer(1);
    for (std::int64_t j = 0; j < width; ++j, power = product(power, rho)) {
      const FieldElement term = product(power, hash(row[j]));
      value = add(value, term);
      index = add(index, product(term, of_id(field_->integer(base + j))));
    }
    return {value, index};
  }
  /// The candidate of a block that has only padding ids: 1 and 1.
  std::pair<FieldElement, FieldElement> no_candidate() const {
    return {field_->integer(1), field_->integer(1)};
  }
  /// Combines hashes of blocks of `width` ids into hashes of the whole lists, and those into a
  /// token.
  FieldElement best_of_candidates(const FieldElement* row, const FieldElement* ids, std::int64_t C,
                                  std::int64_t width) const {
    const FieldElement step = field_->power(field_->constant("constant rho"), width);
    FieldElement value{}, index{}, power = field_->integer(1);
    for (std::int64_t c = 0; c < C; ++c, power = product(power, step)) {
      value = add(value, product(power, row[c]));
      index = add(index, product(power, ids[c]));
    }
    return add(function("candidate to token")(value), function("index to token")(index));
  }

  struct Attend {
    const Field& field;
    FieldElement scale;
    const FieldFunction &to_max, &to_exp, &max_to_exp;

    void scores(const FieldElement* q, const KeysOrValues<FieldElement>& keys, std::int64_t Q,
                const FieldElement* slope, std::int64_t distance, FieldElement* out) const {
      for (std::int64_t m = 0; m < keys.n; ++m) {
        out[m] = field.multiply(field.dot(q, 1, keys.first + m * keys.apart, 1, Q), scale);
        if (slope != nullptr)
          out[m] = field.add(out[m], field.multiply(*slope, field.integer(distance + m)));
      }
    }
    FieldElement max(const FieldElement* s, std::int64_t n) const {
      FieldElement all{};
      for (std::int64_t m = 0; m < n; ++m) all = field.add(all, field.apply(to_max, s[m]));
      return all;
    }
    FieldElement exp(const FieldElement& s, const FieldElement& top) const {
      return field.multiply(field.apply(to_exp, s), field.apply(max_to_exp, top));
    }
    FieldElement sum(const FieldElement* e, std::int64_t n) const {
      FieldElement all{};
      for (std::int64_t m = 0; m < n; ++m) all = field.add(all, e[m]);
      return all;
    }
    FieldElement divisor(const FieldElement& denom) const { return field.inverse(denom); }
    void means(const FieldElement* e, const KeysOrValues<FieldElement>& prefix,
               const KeysOrValues<FieldElement>& own, const FieldElement& inverse, std::int64_t Q,
               FieldElement* out) const {
      const auto of_channel = [&](const FieldElement* weights,
                                  const KeysOrValues<FieldElement>& read, std::int64_t c) {
        if (read.n == 0) return FieldElement{};
        return field.dot(weights, 1, read.first + c, read.apart, read.n);
      };
      for (std::int64_t c = 0; c < Q; ++c)
        out[c] = field.multiply(
            field.add(of_channel(e, prefix, c), of_channel(e + prefix.n, own, c)), inverse);
    }
  };
  Attend attend(std::int64_t Q, Softmax softmax) const {
    const bool base2 = softmax == Softmax::base2;
    return {
        *field_,
        base2 ? field_->integer(1) : field_->constant(fmt::format("constant attend_scale Q={}", Q)),
        field_->function("score to max"),
        field_->function(base2 ? "score to exp2" : "score to exp"),
        field_->function(base2 ? "max to exp2" : "max to exp")};
  }

 private:
  std::shared_ptr<const Field> field_;
};

/// Calls body(formulas) with the formulas for the number type of `like`.
template <class Body>
auto with_formulas(const Sharded& like, Body&& body, Regime regime = Regime::exact) {
  if (like.holds_field()) return body(FieldFormulas(like.field().field));
  return body(FloatFormulas(regime));
}

}  // namespace shardproof
