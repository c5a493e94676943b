#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/collectives/ring.h"
#include "engine/numeric/column_norms.h"
#include "engine/ops/einsum.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// The letters of a contraction's result, in its order, by what they are in all of its terms: m in
/// a alone, n in b alone, all others are batch letters. An operand that lacks one is repeated.
struct ResultLetters {
  std::string batch, m, n;

  explicit ResultLetters(const EinsumSpec& spec);
};

/// One term's local index arithmetic: offsets in a and b of the letters of a group, the group's
/// combined index being row-major.
class LocalTerm {
 public:
  /// `a` and `b` are local shapes.
  LocalTerm(const EinsumSpec::Term& term, const ResultLetters& letters, const Shape& a,
            const Shape& b);

  /// Returns this term with the contracted elements in the order in which a ring of K chips
  /// delivers them to chip `chip`.
  LocalTerm looped(const Ring& ring, std::int64_t K, std::int64_t chip) const;

  std::int64_t batch() const { return std::ssize(a_batch_); }
  std::int64_t M() const { return std::ssize(a_m_); }
  std::int64_t N() const { return std::ssize(b_n_); }
  std::int64_t K() const { return std::ssize(a_k_); }

  /// Returns true if rows of a and all of b are stored as matrices: tiles of rows need no copy.
  bool by_rows() const { return batch() == 1 && a_lies_ && b_lies_; }
  /// a as [M,K], or b as [K,N], for one batch index; copied only if it is stored otherwise.
  template <class T>
  const T* a_matrix(const T* a, std::int64_t batch, std::vector<T>& copy) const {
    return matrix(a + a_batch_[static_cast<std::size_t>(batch)], a_m_, a_k_, a_lies_, copy);
  }
  template <class T>
  const T* b_matrix(const T* b, std::int64_t batch, std::vector<T>& copy) const {
    return matrix(b + b_batch_[static_cast<std::size_t>(batch)], b_k_, b_n_, b_lies_, copy);
  }

  /// Extents and strides of b where there is one batch index; for a term that is not looped.
  const KeptNorms::Place& b_place() const { return b_place_; }

  /// Adds to `sum` the products of one result element. Sum is CompensatedSum or ExactSum.
  template <class Sum>
  void add_terms(const float* a, const float* b, std::int64_t batch, std::int64_t m, std::int64_t n,
                 Sum& sum) const {
    const float* row =
        a + a_batch_[static_cast<std::size_t>(batch)] + a_m_[static_cast<std::size_t>(m)];
    const float* column =
        b + b_batch_[static_cast<std::size_t>(batch)] + b_n_[static_cast<std::size_t>(n)];
    for (std::int64_t offset : b_k_) __builtin_prefetch(column + offset);  // a line each
    for (std::size_t k = 0; k < a_k_.size(); ++k) sum.add_product(row[a_k_[k]], column[b_k_[k]]);
  }

 private:
  using Offsets = std::vector<std::int64_t>;

  std::vector<std::int64_t> looped_order(const Ring& ring, std::int64_t K, std::int64_t chip) const;
  void see_how_it_lies();

  template <class T>
  static const T* matrix(const T* data, const Offsets& rows, const Offsets& columns, bool lies,
                         std::vector<T>& copy) {
    if (lies) return data;
    copy.resize(rows.size() * columns.size());
    auto out = copy.begin();
    for (std::int64_t row : rows)
      for (std::int64_t column : columns) *out++ = data[row + column];
    return copy.data();
  }

  Offsets a_batch_, b_batch_, a_m_, a_k_, b_k_, b_n_;
  KeptNorms::Place b_place_;
  bool a_lies_ = false, b_lies_ = false;                  ///< stored row-major without gaps
  std::vector<std::pair<char, std::int64_t>> k_extents_;  ///< contracted letters and extents
};

}  // namespace shardproof
