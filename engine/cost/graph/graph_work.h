#pragma once

#include <cstdint>

#include "engine/cost/formulas/pass.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/text/text_model.h"

namespace shardproof::cost {

/// Returns the number of lines of a layer, on average, whose contraction with a weight gives the
/// stream's E: each is reduced over the chips that share it.
double reductions_of_layer(const TextModel& model);

/// The work of one pass on one chip that holds the whole model.
struct GraphWork {
  /// Products of all layers, or of embedding and head.
  struct Part {
    double needed_flops = 0.0;  ///< of the products, where they exist
    /// Bytes of what products read, and of gains and biases; a weight of the model that layers read
    /// counts in each.
    double weight_reads = 0.0;
    double cache_reads = 0.0;  ///< bytes of the slots that some new position sees
  };
  Part layers, ends;
  std::int64_t count = 1;  ///< of layers
  double weight_bytes = 0.0;
  double table_bytes = 0.0;  ///< of them those of tables that no product reads
  double cache_bytes = 0.0;  ///< for all positions

  double total(double Part::*what) const { return layers.*what + ends.*what; }
  /// Returns the seconds at so many of the unit in a second, layer by layer as a plan adds them.
  double seconds(double Part::*what, double rate) const {
    const auto n = static_cast<double>(count);
    return n * (layers.*what / n / rate) + ends.*what / rate;
  }
  /// Returns the seconds in which a memory gives all that is read.
  double memory_seconds(double bandwidth) const;
};
/// W matrices have type `weights`, tables the type beside it (engine/cost/formulas/embeddings.h),
/// all else f32; caches have type `act`, unless the model's keys say another.
GraphWork graph_work(const ModelConfig& model, NumberFormat weights, NumberFormat act,
                     const Pass& pass);

}  // namespace shardproof::cost
