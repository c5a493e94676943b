#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cost/chip/chip.h"
#include "engine/cost/formulas/embeddings.h"
#include "engine/cost/formulas/pass.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// The source of the second factor of a product.
enum class Factor { weight, cache };

/// Equal products of a matrix n×k and a matrix k×m, for one kind of operator, in a whole pass.
struct Product {
  std::string name;  ///< "wq", "q k^T"
  Factor factor = Factor::weight;
  double n = 1.0, k = 1.0, m = 1.0;
  double times = 1.0;         ///< count in a pass: matrices times layers, or rows times heads
  bool of_layer = true;       ///< false for the unembedding
  double seen = 1.0;          ///< share of its FLOPs that the causal mask, or a window, leaves
  bool of_key_heads = false;  ///< the second factor is a weight with the letter K
  double read = 1.0;          ///< share of the second factor that is read: of experts, of slots

  /// 2·n·k·m for each product: a multiplication and an addition are two.
  double flops() const { return 2.0 * n * k * m * times; }
  /// The FLOPs that no run can skip.
  double needed_flops() const { return seen * flops(); }
  /// Memory operations: elements of both factors read and of the result written once, nk + km + nm.
  double elements() const { return (n * k + k * m * read + n * m) * times; }
  /// Elements of the second factor alone, weights or cached keys and values: km.
  double factor_elements() const { return k * m * read * times; }
  /// FLOPs per element: 2nkm/(nk + km + nm).
  double intensity() const { return flops() / elements(); }
};

/// Bytes per element.
struct ElementBytes {
  double weights = 2.0;      ///< of a W matrix
  double activations = 2.0;  ///< of activations and of cached keys and values
  double embeddings = 2.0;   ///< of embedding and unembedding
};
/// Returns the bytes per element for W matrices of type `weights`, the embeddings beside them
/// (engine/cost/formulas/embeddings.h), and activations of type `activations`.
ElementBytes element_bytes(NumberFormat weights, NumberFormat activations);

/// The pass whose products are counted: `batch` sequences of `tokens` new positions each, which
/// attend to `context` positions, including the new ones.
struct IntensityPass {
  std::int64_t batch = 1, tokens = 1, context = 1;
};
/// Returns the pass with M, the number of cached positions. Throws Error("intensity_c1", ...) if an
/// extent is below 1, or tokens is above context.
Pass pass_of(const IntensityPass& pass);

/// Returns the products of one pass of the model (engine/cost/graph/graph.h): projections,
/// attention, FFN, unembedding (for one position of each sequence). Norms, softmax and activation
/// functions are not products. Attention is the whole rectangle of tokens × context, with the share
/// of it that the causal mask leaves: scores n×d times d×l, values n×l times l×d, where the H/K
/// query heads of a key head are rows of one product. Those of keys have the names of paper and
/// registry, "q k^T", "unembedding". Throws what pass_of and graph_products throw.
std::vector<Product> products_of(const ModelConfig& model, const IntensityPass& pass);

/// The totals of several products.
struct ProductSum {
  double flops = 0.0, elements = 0.0, factor_elements = 0.0, bytes = 0.0;
};
double bytes_of(const Product& product, const ElementBytes& bytes);
/// Returns the bytes of the second factor alone.
double factor_bytes(const Product& product, const ElementBytes& bytes);
ProductSum sum_of(const std::vector<Product>& products, const ElementBytes& bytes);
/// Returns the products of layers, without the unembedding.
std::vector<Product> of_layers(const std::vector<Product>& products);

/// Returns the FLOPs a byte above which the chip's peak is the limit: peak / memory bandwidth.
/// Throws Error("chip_c7", ...) if the chip states no peak for the type.
double ridge_point(const Chip& chip, NumberFormat type);

/// The roofline of a chip, its limit and time, if factors are read and results written once.
struct Roofline {
  double flops_per_byte = 0.0;
  double compute_seconds = 0.0;  ///< FLOPs at peak
  double memory_seconds = 0.0;   ///< bytes at the memory's bandwidth

  bool compute_bound() const { return compute_seconds >= memory_seconds; }
  double seconds() const { return compute_bound() ? compute_seconds : memory_seconds; }
};
Roofline roofline_of(double flops, double bytes, const Chip& chip, NumberFormat type);
/// Returns the least time of these products on one chip: the FLOPs that the causal mask leaves, and
/// weights and caches alone, read or written once; other operands need not leave the chip.
Roofline least_of(const std::vector<Product>& products, const ElementBytes& bytes, const Chip& chip,
                  NumberFormat type);

}  // namespace shardproof::cost
