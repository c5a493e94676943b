#pragma once

#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/torus.h"
#include "engine/layout/type.h"

namespace shardproof::cost {

/// A number times powers of what differs from pass to pass: c·B^b·L^l·M^m·(M+L)^t·S^s, S the pairs
/// that the causal mask leaves (Pass::seen). The number is a quotient of whole numbers, so that a
/// torus axis of 3 chips rounds nothing.
struct Monomial {
  double factor = 1.0, divisor = 1.0;
  int B = 0, L = 0, M = 0, grown = 0, seen = 0;  ///< the exponents; `grown` that of M + L

  Monomial times(double by) const;
  Monomial times(const Monomial& other) const;
  /// Of the square L(M + L), what the causal mask leaves.
  Monomial masked() const;
  double at(const Pass& pass) const;
  /// Whether they differ by their factor alone.
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

/// The local extent of a dim that the type has, on a chip of the torus: as a formula, of a type
/// that was worked out for the pass `like`.
Monomial dim_extent(const Type& type, char letter, const Torus& torus, const Pass& like);
/// The elements of one chip's shard.
Monomial local_elements(const Type& type, const Torus& torus, const Pass& like);

}  // namespace shardproof::cost
