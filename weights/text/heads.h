#pragma once

#include <cstdint>

#include "weights/text/text_model.h"

namespace shardproof {

/// Returns the letter that the query heads H of a text are seen as beside its kv heads K (H as KG);
/// 0 if no line sees them so.
char group_letter(const TextModel& text);

/// Returns how many query heads share a kv head, and so stay together; 1 where all share one, which
/// holds for any number of them, and where a text has no such groups.
std::int64_t heads_per_group(const ModelConfig& model);

/// Returns how many kv heads the model has with so many query heads.
std::int64_t kv_heads(const ModelConfig& model, std::int64_t heads);

}  // namespace shardproof
