#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weights/base/number_format.h"
#include "weights/model/model_config.h"

namespace shardproof::rerun {

/// A step of a formula that may round to the format of values, besides the stores of docs/spec.md.
enum class Place : std::uint8_t {
  embed_scale,
  mean,
  centered,
  root,
  normed,
  gained,
  tables,
  turned,
  product_of_score,
  score,
  difference,
  exponential,
  probability,
  inner,
  activated,
  sum,
  each_addition,
  logits
};
struct PlaceRow {
  Place place;
  /// "norm", "xr": the row of weights/model/rounding_places.h. Logits round if residuals do.
  std::string_view formula, key;
};
std::span<const PlaceRow> all_places();

/// The places that round (`on`), and those that each run draws (`drawn`).
struct Places {
  std::uint32_t on = 0, drawn = 0;

  bool has(Place p) const { return (on >> static_cast<unsigned>(p) & 1U) != 0; }
  void set(Place p, bool each_run_draws = false) {
    (each_run_draws ? drawn : on) |= 1U << static_cast<unsigned>(p);
  }
};
/// The three sets: no place (docs/spec.md alone); those of the set "hf"; every one, drawn by each
/// run.
inline Places spec_places() { return {}; }
Places hf_places();
Places any_places();

/// The arithmetic of a rerun. Sums and all operations are f32, or f64 if values are.
struct Arithmetic {
  NumberFormat values = NumberFormat::f32;
  Places places = {};
  NumberFormat sums = NumberFormat::f32;  ///< of W matrices: rounding of each addition
  /// How often a partial sum of a W matrix is rounded when it is sent, and to which format.
  int wire_roundings = 0;
  NumberFormat wire = NumberFormat::bf16;
  /// True if a number kept in fewer digits than f32 rounds up or down at random, with probability
  /// by distance. A run that rounds to nearest gives most such numbers as the exact regime does,
  /// and few to the other side; a few runs may give none of those, where another gives one.
  bool by_chance = false;
};

/// Returns true if some number of a run is kept in fewer digits than sums are.
bool rounds_coarsely(const Arithmetic& arithmetic, const ModelConfig& config);

/// Returns the spacing of the format around v; 0 for f32 and f64.
double step_of(double v, NumberFormat kept);
/// Rounds to nearest even. f16 includes subnormals and overflow to infinity.
float rounded(float v, NumberFormat kept);
/// Rounds as for f32; only Precision::f64 differs.
double rounded(double v, NumberFormat kept);

}  // namespace shardproof::rerun
