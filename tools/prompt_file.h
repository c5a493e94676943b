#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weights/model_config.h"
#include "weights/tensor.h"

namespace shardproof::tools {

/// What a prompt's lines are.
enum class PromptText {
  bytes,  ///< every byte is a token id
  ids     ///< decimal token ids with spaces between them
};

/// Reads a prompt, int32 [rows, length], one row a line, from a file, a pipe or a device, holding
/// little more than it returns. `batch` is the most rows, if it is given. Throws Error: "prompt_c1"
/// (unreadable), "prompt_c2" (no line), "prompt_c3" (an empty line), "prompt_c4" (rows of unequal
/// length), "prompt_c5" (an id that the vocabulary lacks), "prompt_c6" (no text, or larger than
/// 16 MiB), "prompt_c7" (a row longer than the model's positions), "prompt_c8" (a word that is no
/// id), "run_c3" (more rows than `batch`).
IntTensor read_prompt(const std::string& path, PromptText text, const ModelConfig& model,
                      std::optional<std::int64_t> batch);

}  // namespace shardproof::tools
