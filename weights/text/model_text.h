#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/text/formula.h"
#include "weights/text/ops.h"

namespace shardproof {

/// One contraction of an einsum: the letters of its two operands and of its result.
struct ContractionTerm {
  std::string a, b, result;
  bool operator==(const ContractionTerm&) const = default;
};

/// The formula of a line: a name, a number, or an op applied to expressions.
struct Expression {
  enum class Kind : std::uint8_t { name, number, call };
  Kind kind = Kind::name;
  std::string text = {};                    ///< the name, or the number as written
  ModelOp op = ModelOp::add;                ///< of a call
  std::vector<Expression> args = {};        ///< operands; of an einsum two for each term
  std::vector<ContractionTerm> terms = {};  ///< of an einsum
  /// The words after the operands: {"M"}, {"X", "stored"}, {"Q", "half", "rotary"},
  /// {"H", "KG"}, {"-inf", "0"}.
  std::vector<std::string> parameters = {};
  bool operator==(const Expression&) const = default;
};

/// A line, or a weight, exists in the layers whose flag is true (`if`) or false (`unless`).
struct Guard {
  std::string flag;
  bool value = true;
  bool operator==(const Guard&) const = default;
};

/// How the values of a weight are generated (docs/spec-model-text.md, "Weights"). by_use: the rule,
/// by the first line that reads it.
enum class TextWeightKind : std::uint8_t {
  by_use,
  matrix,
  table,
  gain,
  bias,
  cosines,
  sines,
  slopes
};

/// A section's weight: of every layer in `layer`, otherwise of the model.
struct TextWeight {
  std::string name, letters;
  TextWeightKind kind = TextWeightKind::by_use;
  /// "half" or "interleaved", the rotated channels and theta, for cosines and sines alone.
  std::vector<std::string> parameters;
  std::string from;  ///< its name in weights files; empty: `name`
  std::optional<Guard> guard;
  int line = 0;
};

/// A named value and the expression that defines it.
struct TextLine {
  std::string name, letters;
  std::string where;  ///< the indicator where it exists; empty: everywhere
  Expression expression;
  std::optional<Guard> guard;
  int line = 0;
};

enum class TextSection : std::uint8_t { embedding, layer, head };
inline constexpr TextSection kTextSections[] = {TextSection::embedding, TextSection::layer,
                                                TextSection::head};
std::string_view to_string(TextSection section);
std::string_view to_string(TextWeightKind kind);  ///< "" for by_use
/// Returns the value that a section must define: "embed", "out", "logits".
std::string_view result_of(TextSection section);

struct TextDim {
  char letter;
  std::string words;               ///< "d_model"; empty if it has a formula
  std::optional<Formula> formula;  ///< "H // K"
  int line = 0;
};

struct TextNumber {
  std::string name;
  std::optional<Formula> formula;  ///< nullopt: every use of the text must give it
  int line = 0;
};

/// A truth value for each layer.
struct TextFlag {
  std::string name;
  int line = 0;
};

/// The extent, number or flag of a use that gives none.
struct SmallSize {
  std::string value;  ///< "24"; of a flag "10"
  int line = 0;
};

/// A model as a text: its dims, numbers and flags, and the named values of its sections
/// (docs/spec-model-text.md).
struct ModelText {
  struct Section {
    std::vector<TextWeight> weights;
    std::vector<TextLine> lines;
  };

  std::string name, file;  ///< `file` is empty if the text is not of a file
  std::vector<TextDim> dims;
  std::vector<TextNumber> numbers;
  std::vector<TextFlag> flags;
  std::map<std::string, SmallSize> small;  ///< by name: "layers", "E", "local"
  std::array<Section, 3> sections;

  Section& section(TextSection which) { return sections[static_cast<std::size_t>(which)]; }
  const Section& section(TextSection which) const {
    return sections[static_cast<std::size_t>(which)];
  }
  const TextDim* dim(char letter) const;
  const TextNumber* number(std::string_view word) const;
  const TextFlag* flag(std::string_view word) const;
  /// Returns whether a word is a number: a literal, a declared number, or a letter's extent.
  bool is_number(std::string_view word) const;
  /// Returns "FILE line 7: ", as errors begin.
  std::string where(int line) const;
};

/// Letters that every text has: rows, positions of a pass, slots of the caches.
inline constexpr std::string_view kGivenLetters = "BLM";
/// The most that is read: lines of a text, bytes of a line, calls within calls.
inline constexpr int kMostTextLines = 10'000, kMostLineBytes = 4096, kMostNesting = 64;

/// Reads a text and checks it by the rules model_c1 to model_c13. Throws Error, each with file,
/// line and value: "model_c0" (not a statement, or beyond a limit), "model_c2" (a small size given
/// twice), "model_c5" (operands or parameters of another form than the op's), "model_c1" (a name,
/// letter, op or flag that is not defined), and the rules of weights/text/rules.h.
ModelText parse_model_text(std::string_view text, std::string_view file = "");

/// The inverse of parse_model_text up to comments and blanks: its canonical form.
std::string print_model_text(const ModelText& text);
/// Reads one expression. Throws Error: "model_c0" (not one, or too deep), "model_c1" (an unknown
/// op, with the nearest), "model_c5" (operands or parameters of another number or form than the
/// op's).
Expression parse_expression(std::string_view text);
/// The inverse of parse_expression up to blanks.
std::string print(const Expression& expression);
/// Returns 64 bits of FNV-1a over the canonical form, which name the model in a line.
std::uint64_t hash_of(const ModelText& text);

}  // namespace shardproof
