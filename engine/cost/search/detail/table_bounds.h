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

/// What a part of a layer asks of one chip at least. Infinite communication: there is no such
/// program.
struct Floor {
  double flops = 0.0;
  double needed_flops = 0.0;   ///< of those (PartWork::needed_flops)
  double reads = 0.0;          ///< bytes of weights and caches
  double communication = 0.0;  ///< seconds, steps of rings included
  double held = 0.0;           ///< bytes of weights and caches that rest on the chip
  double live = 0.0;  ///< the most bytes that values hold at one time: parts have it by turns

  Floor& operator+=(const Floor& other);
  /// The smaller of each.
  Floor least(const Floor& other) const;
};

/// Lower bounds of the parts of a layer under a table. A layer asks for the sum of its three parts,
/// since each depends on some of the table's choices alone. None is above what the table's program
/// asks (engine/cost/work/work.h): every value is made, moved and read as the table says, each move
/// by the fastest sequence there is.
class TableBounds {
 public:
  TableBounds(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
              const Pass& pass, const Chip& chip);

  /// Norms, the stream's moves, weights and the products that end in the stream.
  Floor stream(const StreamChoice& stream, const WeightChoice& weights);
  /// Queries, keys, values, attention and what it hands on, where contractions take the rows as
  /// `rows` has B and L.
  Floor attention(const Layout& rows, const Axes& e, const Axes& h, const Layout& attend);
  /// Gate, up and hidden.
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
