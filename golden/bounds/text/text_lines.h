#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "engine/layout/torus.h"
#include "golden/bounds/text/interval_math.h"
#include "golden/bounds/value/derivation.h"
#include "oracle/walk/weights.h"
#include "weights/base/error.h"
#include "weights/text/text_model.h"

namespace shardproof::bounds {

/// The flat lines of a text (weights/text/flat.h) as bounds read them: no line stores its own
/// value, and each has its arithmetic.
class TextLines {
 public:
  using Place = Derivation::Place;

  /// `config` is a text's, and outlives the lines.
  explicit TextLines(const ModelConfig& config);

  const ModelText& text() const { return text_; }
  const TextModel& model() const { return model_; }
  bool of_layer(const std::string& name) const { return of_layer_.contains(name); }
  /// Returns whether a line makes integers of positions alone.
  bool integral(const std::string& name) const { return integral_.contains(name); }
  /// Returns whether a line's numbers are marks, 0 or 1.
  bool marks(const std::string& name) const { return marks_.contains(name); }
  /// Returns the line of a value, or null if the text has none of this name in the layer.
  const TextLine* line_of(const Place& place) const;
  std::string id_of(const std::string& pass, std::int64_t layer, std::string_view name) const;
  /// Returns the id of a value that the line of another one reads.
  std::string id_of_operand(const Place& place, std::string_view name) const;
  /// Returns the line of the model's text that a flat line is of: its own, or the one that it is
  /// nested in.
  const std::string& line_of_text(const std::string& name) const { return line_of_text_.at(name); }
  bool is_matrix_product(const TextLine& line) const;
  /// Returns how a line is computed by a program of this arithmetic on this torus, if one is known.
  LineArithmetic arithmetic(const TextLine& line, DeclaredArithmetic by,
                            const std::optional<Torus>& torus, bool in_loop, bool exactly) const;
  /// Returns a weight as lines of this arithmetic read it: tables of RoPE may be rounded first.
  /// `stored`, `sizes`, `id` and `shape` are those of oracle::graph::weight_of, which it throws as.
  oracle::graph::Lettered<Estimate> weight(const std::shared_ptr<const Tensor>& stored,
                                           const TextSizes& sizes, const TextWeight& weight,
                                           const std::string& id, const Shape& shape,
                                           const DeclaredArithmetic& by) const;
  /// Returns what later lines read of a value that the dump lacks, given the derived one.
  IntervalTensor as_read(const TextLine& line, const IntervalTensor& expected,
                         const DeclaredArithmetic& by) const;

 private:
  const ModelConfig& config_;
  const TextModel& model_;
  ModelText text_;
  std::set<std::string> of_layer_, of_head_;  ///< names of lines of the sections
  std::set<std::string> integral_, marks_;
  std::map<std::string, std::string> line_of_text_;
};

}  // namespace shardproof::bounds
