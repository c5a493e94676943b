#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// The composites that engines compute as a whole, and how a Composite names their parts:
enum class CompositeKind : std::uint8_t {
  lookup,       ///< rows of weights[0] by token, times `scale`
  norm,         ///< of operands[0], with the gain weights[0]
  product,      ///< Σ operands[i]·weights[i], times `scale`, plus the biases
  rotation,     ///< of operands[0] by the tables weights[0], of cosines, and weights[1], of sines
  cache,        ///< operands[0], appended in its position
  score,        ///< operands[0], of queries, with operands[1], of cached keys
  maximum,      ///< of operands[0] over the keys
  exponential,  ///< of operands[0] minus operands[1]
  denominator,  ///< the sum of operands[0] over the keys
  mean,         ///< Σ operands[0]·operands[2] over the keys, by operands[1]
  activation,   ///< a function of operands[0], times operands[1] if it is gated
  addition      ///< operands[0] + operands[1]
};

/// A named value as one of these, with all between its operands and it.
struct Composite {
  CompositeKind kind = CompositeKind::addition;
  std::vector<std::string> operands = {};  ///< named values, "in" among them
  std::vector<std::string> weights = {};   ///< by their names in files, as `biases`
  std::vector<std::string> biases = {};    ///< of a norm and a product, in the order they are added
  std::string scale = {};                  ///< a weight or a number; empty: 1
  /// Letters that it sums over: of a product for each term, of all others once or not at all.
  std::vector<std::string> contracted = {};
  bool operator==(const Composite&) const = default;
  bool reads(std::string_view name) const;  ///< whether it has this operand
};

/// Composites with the names of their lines, in the text's order.
using NamedComposites = std::vector<std::pair<std::string, Composite>>;
/// Returns the composites of lines that are exactly such: what a line reads that is not stored may
/// be part of it. A line with a guard, or with a mask that is not causal, is none.
NamedComposites composites_of(const ModelText& text);
/// Returns the composites of a model; of keys one for each checkpoint but sampling's.
NamedComposites composites_of(const ModelConfig& config, NumberFormat weights);
/// Returns the one with this name, or null.
const Composite* find_composite(const NamedComposites& all, std::string_view name);
/// Returns the name of the first of this kind; "" if there is none.
std::string name_of(const NamedComposites& all, CompositeKind kind);

/// Returns whether a value's channels are turned in pairs: a rotation, its operand, or its cache.
bool is_rotated(const NamedComposites& all, std::string_view name);

}  // namespace shardproof
