#pragma once

#include <cstdint>
#include <string_view>

#include "engine/layout/torus.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// The paper's formulas as printed, from a model's sizes alone: a feed-forward layer of two
/// matrices, (K−1)/K taken as 1, attention's projections left out. engine/cost/work/work.h counts
/// what the programs move. E is d_model, F d_ff, n the number of chips, BL the batch in tokens.

/// How the feed-forward layer is partitioned (paper section 3.2).
enum class FfnLayout { ws1d, ws2d, wg_x, wg_xy, wg_xyz };
/// "ws1d", "ws2d", "wg-x", "wg-xy", "wg-xyz".
std::string_view to_string(FfnLayout layout);
/// How attention is partitioned (paper section 3.3).
enum class AttentionLayout { heads, batch };
std::string_view to_string(AttentionLayout layout);

/// Elements that one chip gathers or reduces in the feed-forward layer of one pass.
struct FfnVolume {
  double weights = 0.0;    ///< independent of the batch
  double per_token = 0.0;  ///< activations, per token

  double elements(double tokens) const { return weights + per_token * tokens; }
  double bytes(double tokens, double weight_bytes, double activation_bytes) const {
    return weights * weight_bytes + per_token * tokens * activation_bytes;
  }
};

/// Returns the volume of paper sections 3.2.1 to 3.2.3: 2E a token (1D); 2(E/X + F/YZ) (2D); with
/// weights gathered over N chips 2EF·N/n plus 2E/N a token; over all chips 0 a token (Figure A.2c
/// has no collective of activations there).
FfnVolume ffn_volume(FfnLayout layout, std::int64_t E, std::int64_t F, const Torus& torus);
/// Returns the number of blocks into which the layout shards the batch: 1, X, XY or XYZ.
int batch_blocks(FfnLayout layout, const Torus& torus);
/// Returns the number of tokens at which two layouts move as many bytes, with weights and
/// activations of one width; if `a` gathers less of the weights, it moves fewer bytes below that
/// number. Infinite if the two never move as many.
double crossover(const FfnVolume& a, const FfnVolume& b);

/// Returns the X of n chips at which 2D weight-stationary moves least, sqrt(nE/F): 0.5·sqrt(n) at F
/// = 4E (paper section A.2.1).
double best_x(double chips, double E, double F);
/// Returns the elements a token that 2D weight-stationary moves at best_x: 4·sqrt(EF/n).
double least_ws2d(double chips, double E, double F);
/// Returns the number of chips to gather weights over, sqrt(BL·n/F) (paper section A.2.2).
double best_gathered(double chips, double F, double tokens);
/// Returns the elements moved when weights are gathered over best_gathered chips: 4E·sqrt(BL·F/n).
double least_gathered(double chips, double E, double F, double tokens);

/// How the caches of attention are sharded (paper section 3.3).
enum class CacheLayout { multihead, multiquery_heads, multiquery_batch };

/// The sizes of a model that determine its caches.
struct CacheSizes {
  std::int64_t layers = 1, H = 1, Q = 1;
  double element_bytes = 2.0;
};

/// Bytes of K and V on one chip. Multihead: the heads sharded over the chips, one on each if there
/// are more chips than heads. Multiquery over heads: a replica on each chip. Multiquery over the
/// batch: the rows sharded, at least one on a chip.
double cache_bytes(const CacheSizes& sizes, CacheLayout layout, int chips, std::int64_t B,
                   double context);
/// Returns the context whose caches fill `bytes` bytes of each chip.
double longest_context(const CacheSizes& sizes, CacheLayout layout, int chips, std::int64_t B,
                       double bytes);

/// Returns 2N FLOPs a token over all chips' peak in that time, without attention (paper section 2).
double mfu(double parameters, double tokens, int chips, double peak, double seconds);
/// Returns the chip-seconds a token (paper section 4.4).
double chip_seconds(double tokens, int chips, double seconds);
/// Returns the chip-seconds a token computed from the MFU: 2N/(peak·MFU).
double chip_seconds_of_mfu(double parameters, double peak, double mfu);

}  // namespace shardproof::cost
