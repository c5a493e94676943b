#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"

namespace shardproof::dump {

/// Kinds of values in a trace.
enum class Meaning {
  checkpoint,
  raw,
  scaled,
  unstored,
  stat,
  probs,
  candidates,  ///< largest logit of each block of the vocabulary
  indices,     ///< their token ids
  drawing,     ///< of random sampling: follows from logits and random numbers
  token,
  ids,
  positions,
  weight,
  joined  ///< a cache behind the slots of the prefixes that its rows continue
};

/// A value of a model's run, as a trace may name it.
struct Subject {
  Meaning meaning = Meaning::checkpoint;
  bool last = false;  ///< only the last position of each row, without dim L
  std::string pass;   ///< empty for a weight
  std::int64_t layer = 0;
  std::string name;        ///< name of the checkpoint, statistic or weight
  std::string id;          ///< "decode.1.layer0.gate", or the weight's id
  std::string dims;        ///< dim letters; of sampling C: blocks of the vocabulary, W: words
  Shape shape;             ///< C of sampling is 0 until the array's shape is known
  std::int64_t block = 0;  ///< ids per block of the vocabulary; 0 until the array's shape is known

  /// Name in reports: "raw decode.1.layer0.gate", "last decode.1.layer1.out".
  std::string title() const;
  /// Returns whether it is a value of sampling with one element for each block of the vocabulary.
  bool of_blocks() const;
  /// Returns the subject with all positions; if this has only the last, the result has no shape.
  Subject whole() const;
};

/// Returns the value that a trace calls `id` and declares to mean `meaning` (a role of programs:
/// "raw gate", "last out", "previous k_cache"; empty: by its name); nullopt if the model has no
/// such value.
std::optional<Subject> subject(std::string_view id, std::string_view meaning,
                               const ModelConfig& config, const Passes& passes, NumberFormat kept);

/// Returns the number of the pass that a name begins with; -1 if none.
std::int64_t pass_of(std::string_view name, const Passes& passes);

/// Returns how many values a complete trace of checkpoints has, tokens included.
std::int64_t count_checkpoints(const ModelConfig& config, const Passes& passes);

/// Returns a sort key of a value's place in the run: by pass, layer, and order of computation.
std::int64_t order_of(const Subject& subject, const ModelConfig& config, const Passes& passes);

}  // namespace shardproof::dump
