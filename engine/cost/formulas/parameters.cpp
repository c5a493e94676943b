#include "engine/cost/formulas/parameters.h"

#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

/// Returns the group that a weight counts to; null if it is not a parameter.
std::int64_t Parameters::*group_of(const WeightRow& row) {
  switch (row.kind) {
    case WeightKind::gain:
      return &Parameters::norms;
    case WeightKind::bias:
      return row.section == Section::norm ? &Parameters::norms : &Parameters::biases;
    case WeightKind::matrix:
      break;
    case WeightKind::scale:
    case WeightKind::rope_table:
    case WeightKind::slopes:
      return nullptr;
  }
  if (!row.per_layer)
    return row.name == "embed" ? &Parameters::embedding : &Parameters::unembedding;
  if (row.section == Section::attention)
    return row.dims == "EHQ" ? &Parameters::query : &Parameters::key_value;
  if (row.section == Section::ffn) return &Parameters::ffn_in;
  return row.dims == "HQE" ? &Parameters::output : &Parameters::ffn_out;
}

}  // namespace

Parameters parameters_of(const ModelConfig& model) {
  Parameters all;
  for (const WeightRow& row : all_weights()) {
    std::int64_t Parameters::*const group = group_of(row);
    if (group == nullptr || !has_weight(model, row.name)) continue;
    std::int64_t elements = row.per_layer ? model.layers : 1;
    for (std::int64_t extent : shape_of(row.dims, model)) elements *= extent;
    all.*group += elements;
  }
  return all;
}

}  // namespace shardproof::cost
