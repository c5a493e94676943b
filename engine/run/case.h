#pragma once

#include <cstdint>
#include <iosfwd>
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
#include "weights/text/model_text.h"

namespace shardproof {

/// One case: a model on a torus, prefill under one strategy, decode under another. One line of text
/// holds everything that a run of it depends on (docs/spec.md section 6), except a user's files.
struct Case {
  Torus torus{2, 2, 2};
  ModelConfig model;
  Strategy prefill, decode;  ///< shipped ones, or a user's tables or layer programs
  Numerics numerics;
  std::int64_t batch = 1;
  std::int64_t prompt = 4;  ///< tokens of the longest row, including its prefix
  RowLengths lengths;       ///< lengths of the rows, if they may be shorter
  SharedPrefix prefix;      ///< prefixes that the rows begin with, if any
  std::int64_t chunk = 4;   ///< prefill chunk length, prompt for one chunk
  std::int64_t gen = 2;     ///< tokens to generate
  std::uint64_t seed = 1;
  /// The extents that H and V are padded to on the chips; 0 for no padding
  /// (engine/run/dim_padding.h).
  std::int64_t pad_heads = 0, pad_vocab = 0;
  Sampling sampling = {};
  /// The torus that decodes, if it is a slice of its own beside `torus`, which prefills: the caches
  /// go from one to the other (docs/split.md).
  std::optional<Torus> decode_torus = {};

  const Torus& torus_of(Phase phase) const {
    return phase == Phase::decode && decode_torus ? *decode_torus : torus;
  }
  /// Throws what lengths_of_rows, require_prefix and Passes throw.
  Passes passes() const;
  bool operator==(const Case&) const = default;
};

/// The keys of a case line, in the order they are printed. `numerics` is left out: it is short for
/// other keys.
const std::vector<std::string>& case_keys();

/// Reads "torus=4x2x3 model=palm-tiny prefill=ws2d:heads decode=ws2d:batch ...", keys in any order;
/// missing keys take their defaults (batch: the smallest legal one, at least the number of
/// prefixes; prompt: the smallest legal one of at least 4, plus the length of a prefix). `own` are
/// strategies beside the shipped ones; `text`, if given, is what the model's file holds. Throws
/// Error: "case_c0" (no key=value), "case_c1" (unknown key, the nearest named), "case_c2" (repeated
/// key), "case_c3" (a value that is not a number or is out of range), "case_numerics" (an unknown
/// word for `numerics`, or another key that contradicts it), "case_model" (block= beside a model's
/// text); and what parse_row_lengths, parse_prefix, read_model, parse_block, Torus, Strategy and
/// the setters of numerics_keys() throw.
Case parse_case(std::string_view line, const std::vector<Strategy>& own = {},
                const ModelText* text = nullptr);

/// Prints every key in one fixed order; decode's torus, lengths, prefixes, padding and sampling
/// only if given. parse_case(print_case(c)) == c. Phases that are layer programs are left out, and
/// so is decode after a prefill program without decode steps.
std::string print_case(const Case& c);

/// Throws Error("case_split", ...) if the case decodes on a torus of its own, which `what` ("a
/// trace") does not support.
void require_one_torus(const Case& c, std::string_view what);

/// Throws Error("case_model", ...) if the case's model is a text, which `what` ("a golden") does
/// not support.
void require_keys(const Case& c, std::string_view what);

/// Throws Error("case_model", ...) if the case's model is a text, and a key is given that is not
/// for it (engine/run/text_keys.h): layer programs and prefix; lengths, padding and regime=field
/// where a line of the text has no meaning with them.
void require_keys_of_text(const Case& c);

/// Returns false for a text with `top`, or with `within` of other values than integers of
/// positions: both ask for the order of numbers, and those of a field have none.
bool has_meaning_in_field(const ModelConfig& model);

/// Returns true if a phase is a user's layer program.
bool has_program(const Case& c);

/// Multiply-adds of the unsharded model over the whole case: the oracle's work.
double multiply_adds(const Case& c);

/// Prints the case's line, as print_case does.
std::ostream& operator<<(std::ostream& out, const Case& c);

}  // namespace shardproof
