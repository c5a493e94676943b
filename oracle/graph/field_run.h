#pragma once

#include <map>
#include <string>

#include "oracle/numeric/field_number.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/field_setting.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Input of the unsharded run of a text in the field regime (docs/field.md).
struct FieldRequest {
  const ModelText& text;
  const TextSizes& sizes;
  NumberFormat act = NumberFormat::f32;
  IntTensor ids;  ///< int32 [B, P]: id of row b at position t, in prefill and decode
  Passes passes;  ///< rows of unequal length run alone
  FieldSetting setting;
};

/// Returns every named value of every pass by id, "decode.1.layer0.q", with the text's letters.
/// Weights are random by their ids in files. Throws Error: "field_setting", "field_zero" (a divisor
/// without an inverse), "oracle_range" (shared prefixes), "oracle_graph" (`top`, which asks for an
/// order; gather beyond its table).
std::map<std::string, field::Tensor> run_in_field(const FieldRequest& request);

}  // namespace shardproof::oracle::graph
