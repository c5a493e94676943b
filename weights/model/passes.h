#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/model/prefix.h"

namespace shardproof {

enum class Phase { prefix, prefill, decode };

/// Neighbouring rows of the batch with the same start position and token count in a pass.
struct PassRows {
  std::int64_t rows = 1;
  std::int64_t start = 0;   ///< the position of each row's first token
  std::int64_t tokens = 1;  ///< tokens of each row, 0 to the pass's L; the rest of L is padding
  bool last = true;         ///< false in a sampling pass if the rows' prompts continue after it

  /// Position after a row's last token so far. Padding is not cached and attends only to the row's
  /// tokens.
  std::int64_t end() const { return start + tokens; }
  bool operator==(const PassRows&) const = default;
};

/// One forward pass over new tokens [B, L]: token i of a row has position start + i. The plan
/// states the request only; the unsharded model, the simulated chips and the scalar model each
/// derive positions, masks and last tokens from it independently.
struct PassPlan {
  std::string name;      ///< "prefill.c0", "decode.1": prefix of the ids of its values
  std::string previous;  ///< the pass whose caches this one extends; empty if it is the first
  Phase phase = Phase::prefill;
  std::int64_t L = 1;       ///< tokens of the longest row; the others are padded to it
  std::int64_t cached = 0;  ///< M of the caches before the pass, without prefixes
  std::vector<PassRows> rows;
  bool sample = true;  ///< whether its logits become tokens, in the rows chosen by samples()
  /// Prefixes that its rows continue, whose caches attention also reads; none in a pass over the
  /// prefixes themselves.
  SharedPrefix prefix = {};

  std::int64_t batch() const;
  /// Returns whether the logits of these rows become tokens: the pass ends their prompt.
  bool samples(const PassRows& group) const { return sample && group.last && group.tokens > 0; }
  /// Returns whether every row has L tokens, so that there is no padding.
  bool full() const;
  bool operator==(const PassPlan&) const = default;
};

/// The passes of a run, in order: the prefixes in chunks, if any, at the batch of the prefixes; the
/// prompt in chunks; then a decode step for each further token. An explicit list follows this order
/// of phases, too.
/// Either an explicit list, or generated on demand: there may be as many passes as positions.
class Passes {
 public:
  Passes() = default;
  explicit Passes(std::vector<PassPlan> list);
  /// Plans `batch` equal rows: `prompt` tokens in chunks of `chunk` (0: all at once), of which the
  /// last may be shorter and alone is sampled, then gen − 1 decode steps. Throws Error("passes_c1",
  /// ...) if batch, prompt or gen is below 1 or chunk is negative.
  Passes(std::int64_t batch, std::int64_t prompt, std::int64_t chunk, std::int64_t gen,
         const SharedPrefix& prefix = {});
  /// Plans rows of these lengths, padded on the right to `prompt` tokens; chunks that no row
  /// reaches are omitted. A row has 0 tokens in chunks beyond its end; its first token is sampled
  /// in the chunk in which it ends; in decode step t its position is its length + t − 1. Throws
  /// Error("passes_c1", ...) as the constructor of equal rows, and on a length outside [1, prompt].
  ///
  /// With prefixes, lengths and `prompt` include them; the chunks of the prefill follow them.
  /// Throws what require_prefix throws.
  Passes(const std::vector<std::int64_t>& lengths, std::int64_t prompt, std::int64_t chunk,
         std::int64_t gen, const SharedPrefix& prefix = {});

  std::int64_t size() const {
    return list_.empty() ? prefix_chunks_ + chunks_ + steps_ : std::ssize(list_);
  }
  PassPlan at(std::int64_t i) const;

  /// Returns the rows of every pass except those over prefixes.
  std::int64_t batch() const;
  /// Returns the prefixes of the run, if any.
  SharedPrefix prefix() const;
  /// Returns the prompt's length, including prefix and padding: the position at which the prefill
  /// ends.
  std::int64_t prompt() const;
  /// Returns the tokens that each row generates.
  std::int64_t gen() const;
  /// Returns whether every row has L tokens in every pass.
  bool full() const;
  /// Returns whether a decode step follows the prefill.
  bool decodes() const;
  /// Cache slots, without prefixes, after the last pass; cached_by_prefill: after the prefill.
  std::int64_t cached() const;
  std::int64_t cached_by_prefill() const;

  /// Passes `first` to `last`, which share one phase and one L.
  struct Group {
    std::int64_t first, last;
    std::int64_t count() const { return last - first + 1; }
  };
  /// Returns all passes in as few groups as possible: at most five unless the passes are a list.
  std::vector<Group> groups() const;

  /// Returns whether the passes are equal, whether listed or generated.
  bool operator==(const Passes& other) const;

 private:
  /// Sets the chunk counts, and limits prompt_ to the chunks that the longest row reaches.
  void count_chunks(std::int64_t longest);

  /// Neighbouring rows with prompts of the same length.
  struct Rows {
    std::int64_t rows, length;
    bool operator==(const Rows&) const = default;
  };

  std::vector<PassPlan> list_;  // if empty, the members below define the passes
  std::vector<Rows> rows_;
  std::int64_t prompt_ = 0, chunk_ = 0, chunks_ = 0, steps_ = 0;
  SharedPrefix prefix_;
  std::int64_t prefix_chunks_ = 0;
};

/// Names of passes: "prefix.c0", "prefix.c1", ..., "prefill.c0", ... and "decode.1", ...
std::string prefix_pass(std::int64_t chunk);
std::string prefill_pass(std::int64_t chunk);
std::string decode_pass(std::int64_t step);

}  // namespace shardproof
