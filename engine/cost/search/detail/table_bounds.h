#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/search/detail/table_space.h"
#include "engine/cost/work/bounds.h"
#include "engine/cost/work/detail/path_floors.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// Lower bounds on one chip's work for a part of a layer. Infinite communication means that no such
/// program exists.
struct Floor {
  double flops = 0.0;
  double needed_flops = 0.0;   ///< of `flops` (PartWork::needed_flops)
  double reads = 0.0;          ///< bytes of weights and caches
  double communication = 0.0;  ///< seconds, ring steps included
  double held = 0.0;           ///< bytes of resident weights and caches
  double live = 0.0;           ///< peak bytes of values; parts hold theirs in turn

  Floor& operator+=(const Floor& other);
  /// Returns the component-wise minimum.
  Floor least(const Floor& other) const;
};

/// Lower bounds of the parts of a layer under a table. A layer needs the sum of its three parts,
/// since each depends on only some of the table's choices. No bound exceeds the cost of the table's
/// program (engine/cost/work/work.h): every value is produced, moved and read as the table says,
/// and each move takes the fastest sequence of collectives.
class TableBounds {
 public:
  TableBounds(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
              const Pass& pass, const Chip& chip);

  /// Bounds of norms, the stream's moves, weights, and the products whose result is in the stream.
  Floor stream(const StreamChoice& stream, const WeightChoice& weights);
  /// Bounds of queries, keys, values, attention and its output; the contractions' operands have B
  /// and L sharded as in `rows`.
  Floor attention(const Layout& rows, const Axes& e, const Axes& h, const Layout& attend);
  /// Bounds of gate, up and hidden.
  Floor ffn(const Layout& rows, const Axes& e, const Axes& f, const Layout& hidden);

  Seconds seconds(const Floor& floor) const;

 private:
  Axes of_heads(const Axes& h) const;
  Axes unused(const std::vector<Axes>& used) const;
  double shards(const std::vector<Axes>& used) const;
  double sliced(const std::vector<Axes>& used, const Layout& from, const Layout& to) const;
  double made(double elements, const Axes& partial) const;
  Floor norm(const Layout& at) const;
  Floor matrices(const WeightChoice& weights);
  double to_rows(PathFloors& paths, const Layout& from, const Layout& to, const Axes& free) const;

  ModelConfig model_;
  Numerics numerics_;
  Torus torus_;
  Pass pass_;
  Chip chip_;
  double per_flop_ = 0.0, per_byte_ = 0.0;
  bool gated_ = false, norm_bias_ = false;
  double channels_ = 0.0;  ///< elements of biases and scales
  PathFloors stream_, output_, queries_, keys_, attended_, wide_, hidden_, heads_weight_,
      keys_weight_, ffn_weight_;
};

}  // namespace shardproof::cost
