#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "weights/error.h"
#include "weights/field_setting.h"

namespace shardproof {

/// A number of the field regime (docs/field.md section 1.1): three lanes, of which those that are
/// not in use are 0. One that was never written is no number.
struct FieldElement {
  std::array<std::uint64_t, 3> lane{};
  bool operator==(const FieldElement&) const = default;
};

/// "0x01ab...:0x...:0x...".
std::string to_string(const FieldElement& element);

/// The engine's arithmetic on these numbers. Anything computed of what is no number is none either,
/// and a function is asked for numbers only. Safe to use from many threads.
class Field {
 public:
  /// Throws Error("field_setting", ...) if 2^bits − 1 is no prime that it knows, or lanes are not
  /// 1 to 3.
  explicit Field(const FieldSetting& setting);

  const FieldSetting& setting() const { return setting_; }
  std::uint64_t p() const { return p_; }

  /// What fresh and poisoned memory holds.
  static FieldElement unwritten() {
    return {{~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}}};
  }
  bool is_number(const FieldElement& v) const {
    return v.lane[0] < p_ && v.lane[1] < p_ && v.lane[2] < p_;
  }

  FieldElement integer(std::int64_t i) const;
  FieldElement add(const FieldElement& a, const FieldElement& b) const;
  FieldElement subtract(const FieldElement& a, const FieldElement& b) const;
  FieldElement multiply(const FieldElement& a, const FieldElement& b) const;
  /// The inverse, and notes that it was asked for in layer `layer`. Throws Error("field_zero", ...)
  /// if a lane in use is 0.
  FieldElement inverse(const FieldElement& v) const;
  FieldElement power(const FieldElement& v, std::uint64_t exponent) const;

  /// Σ a_i·b_i over n pairs that lie apart by these strides.
  FieldElement dot(const FieldElement* a, std::int64_t stride_a, const FieldElement* b,
                   std::int64_t stride_b, std::int64_t n) const;

  /// A random function, or a stream of inputs, by its name's hash.
  struct Key {
    std::uint64_t hash;
  };
  static Key key(std::string_view name);
  /// Element i of the stream of inputs.
  FieldElement input(Key stream, std::uint64_t i) const;
  /// Of what is no number none.
  FieldElement apply(Key function, const FieldElement& v) const;
  /// The same, but 0 of 0.
  FieldElement apply_from_zero(Key function, const FieldElement& v) const;

  /// What a run asked for so far: the applications of each function by its name, and the inverses
  /// by layer. apply() does not count; whoever calls it says how often.
  struct Counts {
    std::map<std::string, std::int64_t> applied;
    std::map<int, std::int64_t> inverted;
  };
  void count(std::string_view function, std::int64_t times) const;
  void count_inverses(int layer, std::int64_t times) const;
  Counts counts() const;

 private:
  FieldElement random(const std::array<std::uint64_t, 4>& counter, Key key) const;
  std::uint64_t fold(unsigned __int128 v) const;

  FieldSetting setting_;
  std::uint64_t p_;
  mutable std::mutex mutex_;
  mutable Counts counts_;
};

}  // namespace shardproof
