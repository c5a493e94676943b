#pragma once

#include <cstdint>
#include <string_view>

#include "engine/layout/torus.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// The formulas as the paper prints them, by the sizes of a model alone: a feed-forward layer of
/// two matrices, (K−1)/K taken as 1, attention's projections left out. What the programs move is
/// in engine/cost/work/work.h. E d_model, F d_ff, n chips, BL the batch in tokens.

/// How the feed-forward layer is partitioned (paper section 3.2).
enum class FfnLayout { ws1d, ws2d, wg_x, wg_xy, wg_xyz };
/// "ws1d", "ws2d", "wg-x", "wg-xy", "wg-xyz".
std::string_view to_string(FfnLayout layout);
/// How attention is (paper section 3.3).
enum class AttentionLayout { heads, batch };
std::string_view to_string(AttentionLayout layout);

/// Elements that one chip gathers or reduces in the feed-forward layer of one pass.
struct FfnVolume {
  double weights = 0.0;    ///< whatever the batch
  double per_token = 0.0;  ///< activations, for each token

  double elements(double tokens) const { return weights + per_token * tokens; }
  double bytes(double tokens, double weight_bytes, double activation_bytes) const {
    return weights * weight_bytes + per_token * tokens * activation_bytes;
  }
};

/// Paper sections 3.2.1 to 3.2.3: 2E a token (1D); 2(E/X + F/YZ) (2D); with weights gathered over N
/// chips 2EF·N/n and 2E/N a token, over all of them none a token (Figure A.2c has no collective of
/// activations there).
FfnVolume ffn_volume(FfnLayout layout, std::int64_t E, std::int64_t F, const Torus& torus);
/// The blocks that the layout shards the batch into: 1, X, XY or XYZ.
int batch_blocks(FfnLayout layout, const Torus& torus);
/// The tokens at which two layouts move as many bytes, weights and activations of one width; below
/// them the first moves fewer where `a` gathers less of the weights. Infinite where they never do.
double crossover(const FfnVolume& a, const FfnVolume& b);

/// The X of n chips at which 2D weight-stationary moves least, sqrt(nE/F): 0.5·sqrt(n) at F = 4E
/// (paper section A.2.1).
double best_x(double chips, double E, double F);
/// The elements a token that it moves then: 4·sqrt(EF/n).
double least_ws2d(double chips, double E, double F);
/// The chips to gather weights over, sqrt(BL·n/F) (paper section A.2.2).
double best_gathered(double chips, double F, double tokens);
/// The elements that are moved then: 4E·sqrt(BL·F/n).
double least_gathered(double chips, double E, double F, double tokens);

/// Who holds the caches of attention (paper section 3.3).
enum class CacheLayout { multihead, multiquery_heads, multiquery_batch };

/// What is needed of a model to count its caches.
struct CacheSizes {
  std::int64_t layers = 1, H = 1, Q = 1;
  double element_bytes = 2.0;
};

/// Bytes of K and V on one chip. Multihead: the heads sharded over the chips, one on each where
/// there are more chips than heads; multiquery over heads: a copy on each chip; over the batch:
/// the rows sharded, at least one on a chip.
double cache_bytes(const CacheSizes& sizes, CacheLayout layout, int chips, std::int64_t B,
                   double context);
/// The context whose caches fill so many bytes of each chip.
double longest_context(const CacheSizes& sizes, CacheLayout layout, int chips, std::int64_t B,
                       double bytes);

/// 2N FLOPs a token over what the chips could do in that time; attention is left out (paper
/// section 2).
double mfu(double parameters, double tokens, int chips, double peak, double seconds);
/// Chip-seconds a token (paper section 4.4).
double chip_seconds(double tokens, int chips, double seconds);
/// The same from the MFU: 2N/(peak·MFU).
double chip_seconds_of_mfu(double parameters, double peak, double mfu);

/// Elements of the model's matrices and of its embedding: what its name counts. Gains, biases and
/// tables of positions are left out.
double matrix_parameters(const ModelConfig& model);

}  // namespace shardproof::cost
