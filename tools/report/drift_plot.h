#pragma once

#include <string>

#include "tools/report/comparison.h"

namespace shardproof::tools {

/// Returns the drift of all values from the exact regime's, over their root mean square, in the
/// order of the run, as SVG with a logarithmic axis; wrong values, whose drift says nothing, stand
/// at its top. "" if no value has one.
std::string drift_plot(const Comparison& of);

}  // namespace shardproof::tools
