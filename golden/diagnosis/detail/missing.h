#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// Ends the words of what is said of such a value.
inline constexpr std::string_view kLacking = ", which the dump lacks";

/// The values of the layer that the question's follows from, and that the dump lacks.
struct MissingOperands {
  /// The most products with weights, and numbers, that all candidates of one value are followed
  /// through.
  static constexpr double kProducts = 0x1p28;

  explicit MissingOperands(const Question& question);

  std::vector<std::string> ids;  ///< each behind one that is computed from it
  double products =
      0.0;  ///< how many the value and these are made of, and how many numbers these have
};

}  // namespace shardproof::diagnosis
