#pragma once

#include <array>
#include <span>
#include <string_view>

#include "weights/base/error.h"
#include "weights/base/number_format.h"

namespace shardproof {

/// The formats in which the W matrices and the embedding table are stored (docs/spec.md section 1),
/// by the words of a case line.
inline constexpr std::array kWeightFormats{NumberFormat::f32, NumberFormat::bf16,
                                           NumberFormat::int8};
/// The formats of activations, the rounding st() of docs/spec.md section 1; those in which sums
/// accumulate, and in which partial sums travel.
inline constexpr std::array kFloatFormats{NumberFormat::f32, NumberFormat::bf16};
/// Meaning of numbers and contractions: the correctly rounded exact sum, one declared f32 order, or
/// elements of a finite field instead of floats (docs/field.md).
enum class Regime { exact, f32, field };

/// The order in which a collective adds partial sums in the f32 regime (docs/spec.md section 1.2).
enum class Schedule { group, ring, tree, biring };

/// Looped collective einsums (paper §3.5), by how the chunks travel round their ring: one way,
/// whole chunks both ways, or half chunks each in its own direction (docs/spec.md section 1.2).
enum class Loop { none, one_way, both_full, both_half };

/// The choices of arithmetic (docs/spec.md section 1.6).
struct Numerics {
  NumberFormat weights = NumberFormat::f32;
  NumberFormat act = NumberFormat::f32;
  Regime regime = Regime::exact;
  Schedule schedule = Schedule::group;    ///< regime=f32 only
  Loop loop = Loop::none;                 ///< every layer arrow that can be looped
  NumberFormat acc = NumberFormat::f32;   ///< regime=f32 only: sums of W matrices
  NumberFormat wire = NumberFormat::f32;  ///< partial sums in transit; bits in regime=f32 only
  bool operator==(const Numerics&) const = default;
};

/// Throws Error("case_numerics", ...) if the choices are incompatible: a schedule other than group,
/// or acc=bf16, without regime=f32; wire=bf16 with regime=field; a format that its key does not
/// take.
void validate(const Numerics& numerics);

/// The rounding points of the paper's code, numerics=released; with them goes the model's
/// cache=bf16 (docs/spec.md section 1.7).
inline constexpr std::string_view kReleased = "released";
inline constexpr Numerics kReleasedNumerics{.weights = NumberFormat::bf16,
                                            .act = NumberFormat::bf16,
                                            .regime = Regime::f32,
                                            .schedule = Schedule::ring,
                                            .acc = NumberFormat::bf16,
                                            .wire = NumberFormat::bf16};

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
std::string_view to_string(Regime);
std::string_view to_string(Schedule);
std::string_view to_string(Loop);
NumberFormat parse_weight_format(std::string_view word);
NumberFormat parse_act_format(std::string_view word);
Regime parse_regime(std::string_view word);
Schedule parse_schedule(std::string_view word);
Loop parse_loop(std::string_view word);

}  // namespace shardproof
