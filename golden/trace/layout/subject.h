#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"

namespace shardproof::candidate {

/// What a value of a trace is.
enum class Meaning {
  checkpoint,
  raw,
  scaled,
  unstored,
  stat,
  probs,
  candidates,  ///< the largest logit of each block of the vocabulary
  indices,     ///< their ids
  drawing,     ///< of random sampling: it follows from logits and random numbers
  token,
  ids,
  positions,
  weight
};

/// A value of a model's run, as a trace may name it.
struct Subject {
  Meaning meaning = Meaning::checkpoint;
  bool last = false;  ///< of every row its last position only, without the dim L
  std::string pass;   ///< empty of a weight
  std::int64_t layer = 0;
  std::string name;        ///< of the checkpoint, statistic or weight
  std::string id;          ///< "decode.1.layer0.gate", or the weight's
  std::string dims;        ///< letters; C is blocks of the vocabulary, W words
  Shape shape;             ///< C is 0: the array says how many there are
  std::int64_t block = 0;  ///< ids of a block of the vocabulary, once the array has said it

  /// As reports name it: "raw decode.1.layer0.gate", "last decode.1.layer1.out".
  std::string title() const;
  /// The same of all positions; of one that was of the last alone the shape is left out.
  Subject whole() const;
};

/// The value that a trace calls `id` and says to mean `meaning` (a role of programs, "raw gate",
/// "last out", "previous k_cache"; empty: by its name); none if the model has no such value.
std::optional<Subject> subject(std::string_view id, std::string_view meaning,
                               const ModelConfig& config, const Passes& passes, WeightType kept);

/// The pass that a name begins with, by its number; -1 if none.
std::int64_t pass_of(std::string_view name, const Passes& passes);

/// How many values a whole trace of checkpoints has, tokens included.
std::int64_t count_checkpoints(const ModelConfig& config, const Passes& passes);

/// Where a value stands in the run: by pass, layer, and as one value
/// is made of another.
std::int64_t order_of(const Subject& subject, const ModelConfig& config, const Passes& passes);

}  // namespace shardproof::candidate
