#pragma once

#include <cstddef>
#include <cstdint>

namespace shardproof {

/// Returns an index that is known not to be negative as the type that containers take.
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Returns an f32 number as f64, which holds it exactly.
inline double wide(float v) { return static_cast<double>(v); }

}  // namespace shardproof
