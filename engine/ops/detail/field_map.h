#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/ops/map.h"
#include "engine/shards/field.h"
#include "weights/base/error.h"
#include "weights/text/ops.h"

namespace shardproof {

/// Returns whether a literal of this value is an integer of the field.
inline bool is_whole(double v) { return v == std::floor(v) && std::fabs(v) < 0x1p53; }

/// An expression that is one random function of another.
struct FieldCall {
  std::string name;
  const Expression* argument;
};

/// The expressions whose exponentials' product an expression is: exp(sub(a, b)).
struct FieldDifference {
  const Expression* first;
  const Expression* second;
  bool base2;

  std::string_view first_name() const { return base2 ? "score to exp2" : "score to exp"; }
  std::string_view second_name() const { return base2 ? "max to exp2" : "max to exp"; }
};

/// The meaning of a map's expression in the field regime, by its form alone.
class FieldForm {
 public:
  explicit FieldForm(const MapExpression& map) : map_(map) {}

  /// silu(mul(x, 2)), and 1/sqrt(x/E + eps).
  std::optional<FieldCall> call(const Expression& e) const;
  std::optional<FieldDifference> difference(const Expression& e) const;
  /// The name of the function that an op of one number is; empty for a store that rounds nothing.
  std::string name(const Expression& e) const;

 private:
  const MapExpression& map_;
};

/// Numbers of a map in the field regime (docs/field.md).
class FieldMap {
 public:
  using Number = FieldElement;
  using Result = FieldElement;
  static constexpr bool kFormal = true;

  FieldMap(const MapExpression& map, std::shared_ptr<const Field> field)
      : map_(map), form_(map), field_(std::move(field)) {}

  static const FieldElement* shard(const Sharded& value, std::int64_t chip) {
    return value.field().values[static_cast<std::size_t>(chip)].data();
  }
  static const FieldElement& operand(const FieldElement& v) { return v; }
  FieldElement integer(std::int64_t v) const { return field_->integer(v); }
  FieldElement word(std::string_view word) const;
  FieldElement pair(ModelOp op, const FieldElement& a, const FieldElement& b) const;
  using Function = std::function<FieldElement(const FieldElement&)>;
  /// Returns the function called `name`, which maps 0 to 0 if it is one of docs/field.md section
  /// 1.2 that do.
  Function named(std::string_view name) const;
  /// Returns the function of an op of one number, or of one with two parameters. within of an
  /// integer is exact.
  Function function(const Expression& e) const;
  static const FieldElement& result(const FieldElement& v) { return v; }

  const FieldForm& form() const { return form_; }

 private:
  /// The integer of at most 2^31 that a number is, if it is one.
  std::optional<std::int64_t> integer_of(const FieldElement& v) const;

  const MapExpression& map_;
  FieldForm form_;
  std::shared_ptr<const Field> field_;
};

}  // namespace shardproof
