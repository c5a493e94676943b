#pragma once

#include <memory>
#include <set>
#include <string>

#include "golden/bounds/text/text_lines.h"
#include "weights/storage/weights.h"
#include "weights/text/composites.h"

namespace shardproof::diagnosis {

/// The graph of a model: its text, or that which its keys print as (weights/text/writer.h).
class Graph {
 public:
  explicit Graph(const Weights& weights);

  bool of_keys() const { return of_keys_; }
  const bounds::TextLines& lines() const { return *lines_; }
  const TextModel& model() const { return lines_->model(); }
  /// Returns whether a line of the embedding depends on positions alone, not on tokens.
  bool positional(const std::string& name) const { return positional_.contains(name); }
  const NamedComposites& composites() const { return composites_; }
  /// Returns whether a letter counts heads.
  bool heads(char letter) const;
  /// Returns whether several query heads H may share each kv head K.
  bool groups() const;
  /// Returns the indicators of where a line's value exists.
  std::set<std::string> indicators(const TextLine& line, std::int64_t layer) const;

 private:
  bool of_keys_;
  ModelConfig config_;  // the text's
  std::unique_ptr<const bounds::TextLines> lines_;
  std::set<std::string> positional_;
  NamedComposites composites_;
};

}  // namespace shardproof::diagnosis
