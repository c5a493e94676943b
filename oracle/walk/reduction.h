#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oracle/walk/array.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/text/model_text.h"

namespace shardproof::oracle::graph {

/// Returns the sums of an einsum with the letters and the shape of `y`.
template <class Math, class Scalar = typename Math::Scalar>
std::vector<typename Math::Sum> sums_of(
    const Math& math, const Expression& e,
    const std::vector<std::pair<Lettered<Scalar>, Lettered<Scalar>>>& operands,
    const Lettered<Scalar>& y) {
  std::vector<typename Math::Sum> sums(count_of(y.shape), math.sum());
  for (size_t t = 0; t < e.terms.size(); ++t) {
    const auto& [a, b] = operands[t];
    std::string over;
    Shape over_shape;
    for (const Lettered<Scalar>* v : {&a, &b})
      for (size_t i = 0; i < v->letters.size(); ++i)
        if ((y.letters + over).find(v->letters[i]) == std::string::npos) {
          over += v->letters[i];
          over_shape.push_back(v->shape[i]);
        }
    const auto a_first = places_in(y.letters, y.shape, a.letters, a.shape);
    const auto b_first = places_in(y.letters, y.shape, b.letters, b.shape);
    const auto a_next = places_in(over, over_shape, a.letters, a.shape);
    const auto b_next = places_in(over, over_shape, b.letters, b.shape);
    for (size_t i = 0; i < sums.size(); ++i)
      for (size_t k = 0; k < a_next.size(); ++k)
        sums[i].add(a.data[a_first[i] + a_next[k]], b.data[b_first[i] + b_next[k]]);
  }
  return sums;
}

/// Returns the sum, mean or maximum of elements. `where`: the line, as errors begin.
template <class Math, class Scalar = typename Math::Scalar>
Scalar reduce_elements(const Math& math, const Expression& e, const std::vector<Scalar>& all,
                       const std::string& where) {
  if (e.op == ModelOp::max) {
    if (all.empty()) throw Error("oracle_graph", where + ": the maximum of nothing that exists");
    if constexpr (Math::kFormal) {  // a function of the set
      auto sum = math.sum();
      for (const Scalar& s : all) sum.add(math.function("score to max", s));
      return sum.value();
    } else {
      Scalar most = all[0];
      for (const Scalar& s : all) most = math.pair(ModelOp::larger, most, s);
      return most;
    }
  }
  if (e.parameters.size() == 2) {
    Scalar total = math.number(0);
    for (const Scalar& s : all) total = math.stored(math.pair(ModelOp::add, total, s));
    return total;
  }
  auto sum = math.sum();
  for (const Scalar& s : all) sum.add(s);
  return e.op == ModelOp::mean ? math.divided(sum.value(), static_cast<std::int64_t>(all.size()))
                               : sum.value();
}

/// Returns the sum, mean or maximum over what exists.
template <class Math, class Scalar = typename Math::Scalar>
Lettered<Scalar> reduce_letters(const Math& math, const Expression& e, const Lettered<Scalar>& x,
                                const std::string& where) {
  const std::string& over = e.parameters[0];
  Lettered<Scalar> y{"", {}, {}};
  for (size_t i = 0; i < x.letters.size(); ++i)
    if (over.find(x.letters[i]) == std::string::npos) {
      y.letters += x.letters[i];
      y.shape.push_back(x.shape[i]);
    }
  const Lettered<Scalar> sorted = in_order(x, y.letters + over);
  const auto here = here_in(sorted.presence, sorted.letters, sorted.shape);
  const size_t rows = count_of(y.shape), length = sorted.data.size() / std::max<size_t>(rows, 1);
  for (size_t row = 0; row < rows; ++row) {
    std::vector<Scalar> exists;
    bool known = true;
    for (size_t k = row * length; k < (row + 1) * length; ++k) {
      if (here.empty() || here[k] != Presence::kAbsent) exists.push_back(sorted.data[k]);
      known = known && (here.empty() || here[k] != Presence::kPerhaps);
    }
    // An absent element adds 0 to a sum, but means and maxima depend on which elements exist.
    y.data.push_back(known || e.op == ModelOp::sum ? reduce_elements(math, e, exists, where)
                                                   : math.unknown());
  }
  return y;
}

}  // namespace shardproof::oracle::graph
