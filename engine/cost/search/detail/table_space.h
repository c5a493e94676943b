#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/torus.h"
#include "engine/layouts/table.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// The residual stream of a table: its layout, and that in which contractions take it, or, where
/// the norm is taken first, its norm.
struct StreamChoice {
  Layout in, taken;
  bool norm_first = false;
};

/// The W matrices of a table: the subscripts of E, F and H as they are used and as they rest.
struct WeightChoice {
  Axes e, f, h;
  Axes rest_e, rest_f, rest_h;
};

/// Every table over the torus for one pass of a model: of `in`, `weights`, `attend` and `hidden`
/// each layout over the axes of more than one chip that divides the model and the batch.
///
/// - The stream is taken as it is, or with a suffix of some subscripts collected; the norm is taken
///   there, or before.
/// - Weights rest as they are used, or with axes that their use leaves free appended, in the order
///   zyx: to E, or to F and H.
/// - L is sharded in a prefill alone.
///
/// The terms of a parallel block are partial over the same axes, so F and H have the same ones; in
/// a serial block they need not.
class TableSpace {
 public:
  TableSpace(const ModelConfig& model, const Torus& torus, const Pass& pass);

  const std::vector<StreamChoice>& streams() const { return streams_; }
  const std::vector<WeightChoice>& weights() const { return weights_; }
  const std::vector<Layout>& attends() const { return attends_; }
  const std::vector<Layout>& hiddens() const { return hiddens_; }

  /// Whether contractions can take the stream and the weights: no axis is used twice.
  static bool fit(const StreamChoice& stream, const WeightChoice& weights);
  /// The table of the choices, called "searched".
  LayoutTable table(const StreamChoice& stream, const WeightChoice& weights, const Layout& attend,
                    const Layout& hidden) const;
  /// How many tables there are, those left out that fit() leaves out.
  double size() const;

 private:
  std::vector<StreamChoice> streams_;
  std::vector<WeightChoice> weights_;
  std::vector<Layout> attends_, hiddens_;
};

}  // namespace shardproof::cost
