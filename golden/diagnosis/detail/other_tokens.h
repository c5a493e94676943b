#pragma once

#include <map>
#include <optional>
#include <string>

#include "golden/diagnosis/detail/missing.h"

namespace shardproof::diagnosis {

/// What values of the question's pass are if every token of the vocabulary is at one position.
class OtherTokens {
 public:
  explicit OtherTokens(const Question& question) : q_(question) {}

  /// Returns a value [V,1,...] of one token each; nullopt if it follows from attention, or after
  /// MissingOperands::kProducts products with weights in all.
  std::optional<bounds::IntervalTensor> at(const std::string& id, std::int64_t position);

 private:
  bool add(const std::string& id);

  const Question& q_;
  Step::Change change_;
  std::map<std::string, bounds::IntervalTensor> values_;
  double left_ = MissingOperands::kProducts;
};

}  // namespace shardproof::diagnosis
