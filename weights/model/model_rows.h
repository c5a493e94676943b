#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model/registry.h"

namespace shardproof {

/// The registry's rows of a model that is given as a text (ModelConfig::rows): its named values and
/// weights, and the rows that every model has, of inputs and of sampling.
class ModelRows {
 public:
  virtual ~ModelRows() = default;
  ModelRows(const ModelRows&) = delete;
  ModelRows& operator=(const ModelRows&) = delete;

  const std::vector<ValueRow>& values() const { return values_; }
  const std::vector<WeightRow>& weights() const { return weights_; }
  /// Returns every weight of the model, in file order.
  const std::vector<WeightSpec>& weight_specs() const { return specs_; }
  /// Returns the place, among the text's lines, of the line that makes the value `name` in a layer
  /// (any, if it is of none); -1 if this layer has no such value.
  virtual std::int64_t line_of(std::string_view name, std::int64_t layer) const = 0;
  /// Returns the extent of a letter; 0 if the text does not declare it.
  std::int64_t extent(char letter) const {
    const auto at = extents_.find(letter);
    return at == extents_.end() ? 0 : at->second;
  }
  /// Returns the model as a case line writes it: "my.model,E=64".
  const std::string& line() const { return line_; }

 protected:
  ModelRows() = default;
  /// Returns a copy of a name that lives as long as the rows.
  std::string_view own(std::string_view name) { return names_.emplace_back(name); }

  std::vector<ValueRow> values_;
  std::vector<WeightRow> weights_;
  std::vector<WeightSpec> specs_;
  std::map<char, std::int64_t> extents_;
  std::string line_;

 private:
  std::deque<std::string> names_;
};

}  // namespace shardproof
