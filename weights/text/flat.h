#pragma once

#include "weights/text/model_text.h"

namespace shardproof {

/// Returns the text with one op in each line: a pointwise expression over names and numbers, or one
/// einsum, sum, mean, max, top, gather, turn, append, view or before of names. What was nested is a
/// line of its own before the line that it stood in, with that line's guard and a name after it,
/// "norm_1". So is what a line does that exists only where an indicator says, unless it is
/// pointwise, an einsum, an append or before. A mean over letters along which everything exists
/// becomes a sum and a division by their extents. `text` obeys the rules of check_model_text; so
/// does the result.
ModelText flat_text(const ModelText& text);

/// Returns whether an op is computed element by element from its operands.
bool is_pointwise(ModelOp op);

}  // namespace shardproof
