#pragma once

#include <cstdint>
#include <vector>

#include "golden/bounds/functions.h"
#include "golden/bounds/interval.h"
#include "weights/tensor.h"

namespace shardproof::bounds {

/// What is declared of somebody's arithmetic, where the order of sums is not known.
struct Declared {
  Format values = Format::f32;  ///< what a value that st() rounds is kept as
  Format sums = Format::f32;    ///< what sums are kept as while they grow
  Arithmetic operations = Arithmetic::of(Format::f32, 4);  ///< of all that is not a sum
  /// Roundings of a product beyond its own and those of the additions: one for each constant that
  /// is folded into a factor, as a scale into a weight.
  int folded = 0;
  /// How often a partial sum is rounded on the wire, at most: a group of K once, a ring K−1 times.
  int wire_roundings = 0;
  Format wire = Format::bf16;

  /// By how much a sum of n products may be off, relative to the sum of their sizes: in any order
  /// or tree a product goes through at most n roundings, its own included.
  double growth(std::int64_t n) const;
  /// What a number of a value becomes that is not stored: score, max, exp, denom, logits.
  Format unstored() const { return values == Format::bf16 ? Format::f32 : values; }
};

/// Real numbers known to within a radius each: dumped ones with none, replayed ones with what
/// their own operands and operations leave open.
struct Carried {
  Shape shape;
  std::vector<double> center, radius;

  Carried() = default;
  explicit Carried(Shape of);
  explicit Carried(const Tensor& exact);
  Carried(Array<double> exact);  // NOLINT(google-explicit-constructor): the same numbers
  std::size_t size() const { return center.size(); }
  Interval at(std::size_t i) const { return around(center[i], radius[i]); }
  void set(std::size_t i, const Evaluated& v) { center[i] = v.center, radius[i] = v.radius; }

  /// As values of a format: each number's own rounding is added.
  Carried rounded(Format format) const;
};

/// Σ a_k·b_k while it is added up, in twice f64's digits.
class CarriedSum {
 public:
  void add(double a, double b, double radius_of_a = 0.0, double radius_of_b = 0.0);
  /// Of the sum of an evaluation as declared: its center and radius.
  Evaluated value(const Declared& declared) const;

 private:
  double high_ = 0.0, low_ = 0.0;
  double size_ = 0.0;     ///< Σ of the products' sizes
  double carried_ = 0.0;  ///< what the factors' radii make of the sum
  std::int64_t count_ = 0;
};

}  // namespace shardproof::bounds
