#include "engine/cost/graph/graph_work.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engine/cost/formulas/embeddings.h"
#include "engine/cost/graph/detail/text_parts.h"
#include "engine/cost/graph/graph.h"
#include "weights/model/registry.h"
#include "weights/text/text_weights.h"

namespace shardproof::cost {
namespace {

/// How much of a weight is read in each section, all layers together.
using Reads = std::array<double, 3>;

double& of(Reads& reads, TextSection section) { return reads[static_cast<std::size_t>(section)]; }

/// Returns how often a layer's reading counts: a weight of the model is read in each of them.
double times_in(TextSection section, const WeightElements& weight, const TextModel& model) {
  return section == TextSection::layer && !weight.of_layer
             ? static_cast<double>(model.sizes().layers)
             : 1.0;
}

/// Returns what products read of a matrix.
Reads product_reads(const TextModel& model, const std::vector<GraphProduct>& products,
                    const WeightElements& weight) {
  Reads reads{};
  for (const GraphProduct& one : products)
    if (one.weight && file_name(model, one.name) == weight.name)
      of(reads, one.section) =
          std::max(of(reads, one.section), one.read * times_in(one.section, weight, model));
  return reads;
}

/// Returns what pointwise lines read of any other weight; of tables of RoPE only rows are.
Reads pointwise_reads(const TextModel& model, const WeightElements& weight) {
  Reads reads{};
  if (is_rope_table(weight.kind)) return reads;
  for (const TextSection section : kTextSections)
    for (const TextLine& line : model.flat().section(section).lines)
      for (const std::string& name : names_in(line.expression))
        if (model.weight(name) != nullptr && file_name(model, name) == weight.name)
          of(reads, section) = times_in(section, weight, model);
  return reads;
}

}  // namespace

double reductions_of_layer(const TextModel& model) {
  double all = 0.0;
  for (const TextLine& line : model.flat().section(TextSection::layer).lines) {
    const Expression& e = line.expression;
    if (!is_call(e, ModelOp::einsum) || !contains(line.letters, 'E')) continue;
    const bool reads = std::any_of(e.args.begin(), e.args.end(), [&](const Expression& arg) {
      const WeightRow* const row = weight_row(arg.text, &model);
      return row != nullptr && row->kind == WeightKind::matrix;
    });
    for (std::int64_t layer = 0; reads && layer < model.sizes().layers; ++layer)
      all += model.sizes().has(line.guard, layer) ? 1.0 : 0.0;
  }
  return all / static_cast<double>(model.sizes().layers);
}

double GraphWork::memory_seconds(double bandwidth) const {
  const auto n = static_cast<double>(count);
  return n * ((layers.weight_reads + layers.cache_reads) / n / bandwidth) +
         (ends.weight_reads + ends.cache_reads) / bandwidth;
}

GraphWork graph_work(const ModelConfig& config, NumberFormat weights, NumberFormat act,
                     const Pass& pass) {
  const std::shared_ptr<const TextModel> model = graph_of(config, weights);
  const std::vector<GraphProduct> products = graph_products(*model, pass);
  GraphWork work;
  work.count = model->sizes().layers;
  for (const GraphProduct& one : products)
    (one.section == TextSection::layer ? work.layers : work.ends).needed_flops +=
        one.needed_flops();
  for (const WeightElements& one : weight_elements(*model)) {
    const bool table = one.kind == TextWeightKind::table;
    const bool matrix = table || one.kind == TextWeightKind::matrix;
    const NumberFormat in_matrices = one.of_layer ? weights : embeddings_beside(weights);
    const double bytes =
        static_cast<double>(one.elements) * bytes_of(matrix ? in_matrices : NumberFormat::f32);
    work.weight_bytes += bytes;
    Reads reads = matrix ? product_reads(*model, products, one) : pointwise_reads(*model, one);
    work.layers.weight_reads += bytes * of(reads, TextSection::layer);
    work.ends.weight_reads +=
        bytes * (of(reads, TextSection::embedding) + of(reads, TextSection::head));
    if (table && reads == Reads{}) work.table_bytes += bytes;
  }
  const double slots = static_cast<double>(pass.B) * static_cast<double>(pass.M + pass.L);
  for (const auto& [layer, count] : kinds_of_layers(*model)) {
    const double bytes = static_cast<double>(count) * cached_in(*model, layer) * slots *
                         bytes_of(config.cache.value_or(act));
    work.cache_bytes += bytes;
    double seen = 0.0;
    for (const GraphProduct& one : layer_products(*model, layer, pass))
      if (!one.weight) seen = std::max(seen, one.read);
    work.layers.cache_reads += seen * bytes;
  }
  return work;
}

}  // namespace shardproof::cost
