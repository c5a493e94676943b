#pragma once

#include "golden/diagnosis/detail/search.h"

namespace shardproof::diagnosis {

// Each function tries the faults of one family that the value can have.

/// One number in every place of a value or of a part of it.
void try_never_written(const Question& question, Search& search);
/// Wrong blocks of the right value, or blocks in a wrong order.
void try_blocks(const Question& question, Search& search);
/// Blocks of a weight that meet wrong blocks of the operand.
void try_weight_blocks(const Question& question, Search& search);
/// Wrong multiplicities of a contraction's partial sums.
void try_sums(const Question& question, Search& search);
/// Multiplicities fitted as whole numbers: a large family, for when nothing else explains.
void try_fitted_sums(const Question& question, Search& search);
/// Wrong multiplicities of residuals, biases and terms.
void try_addends(const Question& question, Search& search);
/// Other matrices, values of other layers and passes, other functions.
void try_operands(const Question& question, Search& search);
/// Wrong masks: the keys that a query sees.
void try_masks(const Question& question, Search& search);
/// Wrong positions, heads, channels.
void try_attention(const Question& question, Search& search);
/// Wrong gains, statistics, and constant scales.
void try_norms(const Question& question, Search& search);
void try_scales(const Question& question, Search& search);
/// Wrong slots of k_cache and v_cache.
void try_caches(const Question& question, Search& search);
/// Roundings to bf16, missing or extra.
void try_rounding(const Question& question, Search& search);

}  // namespace shardproof::diagnosis
