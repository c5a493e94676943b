#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/cost/graph/existence.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/text/text_model.h"

namespace shardproof::cost {

/// A contraction of a text's line with a weight, or with what caches hold, in one pass: equal
/// products of a matrix n×k and a matrix k×m.
struct GraphProduct {
  std::string name;           ///< the weight's, or else the line's
  std::string line;           ///< the line's in the flat form
  bool weight = true;         ///< the second factor is a weight; otherwise it is of the caches
  bool of_key_heads = false;  ///< it is a weight with the letter K
  TextSection section = TextSection::layer;
  double n = 1.0, k = 1.0, m = 1.0;
  double times = 1.0;   ///< in one layer
  double chosen = 1.0;  ///< share of n that a `top` leaves, which n is
  std::int64_t layers = 1;
  double pairs = 1.0;  ///< pairs of a new position and a slot that exist,
  double of = 1.0;     ///< of so many; 1 of 1 where all do
  double read = 1.0;   ///< share of the second factor's elements that what exists reads

  /// In all layers; the count is whole where n is.
  double needed_flops() const {
    return 2.0 * n * k * m * times * static_cast<double>(layers) / of * pairs;
  }
};

/// Returns the products of one pass of a text's model, in the order of its lines, `head` at the
/// last position of each row. A letter among which `top` chooses counts as so many products, each
/// of that share of n rows; of its weights those are read that tokens choose, if each chooses
/// evenly. Pointwise ops, sums and contractions of a value with itself are no products. Throws what
/// Existence::share_of throws.
std::vector<GraphProduct> graph_products(const TextModel& model, const Pass& pass);

/// Returns the products of one layer.
std::vector<GraphProduct> layer_products(const TextModel& model, std::int64_t layer,
                                         const Pass& pass);

/// The elements of a weight of a text, over all layers that have it.
struct WeightElements {
  std::string name;  ///< in weights files
  std::string letters;
  bool of_layer = false;
  TextWeightKind kind = TextWeightKind::matrix;
  std::int64_t elements = 0;
  std::int64_t layers = 1;
  /// Those that a token is multiplied with: of experts, the chosen ones'.
  double active = 0.0;
};
/// Returns the weights of a text, in its order.
std::vector<WeightElements> weight_elements(const TextModel& model);
/// Returns whether a weight is a parameter: tables of RoPE and ALiBi's slopes are not.
bool is_parameter(const WeightElements& weight);

/// Returns the elements of the matrices and tables that are parameters, the number in a model's
/// name: N of paper section 2.
double matrix_parameters(const ModelConfig& model);

/// Returns the elements that the caches of all layers hold for one position of one row.
std::int64_t cache_elements(const TextModel& model);

/// Returns a model's graph: a text's own, or the text that its keys are written as, where int8
/// matrices have scales.
std::shared_ptr<const TextModel> graph_of(const ModelConfig& model,
                                          NumberFormat weights = NumberFormat::f32);

}  // namespace shardproof::cost
