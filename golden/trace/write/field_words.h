#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/shards/field.h"
#include "weights/base/error.h"

namespace shardproof {

// How a trace stores numbers of the field regime: a lane is two int32 words, its low 31 bits first.

/// The arithmetic that such a trace claims.
inline constexpr std::string_view kFieldArithmetic = "field";

/// The setting of the numbers as the trace's attribute `field` has it: "seed=1 bits=61 lanes=3
/// draw=0".
std::string field_text(const FieldSetting& setting);
/// The inverse of field_text. Throws Error("dump_attribute", ...).
FieldSetting parse_field(std::string_view text);

/// Returns how many words a number has.
inline std::int64_t words_of(const FieldSetting& setting) { return 2 * setting.lanes; }
std::vector<std::int32_t> to_words(std::span<const FieldElement> numbers,
                                   const FieldSetting& setting);
/// The inverse of to_words, of as many whole numbers as `words` has; a number with a negative word,
/// such as one that was never written, is Field::unwritten().
std::vector<FieldElement> from_words(std::span<const std::int32_t> words,
                                     const FieldSetting& setting);

}  // namespace shardproof
