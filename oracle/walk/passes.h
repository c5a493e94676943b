#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/walk/walk.h"
#include "weights/base/tensor.h"
#include "weights/model/passes.h"
#include "weights/text/model_text.h"

namespace shardproof::oracle::graph {

/// Returns the tokens of a pass, from its ids [B, L]; the ids of padding are any of the vocabulary.
Tokens tokens_of(const PassPlan& pass, const IntTensor& ids);

/// "decode.1.layer0.q", or "decode.1.embed" with a negative layer.
std::string value_id(const std::string& pass, std::int64_t layer, const std::string& name);

/// Returns whether a line is a cache.
inline bool is_cache(const TextLine& line) {
  return line.expression.kind == Expression::Kind::call && line.expression.op == ModelOp::append;
}

/// Returns for each row of a pass the prefix that it continues.
std::vector<std::int64_t> prefixes_of(const PassPlan& pass);

/// The elements of a value that programs hold: of a cache those behind the slots of prefixes.
struct OwnSlots {
  Shape shape;
  std::vector<size_t> places;  ///< in the whole value

  /// `before`: the slots of prefixes, 0 of what is not a cache.
  OwnSlots(const std::string& letters, const Shape& whole, std::int64_t before);
};

/// Returns whether a weight is a table of RoPE, which files hold with a column for each pair.
inline bool turns(const TextWeight& weight) {
  return weight.kind == TextWeightKind::cosines || weight.kind == TextWeightKind::sines;
}

/// Returns the [P, Q] table of the text for one of a file, [P, J] with a column for each pair of
/// rotated channels; channels beyond have the cosine `one` and the sine `zero`.
template <class Element, class Scalar>
std::vector<Scalar> spread(const TextWeight& weight, const Array<Element>& pairs,
                           const Shape& shape, const Scalar& one, const Scalar& zero) {
  const auto P = static_cast<size_t>(shape[0]), Q = static_cast<size_t>(shape[1]);
  const size_t J = pairs.data.size() / P;
  const bool half = weight.parameters[0] == "half";
  std::vector<Scalar> table(P * Q, weight.kind == TextWeightKind::cosines ? one : zero);
  for (size_t p = 0; p < P; ++p)
    for (size_t j = 0; j < J; ++j) {
      const auto v = static_cast<Scalar>(pairs.data[p * J + j]);
      table[p * Q + (half ? j : 2 * j)] = v;
      table[p * Q + (half ? j + J : 2 * j + 1)] = v;
    }
  return table;
}

}  // namespace shardproof::oracle::graph
