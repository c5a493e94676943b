#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weights/model/model_config.h"

namespace shardproof::rerun {

/// What a number is kept as.
enum class Kept { f32, bf16, f16, f64 };

/// A place of a formula that may round to what values are kept as, besides where docs/spec.md
/// stores.
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
  std::string_view formula, key;  ///< "norm", "xr": as a declaration of `rounding` names it
  bool hf;                        ///< whether a common public library rounds there
};
std::span<const PlaceRow> all_places();

/// Which places round, and which each run draws.
struct Places {
  std::uint32_t on = 0, drawn = 0;

  bool has(Place p) const { return (on >> static_cast<unsigned>(p) & 1U) != 0; }
  void set(Place p, bool each_run_draws = false) {
    (each_run_draws ? drawn : on) |= 1U << static_cast<unsigned>(p);
  }
};
/// None: those of docs/spec.md alone; those of that library; each drawn.
inline Places spec_places() { return {}; }
Places hf_places();
Places any_places();

/// How a run is made again. Sums and all operations are f32, or f64 where values are.
struct Arithmetic {
  Kept values = Kept::f32;
  Places places = {};
  Kept sums = Kept::f32;  ///< of W matrices: what each addition is rounded to
  /// How often a partial sum of a W matrix is rounded on its way, and to what.
  int wire_roundings = 0;
  Kept wire = Kept::bf16;
  /// Whether a number that is kept in fewer digits than f32 goes up or down by chance, as likely as
  /// it is near. A run that rounds to nearest has most such numbers as the exact regime has them,
  /// and few in the other direction: of those a few runs may have none, where another has one.
  bool by_chance = false;
};

/// Whether some number of a run is kept in fewer digits than sums are.
bool rounds_coarsely(const Arithmetic& arithmetic, const ModelConfig& config);

/// The distance of neighbours of the format around v; 0 of f32 and f64.
double step_of(double v, Kept kept);
/// To nearest even. f16 has its subnormals, and its overflow to infinity.
float rounded(float v, Kept kept);
/// Of f64 alone another than the f32's.
double rounded(double v, Kept kept);

}  // namespace shardproof::rerun
