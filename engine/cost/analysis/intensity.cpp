#include "engine/cost/analysis/intensity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/cost/formulas/embeddings.h"
#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

void require_extents(const IntensityPass& pass) {
  const std::array<std::pair<std::string_view, std::int64_t>, 3> extents{
      {{"batch", pass.batch}, {"tokens", pass.tokens}, {"context", pass.context}}};
  for (const auto& [name, extent] : extents)
    if (extent < 1)
      throw Error("intensity_c1",
                  fmt::format("{}={}: must be at least 1; nearest legal: 1", name, extent));
  if (pass.tokens > pass.context)
    throw Error("intensity_c1",
                fmt::format("tokens={} of a context of {}: the context has the new tokens, too; "
                            "nearest legal: tokens={}",
                            pass.tokens, pass.context, pass.context));
}

/// Returns k and m of a matrix: the extents that it contracts, and the others.
std::pair<double, double> sides_of(const WeightRow& row, const ModelConfig& model) {
  std::pair<double, double> sides{1.0, 1.0};
  int dim = 0;
  for (std::int64_t extent : shape_of(row.dims, model))
    (dim++ < row.contracted ? sides.first : sides.second) *= static_cast<double>(extent);
  return sides;
}

}  // namespace

double bytes_of_type(WeightType type) {
  return type == WeightType::f32 ? 4.0 : type == WeightType::bf16 ? 2.0 : 1.0;
}

ElementBytes element_bytes(WeightType weights, WeightType activations) {
  return {bytes_of_type(weights), bytes_of_type(activations),
          bytes_of_type(embeddings_beside(weights))};
}

Pass pass_of(const IntensityPass& pass) {
  require_extents(pass);
  const Phase phase = pass.tokens == 1 ? Phase::decode : Phase::prefill;
  return {phase, pass.batch, pass.tokens, pass.context - pass.tokens};
}

std::vector<Product> products_of(const ModelConfig& model, const IntensityPass& pass) {
  const double pairs = pass_of(pass).seen();
  const auto layers = static_cast<double>(model.layers), batch = static_cast<double>(pass.batch);
  const auto tokens = static_cast<double>(pass.tokens), context = static_cast<double>(pass.context);
  const auto Q = static_cast<double>(model.Q), K = static_cast<double>(model.K);
  const double group = static_cast<double>(model.H) / K, seen = pairs / (tokens * context);
  std::vector<Product> all;
  for (const WeightRow& row : all_weights()) {
    if (!row.per_layer || row.kind != WeightKind::matrix || !has_weight(model, row.name)) continue;
    const auto [k, m] = sides_of(row, model);
    all.push_back({std::string(row.name), Factor::weight, batch * tokens, k, m, layers});
    if (row.name == "wv") {
      const double times = layers * batch * K;
      all.push_back({"q k^T", Factor::cache, group * tokens, Q, context, times, true, seen});
      all.push_back({"p v", Factor::cache, group * tokens, context, Q, times, true, seen});
    }
  }
  all.push_back({"unembedding", Factor::weight, batch, static_cast<double>(model.E),
                 static_cast<double>(model.V), 1.0, false});
  return all;
}

double bytes_of(const Product& product, const ElementBytes& bytes) {
  return factor_bytes(product, bytes) +
         (product.elements() - product.factor_elements()) * bytes.activations;
}

double factor_bytes(const Product& product, const ElementBytes& bytes) {
  const bool cached = product.factor == Factor::cache;
  const double of_weights = product.of_layer ? bytes.weights : bytes.embeddings;
  return product.factor_elements() * (cached ? bytes.activations : of_weights);
}

ProductSum sum_of(const std::vector<Product>& products, const ElementBytes& bytes) {
  ProductSum sum;
  for (const Product& product : products) {
    sum.flops += product.flops();
    sum.elements += product.elements();
    sum.factor_elements += product.factor_elements();
    sum.bytes += bytes_of(product, bytes);
  }
  return sum;
}

std::vector<Product> of_layers(const std::vector<Product>& products) {
  std::vector<Product> layers = products;
  std::erase_if(layers, [](const Product& one) { return !one.of_layer; });
  return layers;
}

double ridge_point(const Chip& chip, WeightType type) {
  return chip.peak(type) / chip.hbm_bandwidth;
}

Roofline roofline_of(double flops, double bytes, const Chip& chip, WeightType type) {
  return {flops / bytes, flops / chip.peak(type), bytes / chip.hbm_bandwidth};
}

Roofline least_of(const std::vector<Product>& products, const ElementBytes& bytes, const Chip& chip,
                  WeightType type) {
  double flops = 0.0, read = 0.0;
  for (const Product& product : products) {
    flops += product.needed_flops();
    read += factor_bytes(product, bytes);
  }
  return roofline_of(flops, read, chip, type);
}

}  // namespace shardproof::cost
