#pragma once

#include <span>
#include <string_view>

#include "weights/base/error.h"

namespace shardproof {

/// Storage of the W matrices and the embedding table (docs/spec.md section 1).
enum class WeightType { f32, bf16, int8 };
/// Storage of activations, the rounding st() of docs/spec.md section 1.
enum class ActType { f32, bf16 };
/// Meaning of numbers and contractions: the correctly rounded exact sum, one declared f32 order, or
/// elements of a finite field instead of floats (docs/field.md).
enum class Regime { exact, f32, field };

/// The order in which a collective adds partial sums in the f32 regime (docs/spec.md section 1.2).
enum class Schedule { group, ring, tree, biring };

/// Looped collective einsums (paper §3.5), by how the chunks travel round their ring: one way,
/// whole chunks both ways, or half chunks each in its own direction (docs/spec.md section 1.2).
enum class Loop { none, one_way, both_full, both_half };

/// Type in which sums accumulate, and in which partial sums travel.
enum class FloatType { f32, bf16 };

/// The choices of arithmetic (docs/spec.md section 1.6).
struct Numerics {
  WeightType weights = WeightType::f32;
  ActType act = ActType::f32;
  Regime regime = Regime::exact;
  Schedule schedule = Schedule::group;  ///< regime=f32 only
  Loop loop = Loop::none;               ///< every layer arrow that can be looped
  FloatType acc = FloatType::f32;       ///< regime=f32 only: sums of W matrices
  FloatType wire = FloatType::f32;      ///< partial sums in transit; bits in regime=f32 only
  bool operator==(const Numerics&) const = default;
};

/// Throws Error("case_numerics", ...) if the choices are incompatible: a schedule other than group,
/// or acc=bf16, without regime=f32; wire=bf16 with regime=field.
void validate(const Numerics& numerics);

/// The rounding points of the paper's code, numerics=released; with them goes the model's
/// cache=bf16 (docs/spec.md section 1.7).
inline constexpr std::string_view kReleased = "released";
inline constexpr Numerics kReleasedNumerics{.weights = WeightType::bf16,
                                            .act = ActType::bf16,
                                            .regime = Regime::f32,
                                            .schedule = Schedule::ring,
                                            .acc = FloatType::bf16,
                                            .wire = FloatType::bf16};

/// A key of a case line that sets one field of Numerics.
struct NumericsKey {
  std::string_view name;
  std::string_view words;  ///< "group, ring, tree"; the first is the default
  std::string_view (*get)(const Numerics& numerics);
  /// Throws Error("case_numerics", ...) naming the legal words.
  void (*set)(std::string_view key, Numerics& numerics, std::string_view word);
};
/// Returns the keys in the order in which a case line prints them.
std::span<const NumericsKey> numerics_keys();

/// Words as a case line writes them. The parse_* functions throw Error("case_numerics", ...) naming
/// the legal words.
std::string_view to_string(WeightType);
std::string_view to_string(ActType);
std::string_view to_string(Regime);
std::string_view to_string(Schedule);
std::string_view to_string(Loop);
std::string_view to_string(FloatType);
WeightType parse_weight_type(std::string_view word);
ActType parse_act_type(std::string_view word);
Regime parse_regime(std::string_view word);
Schedule parse_schedule(std::string_view word);
Loop parse_loop(std::string_view word);

}  // namespace shardproof
