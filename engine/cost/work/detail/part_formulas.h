#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/cost/formulas/detail/monomial.h"
#include "engine/cost/graph/graph.h"
#include "engine/cost/work/work.h"
#include "engine/program/program.h"
#include "engine/run/plan_types.h"

namespace shardproof::cost {

/// Traffic with its buffer as a formula.
struct TrafficFormula {
  Traffic traffic;              ///< its step, kind and group
  Monomial buffer;              ///< elements
  double sent = 0.0, of = 1.0;  ///< one chip sends `sent` elements per `of` of its buffer
  int wire_bytes = 4;
};

/// A contraction of a text with a weight or with what a cache holds, of which a part may exist.
struct TextProduct {
  bool weight = false;
  std::string line, factor;  ///< in the flat form; the weight or the cache
  Monomial flops, bytes;     ///< of all pairs and slots, of all experts
};

/// The counts of PartWork, as formulas.
struct PartFormulas {
  Polynomial matmul_flops, attention_flops, needed_flops, weight_bytes, weight_reads, cache_bytes,
      cache_reads, activation_bytes;
  std::vector<Polynomial> live;  ///< after each op
  std::vector<TrafficFormula> traffic;
  std::vector<TextProduct> text_products;
  std::vector<CacheOfLayers> caches;  ///< of one layer

  /// `products` are those of the text's layer, or of its ends, in this pass.
  PartWork at(const Pass& pass, const std::vector<GraphProduct>& products = {}) const;
};

/// The programs of a pass whose costs are added up.
struct CostSetting {
  const Torus& torus;
  const Numerics& numerics;
  const ModelConfig& model;
  const Pass& like;
};

/// Adds one chip's work and memory for one program to `part`, but weights that all layers share to
/// `ends`. `resting` maps each resident weight so far to its bytes on the chip: of a layer's those
/// of `layers` layers. `last`: of L one position counts.
void add_costs(const Program& program, const ValueTypes& types, const CostSetting& setting,
               double layers, bool last, PartFormulas& part, PartFormulas& ends,
               std::map<std::string, double>& resting);

}  // namespace shardproof::cost
