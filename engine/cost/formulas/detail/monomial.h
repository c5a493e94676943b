#pragma once

#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/torus.h"
#include "engine/layout/type.h"

namespace shardproof::cost {

/// A constant times powers of a pass's extents: c·B^b·L^l·M^m·(M+L)^t·S^s, where S is the number of
/// pairs that the causal mask leaves (Pass::seen). The constant is a quotient of whole numbers, so
/// that a torus axis of 3 chips causes no rounding.
struct Monomial {
  double factor = 1.0, divisor = 1.0;
  int B = 0, L = 0, M = 0, grown = 0, seen = 0;  ///< the exponents; `grown` is that of M + L

  Monomial times(double by) const;
  Monomial times(const Monomial& other) const;
  /// Returns the part of the square L(M + L) that the causal mask leaves.
  Monomial masked() const;
  double at(const Pass& pass) const { return at(pass, pass.seen()); }
  /// Returns the value where so many pairs are left, whatever leaves them.
  double at(const Pass& pass, double pairs) const;
  /// Returns the part of one position of L.
  Monomial of_one_position() const;
  /// Returns true if the two differ at most in `factor`.
  bool alike(const Monomial& other) const {
    return divisor == other.divisor && B == other.B && L == other.L && M == other.M &&
           grown == other.grown && seen == other.seen;
  }
};

/// A sum of monomials.
class Polynomial {
 public:
  void add(const Monomial& term);
  double at(const Pass& pass) const;

 private:
  std::vector<Monomial> terms_;
};

/// Returns the local extent of a dim of the type on a chip of the torus, as a formula; the type was
/// computed for the pass `like`.
Monomial dim_extent(const Type& type, char letter, const Torus& torus, const Pass& like);
/// Returns the number of elements of one chip's shard, as a formula.
Monomial local_elements(const Type& type, const Torus& torus, const Pass& like);

}  // namespace shardproof::cost
