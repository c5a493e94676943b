#pragma once

#include <string_view>

#include "weights/error.h"

namespace shardproof {

/// Storage of the W matrices and the embedding table (docs/spec.md section 1).
enum class WeightType { f32, bf16, int8 };
/// Storage of activations, the rounding st() of docs/spec.md section 1.
enum class ActType { f32, bf16 };
/// What a contraction means: the correctly rounded exact sum, or one declared f32 order.
enum class Regime { exact, f32 };

/// The order in which a collective adds partial sums in the f32 regime (docs/spec.md section 1.2).
enum class Schedule { group, ring, tree, biring };

/// Looped collective einsums (paper §3.5): how the chunks go round their ring, one way, both ways
/// whole, or in halves each its own way (docs/spec.md section 1.2).
enum class Loop { none, one_way, both_full, both_half };

/// The choices of arithmetic: three orthogonal ones, the order that regime=f32 needs, and the
/// loops, which are another such order.
struct Numerics {
  WeightType weights = WeightType::f32;
  ActType act = ActType::f32;
  Regime regime = Regime::exact;
  Schedule schedule = Schedule::group;  ///< of regime=f32
  Loop loop = Loop::none;               ///< of every arrow of a layer's table that can be one
  bool operator==(const Numerics&) const = default;
};

/// Names as a case line writes them. parse_* throw Error("case_numerics", ...) naming the legal
/// words.
std::string_view to_string(WeightType);
std::string_view to_string(ActType);
std::string_view to_string(Regime);
std::string_view to_string(Schedule);
std::string_view to_string(Loop);
WeightType parse_weight_type(std::string_view word);
ActType parse_act_type(std::string_view word);
Regime parse_regime(std::string_view word);
Schedule parse_schedule(std::string_view word);
Loop parse_loop(std::string_view word);

}  // namespace shardproof
