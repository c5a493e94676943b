#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/model/prefix.h"

namespace shardproof {

enum class Phase { prefix, prefill, decode };

/// Neighbouring rows of the batch that begin at the same position in a pass, with as many tokens.
struct PassRows {
  std::int64_t rows = 1;
  std::int64_t start = 0;   ///< the position of each row's first token
  std::int64_t tokens = 1;  ///< of each row, from 0 to the pass's L; what is left of L is padding
  bool last = true;  ///< false in a pass that samples, where the rows' prompts go on after it

  /// Where the row's tokens end: the position after its last one so far. Padding is not cached and
  /// sees none but the row's tokens.
  std::int64_t end() const { return start + tokens; }
  bool operator==(const PassRows&) const = default;
};

/// One forward pass over new tokens [B, L]: token i of a row stands at position start + i. It says
/// what is asked; the unsharded model, the simulated chips and the scalar model each make
/// positions, masks and last tokens of it by themselves.
struct PassPlan {
  std::string name;      ///< "prefill.c0", "decode.1": what the ids of its values begin with
  std::string previous;  ///< the pass that its caches come from; empty in the first of such
  Phase phase = Phase::prefill;
  std::int64_t L = 1;       ///< tokens of the longest row, which the others are padded to
  std::int64_t cached = 0;  ///< M of the caches before it, prefixes apart
  std::vector<PassRows> rows;
  bool sample = true;  ///< whether its logits become tokens, of the rows that samples() names
  /// The prefixes that its rows go on from, whose caches attention reads, too; none in a pass over
  /// the prefixes themselves.
  SharedPrefix prefix = {};

  std::int64_t batch() const;
  /// Whether the logits of these rows become tokens: they have come to the end of their prompt.
  bool samples(const PassRows& group) const { return sample && group.last && group.tokens > 0; }
  /// Whether every row has L tokens: then there is no padding.
  bool full() const;
  bool operator==(const PassPlan&) const = default;
};

/// The passes of a run, in order: the prefixes in chunks, if there are any, at the batch of the
/// prefixes; the prompt in chunks; then a decode step for each further token. In a list, too, the
/// phases are in this order.
/// A list, or made as they are asked for: there may be as many as there are positions.
class Passes {
 public:
  Passes() = default;
  explicit Passes(std::vector<PassPlan> list);
  /// `batch` equal rows: `prompt` tokens in chunks of `chunk` (0: all at once), the last of which
  /// may be shorter and alone is sampled, then gen − 1 decode steps. Throws Error("passes_c1", ...)
  /// on a batch, prompt or gen below 1 or a negative chunk.
  Passes(std::int64_t batch, std::int64_t prompt, std::int64_t chunk, std::int64_t gen,
         const SharedPrefix& prefix = {});
  /// Rows of these lengths, padded on the right to `prompt` tokens; chunks that no row reaches are
  /// left out. A chunk beyond a row's end has 0 tokens of it; a row's first token is sampled in the
  /// chunk in which it ends; in decode step t the row stands at its length + t − 1. Throws
  /// Error("passes_c1", ...) likewise, and on a length that is not from 1 to prompt.
  ///
  /// With prefixes, lengths and `prompt` count them; the chunks of the prefill begin behind them.
  /// Throws what require_prefix throws.
  Passes(const std::vector<std::int64_t>& lengths, std::int64_t prompt, std::int64_t chunk,
         std::int64_t gen, const SharedPrefix& prefix = {});

  std::int64_t size() const {
    return list_.empty() ? prefix_chunks_ + chunks_ + steps_ : std::ssize(list_);
  }
  PassPlan at(std::int64_t i) const;

  /// Rows of every pass but those over prefixes.
  std::int64_t batch() const;
  /// None in a run without.
  SharedPrefix prefix() const;
  /// The prompt's length, prefix and padding included: where the prefill ends.
  std::int64_t prompt() const;
  /// Tokens that each row gets: the passes that sample.
  std::int64_t gen() const;
  /// Whether every row has as many tokens as the pass in every pass.
  bool full() const;
  /// Whether a decode step follows the prefill.
  bool decodes() const;
  /// Slots of the caches, prefixes apart, after the last pass, or after the last of the prefill.
  std::int64_t cached() const;
  std::int64_t cached_by_prefill() const;

  /// Passes `first` to `last`, which have one phase and one L.
  struct Group {
    std::int64_t first, last;
    std::int64_t count() const { return last - first + 1; }
  };
  /// All passes in as few such groups as there are: at most five of a run that is not a list.
  std::vector<Group> groups() const;

  /// Whether they are the same passes, listed or not.
  bool operator==(const Passes& other) const;

 private:
  /// What follows from the rows and the longest of them.
  void count_chunks(std::int64_t longest);

  /// Neighbouring rows whose prompts are as long.
  struct Rows {
    std::int64_t rows, length;
    bool operator==(const Rows&) const = default;
  };

  std::vector<PassPlan> list_;  // or empty, and
  std::vector<Rows> rows_;
  std::int64_t prompt_ = 0, chunk_ = 0, chunks_ = 0, steps_ = 0;
  SharedPrefix prefix_;
  std::int64_t prefix_chunks_ = 0;
};

/// "prefix.c0", "prefix.c1", ..., "prefill.c0", ... and "decode.1", ...
std::string prefix_pass(std::int64_t chunk);
std::string prefill_pass(std::int64_t chunk);
std::string decode_pass(std::int64_t step);

}  // namespace shardproof
