#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/torus.h"
#include "engine/layouts/table.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// The residual stream of a table: its layout `in`, and the layout `taken` that contractions read;
/// with norm_first, the norm is computed in `in` and its result moved to `taken`.
struct StreamChoice {
  Layout in, taken;
  bool norm_first = false;
};

/// The W matrices of a table: the subscripts of E, F and H in use and resident.
struct WeightChoice {
  Axes e, f, h;
  Axes rest_e, rest_f, rest_h;
};

/// Every table over the torus for one pass of a model: for each of `in`, `weights`, `attend` and
/// `hidden`, every layout over the axes of more than one chip that divides the model and the batch.
///
/// - The stream is used as it is, or with a suffix of some subscripts gathered; the norm is
///   computed there, or before.
/// - Weights are resident as used, or with axes that their use leaves free appended, in the order
///   zyx, each either to E or to F and H.
/// - L is sharded only in a prefill.
///
/// The terms of a parallel block are partial over the same axes, so F and H have the same ones; in
/// a serial block they may differ.
class TableSpace {
 public:
  TableSpace(const ModelConfig& model, const Torus& torus, const Pass& pass);

  const std::vector<StreamChoice>& streams() const { return streams_; }
  const std::vector<WeightChoice>& weights() const { return weights_; }
  const std::vector<Layout>& attends() const { return attends_; }
  const std::vector<Layout>& hiddens() const { return hiddens_; }

  /// Returns true if contractions can combine the stream and the weights: no axis is used twice.
  static bool fit(const StreamChoice& stream, const WeightChoice& weights);
  /// Returns the table of these choices, named "searched".
  LayoutTable table(const StreamChoice& stream, const WeightChoice& weights, const Layout& attend,
                    const Layout& hidden) const;
  /// Returns the number of tables, without those that fit() rejects.
  double size() const;

 private:
  std::vector<StreamChoice> streams_;
  std::vector<WeightChoice> weights_;
  std::vector<Layout> attends_, hiddens_;
};

}  // namespace shardproof::cost
