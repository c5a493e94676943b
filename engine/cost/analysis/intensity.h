#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cost/chip/chip.h"
#include "engine/cost/formulas/pass.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// Where the second factor of a product comes from.
enum class Factor { weight, cache };

/// Equal products of a matrix n×k and a matrix k×m, of one kind of operator, in a whole pass.
struct Product {
  std::string name;  ///< "wq", "q k^T"
  Factor factor = Factor::weight;
  double n = 1.0, k = 1.0, m = 1.0;
  double times = 1.0;    ///< how often in a pass: matrices times layers, or times rows and heads
  bool of_layer = true;  ///< false of the unembedding
  double seen = 1.0;     ///< share of its FLOPs that the causal mask leaves

  /// 2·n·k·m for each: a multiplication and an addition are two.
  double flops() const { return 2.0 * n * k * m * times; }
  /// Those that no run does without.
  double needed_flops() const { return seen * flops(); }
  /// Memory operations: elements of both factors read and of the result written once, nk + km + nm.
  double elements() const { return (n * k + k * m + n * m) * times; }
  /// Those of the second factor alone, weights or cached keys and values: km.
  double factor_elements() const { return k * m * times; }
  /// FLOPs for each element: 2nkm/(nk + km + nm).
  double intensity() const { return flops() / elements(); }
};

/// What elements take, in bytes.
struct ElementBytes {
  double weights = 2.0;      ///< of a W matrix
  double activations = 2.0;  ///< of activations and of cached keys and values
  double embeddings = 2.0;   ///< of embedding and unembedding
};
/// Of such W matrices, with the embeddings beside them (engine/cost/formulas/embeddings.h), and
/// activations.
ElementBytes element_bytes(WeightType weights, WeightType activations);
/// Bytes of an element of a type: 4, 2 or 1.
double bytes_of_type(WeightType type);

/// Which pass it is of which products are wanted: `batch` sequences of `tokens` new positions each,
/// which attend to `context` positions, the new ones among them.
struct IntensityPass {
  std::int64_t batch = 1, tokens = 1, context = 1;
};
/// The same with the positions that are cached already. Throws Error("intensity_c1", ...) on
/// extents below 1, or more tokens than context.
Pass pass_of(const IntensityPass& pass);

/// The products of one pass of the model: projections, attention, FFN, unembedding (of one position
/// of each sequence). Norms, softmax and activation functions are none. Attention is the whole
/// rectangle of tokens × context, with the share of it that the causal mask leaves: scores n×d
/// times d×l, values n×l times l×d, where the H/K query heads of a key head are rows of one
/// product. Throws what pass_of throws.
std::vector<Product> products_of(const ModelConfig& model, const IntensityPass& pass);

/// Of several products together.
struct ProductSum {
  double flops = 0.0, elements = 0.0, factor_elements = 0.0, bytes = 0.0;
};
double bytes_of(const Product& product, const ElementBytes& bytes);
/// Of its second factor alone.
double factor_bytes(const Product& product, const ElementBytes& bytes);
ProductSum sum_of(const std::vector<Product>& products, const ElementBytes& bytes);
/// Without the unembedding: the products of layers.
std::vector<Product> of_layers(const std::vector<Product>& products);

/// FLOPs a byte from which on the chip's peak is the limit: peak / bandwidth of its memory.
/// Throws Error("chip_c7", ...) where the chip states no peak of the type.
double ridge_point(const Chip& chip, WeightType type);

/// What limits the chip, and how long it takes, where factors are read and results written once
/// (roofline).
struct Roofline {
  double flops_per_byte = 0.0;
  double compute_seconds = 0.0;  ///< FLOPs at peak
  double memory_seconds = 0.0;   ///< bytes at the memory's bandwidth

  bool compute_bound() const { return compute_seconds >= memory_seconds; }
  double seconds() const { return compute_bound() ? compute_seconds : memory_seconds; }
};
Roofline roofline_of(double flops, double bytes, const Chip& chip, WeightType type);
/// What no run of these products on one chip is faster than: the FLOPs that the causal mask leaves,
/// and weights and caches alone, read or written once; other operands need not leave the chip.
Roofline least_of(const std::vector<Product>& products, const ElementBytes& bytes, const Chip& chip,
                  WeightType type);

}  // namespace shardproof::cost
