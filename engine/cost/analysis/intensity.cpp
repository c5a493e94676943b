#include "engine/cost/analysis/intensity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/cost/graph/graph.h"

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

/// Names that products of keys have, by those of the text that the keys are written as.
constexpr std::pair<std::string_view, std::string_view> kNamesOfKeys[] = {
    {"raw_score", "q k^T"},
    {"raw_attn", "p v"},
    {"table", "unembedding"},
    {"unembed", "unembedding"}};

std::string name_in_keys(const std::string& name) {
  for (const auto& [in_text, in_keys] : kNamesOfKeys)
    if (name == in_text) return std::string(in_keys);
  return name;
}

}  // namespace

ElementBytes element_bytes(NumberFormat weights, NumberFormat activations) {
  return {1.0 * bytes_of(weights), 1.0 * bytes_of(activations),
          1.0 * bytes_of(embeddings_beside(weights))};
}

Pass pass_of(const IntensityPass& pass) {
  require_extents(pass);
  const Phase phase = pass.tokens == 1 ? Phase::decode : Phase::prefill;
  return {phase, pass.batch, pass.tokens, pass.context - pass.tokens};
}

std::vector<Product> products_of(const ModelConfig& model, const IntensityPass& pass) {
  std::vector<Product> all;
  for (const GraphProduct& one : graph_products(*graph_of(model), pass_of(pass)))
    all.push_back({model.rows == nullptr ? name_in_keys(one.name) : one.name,
                   one.weight ? Factor::weight : Factor::cache, one.n, one.k, one.m,
                   one.times * static_cast<double>(one.layers), one.section == TextSection::layer,
                   one.pairs / one.of, one.of_key_heads, one.read});
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

double ridge_point(const Chip& chip, NumberFormat type) {
  return chip.peak(type) / chip.hbm_bandwidth;
}

Roofline roofline_of(double flops, double bytes, const Chip& chip, NumberFormat type) {
  return {flops / bytes, flops / chip.peak(type), bytes / chip.hbm_bandwidth};
}

Roofline least_of(const std::vector<Product>& products, const ElementBytes& bytes, const Chip& chip,
                  NumberFormat type) {
  double flops = 0.0, read = 0.0;
  for (const Product& product : products) {
    flops += product.needed_flops();
    read += factor_bytes(product, bytes);
  }
  return roofline_of(flops, read, chip, type);
}

}  // namespace shardproof::cost
