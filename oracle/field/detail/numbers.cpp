#include "oracle/field/detail/numbers.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>

#include "oracle/field/detail/philox.h"
#include "oracle/numeric/detail/constants.h"
#include "oracle/numeric/each.h"
#include "weights/base/error.h"

namespace shardproof::oracle::field {

using std::size_t;

Function::Function(const Random& random, std::string_view name, std::int64_t& applied)
    : random_(random), hash_(fnv1a64(name)), keeps_zero_(keeps_zero(name)), applied_(applied) {}

Number Function::operator()(const Number& v) const {
  std::atomic_ref<std::int64_t>(applied_).fetch_add(1, std::memory_order_relaxed);
  return keeps_zero_ && v == Number{} ? v : random_.function(hash_, v);
}

Vectors Vectors::rows_of(std::span<const Number> matrix, size_t count) {
  const size_t length = count == 0 ? 0 : matrix.size() / count;
  return {matrix, count, length, length, 1};
}

Vectors Vectors::columns_of(std::span<const Number> matrix, size_t count) {
  return {matrix, count, count == 0 ? 0 : matrix.size() / count, 1, count};
}

std::vector<Number> Numbers::contract(const Vectors& rows, const Vectors& columns,
                                      int threads) const {
  const size_t length = rows.length;
  const auto copy = [length](const Vectors& of, size_t i, Number* to) {
    for (size_t k = 0; k < length; ++k) to[k] = of.data[i * of.vector_step + k * of.element_step];
  };
  std::vector<Number> lines(rows.count * length);
  for (size_t i = 0; i < rows.count; ++i) copy(rows, i, lines.data() + i * length);
  std::vector<Number> all(rows.count * columns.count);
  each_row(columns.count, lines.size(), threads, [&](size_t j) {
    std::vector<Number> column(length);
    copy(columns, j, column.data());
    for (size_t i = 0; i < rows.count; ++i)
      all[i * columns.count + j] = dot(lines.data() + i * length, column.data(), length);
  });
  return all;
}

Number Numbers::sum_of(std::span<const Number> x) const {
  Number sum;
  for (const Number& v : x) sum = add(sum, v);
  return sum;
}

Number Numbers::divisor(const std::string& id, std::int64_t extent) const {
  const Number number = integer(extent);
  if (const auto lane = zero_lane(number))
    throw Error("field_zero",
                fmt::format("{}: E={} has no inverse, lane {} of it is 0", id, extent, *lane));
  return inverse(number);
}

std::vector<Number> Numbers::divisors(int layer, const std::string& id, const Tensor& denom) const {
  std::vector<Number> inverses;
  for (size_t at = 0; at < denom.data.size(); ++at) {
    if (const auto lane = zero_lane(denom.data[at]))
      throw Error("field_zero", fmt::format("{}{} has no inverse, lane {} of it is 0", id,
                                            index_text(denom.shape, at), *lane));
    inverses.push_back(inverse(denom.data[at]));
  }
  answer_.inverted[layer] += static_cast<std::int64_t>(inverses.size());
  return inverses;
}

Number Numbers::constant(std::string_view what) const {
  return random_.stream(fmt::format("constant {}", what), {1}).data[0];
}

Numbers::Factor Numbers::model_scale(std::string_view name, bool is_one) const {
  if (is_one) return {integer(1), {}};
  return {constant(name), kVariable};
}

Numbers::Factor Numbers::embed_scale() const {
  return model_scale("embed_scale", answer_.config.embed_scale == 1.0F);
}

Numbers::Factor Numbers::logit_scale() const {
  const ModelConfig& c = answer_.config;
  return model_scale("logit_scale",
                     c.softmax == shardproof::Softmax::base2 || c.logit_scale == 1.0F);
}

Numbers::Factor Numbers::score_scale(size_t Q) const {
  // A base-2 model's wq includes the scale.
  return model_scale(fmt::format("attend_scale Q={}", Q),
                     answer_.config.softmax == shardproof::Softmax::base2);
}

Function Numbers::function(std::string_view name, const Degree& argument) const {
  answer_.degrees.insert(argument);
  return {random_, name, answer_.applied[std::string(name)]};
}

Function Numbers::activation(const Degree& argument) const {
  const ModelConfig& c = answer_.config;
  switch (c.ffn) {
    case Ffn::swiglu:
      return function(c.softmax == shardproof::Softmax::base2 ? "swish2" : "swish", argument);
    case Ffn::geglu:
    case Ffn::gelu:
      break;
    case Ffn::gelu_erf:
      return function("gelu_erf", argument);
  }
  return function("gelu", argument);
}

Function Numbers::inverse_root(const Degree& argument) const {
  char eps[64];  // "norm E=96 eps=0x1p-20"
  std::snprintf(eps, sizeof eps, "%a", Constants(answer_.config).eps);
  return function(fmt::format("norm E={} eps={}", answer_.config.E, eps), argument);
}

Numbers::Softmax Numbers::softmax(const Degree& argument) const {
  const bool base2 = answer_.config.softmax == shardproof::Softmax::base2;
  return {*this, function("score to max", argument),
          function(base2 ? "score to exp2" : "score to exp", argument),
          function(base2 ? "max to exp2" : "max to exp", kVariable)};
}

std::pair<Number, Number> Numbers::Softmax::operator()(std::span<const Number> s,
                                                       std::span<Number> e) const {
  Number max, denom;
  for (const Number& score : s) max = math.add(max, to_max(score));
  const Number of_max = max_to_exp(max);
  for (size_t p = 0; p < s.size(); ++p) {
    e[p] = math.multiply(to_exp(s[p]), of_max);
    denom = math.add(denom, e[p]);
  }
  return {max, denom};
}

}  // namespace shardproof::oracle::field
