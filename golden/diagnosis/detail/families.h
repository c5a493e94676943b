#pragma once

#include "golden/diagnosis/detail/search.h"

namespace shardproof::diagnosis {

// Each tries the faults of its kind that the value can have.

/// What holds one number where a value should be.
void try_never_written(const Question& question, Search& search);
/// Which block of the right value a chip holds, and in what order.
void try_blocks(const Question& question, Search& search);
/// Which block of a weight meets which block of its operand.
void try_weight_blocks(const Question& question, Search& search);
/// How often each summand of a contraction is counted.
void try_sums(const Question& question, Search& search);
/// The same, with whatever whole numbers come nearest, which are many: for what nothing else
/// explains.
void try_fitted_sums(const Question& question, Search& search);
/// How often a residual, a bias or a term is added.
void try_addends(const Question& question, Search& search);
/// Other matrices, other layers' and passes' values, other functions.
void try_operands(const Question& question, Search& search);
/// Which keys a query sees.
void try_masks(const Question& question, Search& search);
/// Positions, heads, channels.
void try_attention(const Question& question, Search& search);
/// Gains, statistics, and constants that scale.
void try_norms(const Question& question, Search& search);
void try_scales(const Question& question, Search& search);
/// Slots of k_cache and v_cache.
void try_caches(const Question& question, Search& search);
/// What is rounded to bf16.
void try_rounding(const Question& question, Search& search);

}  // namespace shardproof::diagnosis
