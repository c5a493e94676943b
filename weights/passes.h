#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/error.h"

namespace shardproof {

enum class Phase { prefill, decode };

/// Neighbouring rows of the batch that begin at the same position in a pass, with as many tokens.
struct PassRows {
  std::int64_t rows = 1;
  std::int64_t start = 0;   ///< the position of each row's first token
  std::int64_t tokens = 1;  ///< of each row, from 1 to the pass's L; what is left of L is padding
  bool operator==(const PassRows&) const = default;
};

/// One forward pass over new tokens [B, L]: token i of a row stands at position start + i. It says
/// what is asked; the unsharded model, the simulated chips and the scalar model each make
/// positions, masks and last tokens of it by themselves.
struct PassPlan {
  std::string name;      ///< "prefill.c0", "decode.1": what the ids of its values begin with
  std::string previous;  ///< the pass before; empty in the first
  Phase phase = Phase::prefill;
  std::int64_t L = 1;       ///< tokens of the longest row, which the others are padded to
  std::int64_t cached = 0;  ///< M of the caches before it
  std::vector<PassRows> rows;
  bool sample = true;  ///< whether its logits become tokens

  std::int64_t batch() const;
  bool operator==(const PassPlan&) const = default;
};

/// The passes of a run, in order: the prompt in chunks, then a decode step for each further token.
/// In a list, too, all passes of the prefill come first.
/// A list, or made as they are asked for: there may be as many as there are positions.
class Passes {
 public:
  Passes() = default;
  explicit Passes(std::vector<PassPlan> list);
  /// `batch` equal rows: `prompt` tokens in chunks of `chunk` (0: all at once), the last of which
  /// may be shorter and alone is sampled, then gen − 1 decode steps. Throws Error("passes_c1", ...)
  /// on a batch, prompt or gen below 1 or a negative chunk.
  Passes(std::int64_t batch, std::int64_t prompt, std::int64_t chunk, std::int64_t gen);

  std::int64_t size() const { return list_.empty() ? chunks_ + steps_ : std::ssize(list_); }
  PassPlan at(std::int64_t i) const;

  /// Rows of every pass.
  std::int64_t batch() const;
  /// The prompt's length: where the longest row's tokens of the prefill end.
  std::int64_t prompt() const;
  /// Tokens that each row gets: the passes that sample.
  std::int64_t gen() const;
  /// Whether a decode step follows the prefill.
  bool decodes() const;
  /// Slots of the caches after the last pass, or after the last of the prefill.
  std::int64_t cached() const;
  std::int64_t cached_by_prefill() const;

  /// Passes `first` to `last`, which have one phase and one L.
  struct Group {
    std::int64_t first, last;
    std::int64_t count() const { return last - first + 1; }
  };
  /// All passes in as few such groups as there are: at most three of a run of equal rows.
  std::vector<Group> groups() const;

  /// Whether they are the same passes, listed or not.
  bool operator==(const Passes& other) const;

 private:
  std::vector<PassPlan> list_;  // or empty, and
  std::int64_t batch_ = 0, prompt_ = 0, chunk_ = 0, chunks_ = 0, steps_ = 0;
};

/// "prefill.c0", "prefill.c1", ... and "decode.1", "decode.2", ...
std::string prefill_pass(std::int64_t chunk);
std::string decode_pass(std::int64_t step);

}  // namespace shardproof
