#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include "oracle/formulas/degree.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof::oracle {

// The formulas of docs/spec.md section 2 stand here once, for two kinds of numbers, `Math`: Floats
// (oracle/model/detail/floats.h) and field::Numbers (oracle/field/detail/numbers.h). A kind says
// what an element of a tensor is; computes with intermediate values (f64, or again numbers of the
// field), which element() makes elements; and has the functions and the constants of a model.

template <class Math>
using TensorOf = Array<typename Math::Element>;

/// A tensor that a formula has computed, and the degree of its elements, which only a field reads.
template <class Math>
struct Value {
  TensorOf<Math> tensor;
  Degree degree;
};

/// A value as the pass has filed it.
template <class Math>
struct Operand {
  const TensorOf<Math>* tensor = nullptr;
  Degree degree;
};

/// Degree of inputs and of the results of functions.
inline const Degree kVariable{1, {}};

template <class T>
std::size_t extent(const Array<T>& t, std::size_t dim) {
  return static_cast<std::size_t>(t.shape[dim]);
}

/// Returns whether the values' bits are equal: -0 and +0 differ.
template <class T>
bool same_bits(const Array<T>& a, const Array<T>& b) {
  return a.data.size() == b.data.size() &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(T)) == 0;
}

}  // namespace shardproof::oracle
