#pragma once

#include "golden/bounds/number/number.h"
#include "weights/model/model_config.h"

namespace shardproof::bounds {

/// Which operations of a formula round to the storage format: none, each, or an unknown subset.
enum class Rounds { none, each, some };

/// Returns the hull over all forms in which textbooks and libraries write the activation of an FFN
/// (docs/bounds.md section 5), before the product with `up` in gated FFNs.
Number activation_forms(Ffn ffn, Softmax softmax, const Number& x, const Operations& by,
                        Rounds rounds, NumberFormat storage);

/// Returns the exponential of score − max in a softmax of this base, where the difference is a
/// value of its own: computed as exp, or as exp2 of scaled scores.
Number exponential_forms(Softmax softmax, const Number& score, const Number& top,
                         const Operations& by, const Operations& of_values, Rounds difference,
                         NumberFormat storage);

/// Returns x, rounded to `storage`, unrounded, or the hull of both, as `rounds` says.
Number rounded_if(const Number& x, Rounds rounds, NumberFormat storage);

}  // namespace shardproof::bounds
