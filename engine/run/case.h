#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/layout/torus.h"
#include "engine/strategies/strategy.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"
#include "weights/model/prefix.h"
#include "weights/model/sampling.h"
#include "weights/storage/row_lengths.h"

namespace shardproof {

/// One case: a model on a torus, prefill under one strategy, decode under another. A line of text
/// says everything that a run of it depends on (docs/spec.md section 6), a user's files apart.
struct Case {
  Torus torus{2, 2, 2};
  ModelConfig model;
  Strategy prefill, decode;  ///< that ship, or a user's tables or layer programs
  Numerics numerics;
  std::int64_t batch = 1;
  std::int64_t prompt = 4;  ///< tokens of the longest row, its prefix among them
  RowLengths lengths;       ///< of the rows, where they may be shorter
  SharedPrefix prefix;      ///< that the rows begin with, where there are such
  std::int64_t chunk = 4;   ///< prefill chunk length, prompt for one chunk
  std::int64_t gen = 2;     ///< tokens to generate
  std::uint64_t seed = 1;
  /// What H and V are padded to where they are placed on chips; 0 where they are not
  /// (engine/run/dim_padding.h).
  std::int64_t pad_heads = 0, pad_vocab = 0;
  Sampling sampling = {};
  /// Of the chips that decode, where they are a slice of their own beside `torus`, which prefills:
  /// the caches go from the one to the other (docs/split.md).
  std::optional<Torus> decode_torus = {};

  const Torus& torus_of(Phase phase) const {
    return phase == Phase::decode && decode_torus ? *decode_torus : torus;
  }
  /// Throws what lengths_of_rows, require_prefix and Passes throw.
  Passes passes() const;
  bool operator==(const Case&) const = default;
};

/// The keys of a case line, in the order they are printed; `numerics`, which stands for others, is
/// not.
const std::vector<std::string>& case_keys();

/// Reads "torus=4x2x3 model=palm-tiny prefill=ws2d:heads decode=ws2d:batch ...", keys in any order;
/// what is left out takes its default (batch: the smallest legal one, of at least the prefixes;
/// prompt: the smallest legal one of at least 4, behind a prefix if there is one). `own` are
/// strategies beside those that ship. Throws Error: "case_c0" (no key=value), "case_c1" (unknown
/// key, the nearest named), "case_c2" (repeated key), "case_c3" (a value that is not a number or is
/// out of range), "case_numerics" (an unknown word for `numerics`, a key beside it that says
/// another value); and what parse_row_lengths, parse_prefix, parse_model, parse_block, Torus,
/// Strategy and the setters of numerics_keys() throw.
Case parse_case(std::string_view line, const std::vector<Strategy>& own = {});

/// Every key in one fixed order, those of the decode's torus, lengths, prefixes and padding only
/// where they are given;
/// parse_case(print_case(c)) == c. The phase of a layer program is left out, as is the decode's
/// after a prefill's program without decode steps.
std::string print_case(const Case& c);

/// Throws Error("case_split", ...) if the case decodes on a torus of its own, which `what` ("a
/// trace") cannot say.
void require_one_torus(const Case& c, std::string_view what);

/// Whether a phase is a user's layer program.
bool has_program(const Case& c);

/// Multiply-adds of the unsharded model over the whole case: what the oracle must do.
double multiply_adds(const Case& c);

}  // namespace shardproof
