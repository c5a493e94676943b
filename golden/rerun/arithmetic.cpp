#include "golden/rerun/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "weights/base/bf16.h"
#include "weights/model/rounding_places.h"
#include "weights/text/rules.h"
#include "weights/text/text_model.h"

namespace shardproof::rerun {
namespace {

/// Rounds by adding a number whose last bit is the f16's: the bits below it are rounded off.
float round_to_f16(float v) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  constexpr float kLeastNormal = 0x1p-14F, kOverflow = 65520.0F;
  const float size = std::abs(v);
  if (!(size < kOverflow)) return std::isnan(v) ? v : std::copysign(INFINITY, v);
  const float power = std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) & kExponent);
  const float large = 0x1.8p13F * (power < kLeastNormal ? kLeastNormal : power);
  return std::copysign((size + large) - large, v);
}

constexpr PlaceRow kPlaces[] = {{Place::embed_scale, "embed", "scale"},
                                {Place::mean, "norm", "mu"},
                                {Place::centered, "norm", "d"},
                                {Place::root, "norm", "r"},
                                {Place::normed, "norm", "xr"},
                                {Place::gained, "norm", "xrg"},
                                {Place::tables, "rope", "tables"},
                                {Place::turned, "rope", "products"},
                                {Place::product_of_score, "score", "qk"},
                                {Place::score, "attn", "scores"},
                                {Place::difference, "exp", "difference"},
                                {Place::exponential, "attn", "exp"},
                                {Place::probability, "attn", "probs"},
                                {Place::inner, "hidden", "inner"},
                                {Place::activated, "hidden", "act"},
                                {Place::sum, "sum", "s"},
                                {Place::each_addition, "out", "each"},
                                {Place::logits, "out", "each"}};

}  // namespace

std::span<const PlaceRow> all_places() { return kPlaces; }

Places hf_places() {
  Places places;
  for (const PlaceRow& row : kPlaces)
    for (const RoundingPlace* const place : places_of(row.formula))
      if (place->key == row.key && place->hf != HfRounds::no)
        places.set(row.place, place->hf == HfRounds::open);
  return places;
}

Places any_places() {
  Places places;
  for (const PlaceRow& row : kPlaces) places.set(row.place, true);
  return places;
}

bool rounds_coarsely(const Arithmetic& arithmetic, const ModelConfig& config) {
  const auto coarse = [](NumberFormat kept) {
    return kept == NumberFormat::bf16 || kept == NumberFormat::f16;
  };
  const TextModel* const text = text_model(config);
  return coarse(arithmetic.values) || config.cache == NumberFormat::bf16 ||
         (text != nullptr && has_any(text->flat(), {ModelOp::bf16}));
}

double step_of(double v, NumberFormat kept) {
  if (kept != NumberFormat::bf16 && kept != NumberFormat::f16) return 0.0;
  const int digits = kept == NumberFormat::bf16 ? 7 : 10,
            least = kept == NumberFormat::bf16 ? -126 : -14;
  const int power = v == 0 || !std::isfinite(v) ? least : std::max(std::ilogb(v), least);
  return std::ldexp(1.0, power - digits);
}

float rounded(float v, NumberFormat kept) {
  switch (kept) {
    case NumberFormat::bf16:
      return round_to_bf16(v);
    case NumberFormat::f16:
      return round_to_f16(v);
    default:
      break;
  }
  return v;
}

double rounded(double v, NumberFormat kept) {
  return kept == NumberFormat::f64 ? v : static_cast<double>(rounded(static_cast<float>(v), kept));
}

}  // namespace shardproof::rerun
