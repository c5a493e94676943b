#pragma once

#include "golden/bounds/number/number.h"
#include "weights/model/model_config.h"

namespace shardproof::bounds {

/// Whether the elementary operations of a formula are rounded to the format that values are stored
/// in: none, each, or some of them and nobody says which.
enum class Rounds { none, each, some };

/// The activation of an FFN, before the product with `up` where it is gated: the numbers of every
/// form in which textbooks and libraries write it (docs/bounds.md section 5).
Number activation_forms(Ffn ffn, Softmax softmax, const Number& x, const Operations& by,
                        Rounds rounds, Format storage);

/// e of a softmax in this base, of score − max, which is a value: as exp, or as exp2 of scaled
/// scores.
Number exponential_forms(Softmax softmax, const Number& score, const Number& top,
                         const Operations& by, const Operations& of_values, Rounds difference,
                         Format storage);

/// The number, rounded to a format or not, as it is said.
Number rounded_if(const Number& x, Rounds rounds, Format storage);

}  // namespace shardproof::bounds
