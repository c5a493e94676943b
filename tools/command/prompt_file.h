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

/// Encoding of a prompt's lines.
enum class PromptText {
  bytes,  ///< every byte is a token id
  ids     ///< decimal token ids with spaces between them
};

/// Rows of any length, concatenated; they are padded only after a memory check.
struct PromptRows {
  std::vector<std::int32_t> ids;      ///< ids of the rows, without prefixes
  std::vector<std::int64_t> lengths;  ///< row lengths with prefixes, each at least 1
  /// Prefixes of `prefix_length` ids, concatenated, and the index of the prefix of each row.
  std::vector<std::int32_t> prefix_ids = {};
  std::int64_t prefix_length = 0;
  std::vector<std::int64_t> prefix_of = {};

  std::int64_t longest() const;
  /// Returns whether all rows have the same length.
  bool equal() const;
  /// Puts the rows behind prefixes: row i of R continues prefix i·N/R, rounded down.
  void go_on_from(const PromptRows& prefixes);
  /// Returns these rows, in this order, each with its prefix.
  PromptRows chosen(const std::vector<std::int64_t>& rows) const;
  /// Returns the smallest number N of prefixes such that, with prefix i·N/B for row i of batch B,
  /// each of the first rows has its own: a prefix is repeated for rows that are not neighbours. N =
  /// B always suffices. Returns none if there are no prefixes.
  SharedPrefix prefix(std::int64_t batch) const;
  /// Returns int32 [batch, longest()]: rows padded on the right with token 0 to the longest, then
  /// rows of token 0, except for the prefix they share with a row.
  IntTensor padded(std::int64_t batch) const;
};

/// Reads a prompt, one row per line, from a file, a pipe or a device, holding little more than it
/// returns. `batch`, if given, is the maximum number of rows. Throws Error: "prompt_c1"
/// (unreadable), "prompt_c2" (no line), "prompt_c3" (an empty line), "prompt_c5" (an id that the
/// vocabulary lacks), "prompt_c6" (not text, or larger than 16 MiB), "prompt_c7" (a row longer than
/// the model's positions), "prompt_c8" (a word that is not an id), "run_c3" (more rows than
/// `batch`).
PromptRows read_prompt(const std::string& path, PromptText text, const ModelConfig& model,
                       std::optional<std::int64_t> batch);

/// Reads prefixes, one per line. Throws what read_prompt throws, and Error("prompt_c9", ...) if
/// their lengths differ.
PromptRows read_prefixes(const std::string& path, PromptText text, const ModelConfig& model);

}  // namespace shardproof::tools
