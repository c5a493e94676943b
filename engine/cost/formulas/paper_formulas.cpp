#include "engine/cost/formulas/paper_formulas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "weights/base/detail/word_table.h"

namespace shardproof::cost {
namespace {

struct Extent {
  double X, Y, Z, n;
};

Extent extent_of(const Torus& torus) {
  return {static_cast<double>(torus.size(Axis::x)), static_cast<double>(torus.size(Axis::y)),
          static_cast<double>(torus.size(Axis::z)), static_cast<double>(torus.chips())};
}

/// Returns rows times heads whose K and V one chip holds.
double held_rows(const CacheSizes& sizes, CacheLayout layout, int chips, std::int64_t B) {
  const auto rows = static_cast<double>(B);
  const auto n = static_cast<double>(chips);
  switch (layout) {
    case CacheLayout::multihead:
      return rows * std::max(1.0, static_cast<double>(sizes.H) / n);
    case CacheLayout::multiquery_heads:
      return rows;
    case CacheLayout::multiquery_batch:
      break;
  }
  return std::ceil(rows / n);
}

/// Bytes of one position of one row and head, in all layers.
double position_bytes(const CacheSizes& sizes) {
  return 2.0 * static_cast<double>(sizes.layers) * static_cast<double>(sizes.Q) *
         sizes.element_bytes;
}

constexpr std::pair<std::string_view, FfnLayout> kFfnLayouts[] = {{"ws1d", FfnLayout::ws1d},
                                                                  {"ws2d", FfnLayout::ws2d},
                                                                  {"wg-x", FfnLayout::wg_x},
                                                                  {"wg-xy", FfnLayout::wg_xy},
                                                                  {"wg-xyz", FfnLayout::wg_xyz}};

}  // namespace

std::string_view to_string(FfnLayout layout) { return word_in(kFfnLayouts, layout); }

std::string_view to_string(AttentionLayout layout) {
  return layout == AttentionLayout::heads ? "heads" : "batch";
}

FfnVolume ffn_volume(FfnLayout layout, std::int64_t model_dim, std::int64_t hidden_dim,
                     const Torus& torus) {
  const auto [X, Y, Z, n] = extent_of(torus);
  const auto E = static_cast<double>(model_dim), F = static_cast<double>(hidden_dim);
  switch (layout) {
    case FfnLayout::ws1d:
      return {0.0, 2.0 * E};
    case FfnLayout::ws2d:
      return {0.0, 2.0 * (E / X + F / (Y * Z))};
    case FfnLayout::wg_x:
      return {2.0 * E * F * X / n, 2.0 * E / X};
    case FfnLayout::wg_xy:
      return {2.0 * E * F * X * Y / n, 2.0 * E / (X * Y)};
    case FfnLayout::wg_xyz:
      break;
  }
  return {2.0 * E * F, 0.0};
}

int batch_blocks(FfnLayout layout, const Torus& torus) {
  switch (layout) {
    case FfnLayout::ws1d:
    case FfnLayout::ws2d:
      return 1;
    case FfnLayout::wg_x:
      return torus.size(Axis::x);
    case FfnLayout::wg_xy:
      return torus.size(Axis::x) * torus.size(Axis::y);
    case FfnLayout::wg_xyz:
      break;
  }
  return torus.chips();
}

double crossover(const FfnVolume& a, const FfnVolume& b) {
  const double per_token = a.per_token - b.per_token;
  const double tokens = (b.weights - a.weights) / per_token;
  return per_token != 0.0 && tokens >= 0.0 ? tokens : std::numeric_limits<double>::infinity();
}

double best_x(double chips, double E, double F) { return std::sqrt(chips * E / F); }
double least_ws2d(double chips, double E, double F) { return 4.0 * std::sqrt(E * F / chips); }
double best_gathered(double chips, double F, double tokens) {
  return std::sqrt(tokens * chips / F);
}
double least_gathered(double chips, double E, double F, double tokens) {
  return 4.0 * E * std::sqrt(tokens * F / chips);
}

double cache_bytes(const CacheSizes& sizes, CacheLayout layout, int chips, std::int64_t B,
                   double context) {
  return held_rows(sizes, layout, chips, B) * context * position_bytes(sizes);
}

double longest_context(const CacheSizes& sizes, CacheLayout layout, int chips, std::int64_t B,
                       double bytes) {
  return std::floor(bytes / cache_bytes(sizes, layout, chips, B, 1.0));
}

double mfu(double parameters, double tokens, int chips, double peak, double seconds) {
  return 2.0 * parameters * tokens / (chips * peak * seconds);
}
double chip_seconds(double tokens, int chips, double seconds) { return chips * seconds / tokens; }
double chip_seconds_of_mfu(double parameters, double peak, double mfu) {
  return 2.0 * parameters / (peak * mfu);
}

}  // namespace shardproof::cost
