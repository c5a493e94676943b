#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weights/base/error.h"
#include "weights/model/field_setting.h"

namespace shardproof {

/// A number of the field regime (docs/field.md section 1.1): three lanes, of which unused ones are
/// 0. An element that was never written is not a number.
struct FieldElement {
  std::array<std::uint64_t, 3> lane;
  bool operator==(const FieldElement&) const = default;
};

/// "0x0123456789abcdef:0x...:0x...".
std::string to_string(const FieldElement& element);

/// The degree of an element as a rational function: its numerator has at most the degree a + Σ_l
/// (e[l] + more[l])·D_l over the denominator Π_l Δ_l^e[l], where Δ_l, of degree D_l, is the product
/// of the softmax denominators of layer l, or of the numerators of a map's divisors (docs/field.md
/// section 2).
struct FieldDegree {
  std::int64_t a = 1;
  std::map<int, std::int64_t> e = {};
  std::map<int, std::int64_t> more = {};
  bool operator==(const FieldDegree&) const = default;
  bool operator<(const FieldDegree& other) const {
    return std::tie(a, e, more) < std::tie(other.a, other.e, other.more);
  }
};

/// Counts of a run of the field regime, for the bound of docs/field.md section 2.
struct FieldCounts {
  std::map<std::string, std::int64_t> applied;  ///< applications of each function
  std::map<int, std::int64_t> inverted;         ///< inverted softmax denominators, by layer
  std::set<FieldDegree> degrees;  ///< degrees of all values and arguments of functions
  /// Divisors of maps by their degree: of the division that Field::divided() has numbered.
  std::map<std::pair<int, FieldDegree>, std::int64_t> divided = {};
};

/// A random function, or a stream of inputs, of the field regime, with a count of its applications.
class FieldFunction {
 public:
  explicit FieldFunction(std::string_view name);
  std::uint64_t hash() const { return hash_; }

 private:
  friend class Field;
  std::uint64_t hash_;
  mutable std::atomic<std::int64_t> applied_{0};
};

/// Thread-safe arithmetic on field elements. A result is not a number if an operand is not.
class Field {
 public:
  /// Throws Error("field_setting", ...) if p = 2^bits − 1 is not a prime of at most 61 bits, or
  /// lanes are not 1 to 3.
  explicit Field(const FieldSetting& setting);

  const FieldSetting& setting() const { return setting_; }
  std::uint64_t p() const { return p_; }

  /// The content of fresh and poisoned memory.
  static constexpr FieldElement unwritten() {
    return {{~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}}};
  }
  bool is_number(const FieldElement& v) const {
    return v.lane[0] < p_ && v.lane[1] < p_ && v.lane[2] < p_;
  }

  FieldElement integer(std::int64_t i) const;
  FieldElement add(const FieldElement& a, const FieldElement& b) const;
  FieldElement subtract(const FieldElement& a, const FieldElement& b) const;
  FieldElement multiply(const FieldElement& a, const FieldElement& b) const;
  /// Throws Error("field_zero", ...) if a lane in use is 0.
  FieldElement inverse(const FieldElement& v) const;
  FieldElement power(const FieldElement& v, std::int64_t exponent) const;
  /// Σ a_i·b_i over n pairs at strides `stride_a` and `stride_b`.
  FieldElement dot(const FieldElement* a, std::int64_t stride_a, const FieldElement* b,
                   std::int64_t stride_b, std::int64_t n) const;

  /// The function of this name; it lives as long as the field.
  const FieldFunction& function(std::string_view name) const;
  FieldElement apply(const FieldFunction& f, const FieldElement& v) const;
  /// Applies a function that maps 0 to 0: swish, swish2, gelu, gelu_erf and bf16.
  FieldElement apply_from_zero(const FieldFunction& f, const FieldElement& v) const;
  /// Element i of the stream of inputs of this name.
  FieldElement input(const FieldFunction& stream, std::uint64_t i) const;
  /// The only element of a stream of one.
  FieldElement constant(std::string_view name) const { return input(FieldFunction(name), 0); }

  /// Record a degree that was met, and inverses of softmax denominators.
  void met(const FieldDegree& degree) const;
  void inverted(int layer, std::int64_t times) const;
  /// Records divisors of one division of a program, named as in "layer3.attn": returns its number,
  /// which is above those of all layers and of the divisions met before.
  int divided(std::string_view division, const FieldDegree& divisor, std::int64_t times) const;
  FieldCounts counts() const;

 private:
  FieldElement random(std::array<std::uint64_t, 4> counter, const FieldFunction& f) const;

  FieldSetting setting_;
  std::uint64_t p_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<FieldFunction>, std::less<>> functions_;
  mutable std::map<std::string, int, std::less<>> divisions_;
  mutable FieldCounts counts_;  // without the applications, which the functions count
};

}  // namespace shardproof
