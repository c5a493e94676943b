#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/prefix.h"

namespace shardproof::tools {

/// What a prompt's lines are.
enum class PromptText {
  bytes,  ///< every byte is a token id
  ids     ///< decimal token ids with spaces between them
};

/// Rows of any length, one after the other: padding them waits until it is known to fit into the
/// memory.
struct PromptRows {
  std::vector<std::int32_t> ids;      ///< of the rows, behind their prefixes
  std::vector<std::int64_t> lengths;  ///< of the rows with their prefixes, each at least 1
  /// Prefixes of `prefix_length` ids, one after the other, and which of them each row goes on from.
  std::vector<std::int32_t> prefix_ids = {};
  std::int64_t prefix_length = 0;
  std::vector<std::int64_t> prefix_of = {};

  std::int64_t longest() const;
  /// Whether all rows are as long.
  bool equal() const;
  /// The rows go on from prefixes, of which row i of R has number i·N/R, rounded down.
  void go_on_from(const PromptRows& prefixes);
  /// These rows, in this order, each with its prefix.
  PromptRows chosen(const std::vector<std::int64_t>& rows) const;
  /// The fewest prefixes by which each of the first rows of a batch has its own, where row i of the
  /// batch B has number i·N/B: a prefix is there again for rows that are not among its neighbours.
  /// As many as there are rows in the batch always do. None where there are no prefixes.
  SharedPrefix prefix(std::int64_t batch) const;
  /// Rows padded on the right with token 0 to the longest, and rows of token 0 below them, behind
  /// what they share with a row, int32 [batch, longest()].
  IntTensor padded(std::int64_t batch) const;
};

/// Reads a prompt, one row a line, from a file, a pipe or a device, holding little more than it
/// returns. `batch` is the most rows, if it is given. Throws Error: "prompt_c1" (unreadable),
/// "prompt_c2" (no line), "prompt_c3" (an empty line), "prompt_c5" (an id that the vocabulary
/// lacks), "prompt_c6" (no text, or larger than 16 MiB), "prompt_c7" (a row longer than the model's
/// positions), "prompt_c8" (a word that is no id), "run_c3" (more rows than `batch`).
PromptRows read_prompt(const std::string& path, PromptText text, const ModelConfig& model,
                       std::optional<std::int64_t> batch);

/// Reads prefixes likewise. Throws what read_prompt throws, and Error("prompt_c9", ...) where they
/// are not of one length.
PromptRows read_prefixes(const std::string& path, PromptText text, const ModelConfig& model);

}  // namespace shardproof::tools
