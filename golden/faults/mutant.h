#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"

namespace shardproof::faults {

/// A kind of fault that partitioned inference has in the field.
struct FaultClass {
  std::string_view name;  ///< "M1"
  std::string_view what;  ///< "a collective is dropped"
};
/// The classes M1 to M15, in order.
std::span<const FaultClass> all_classes();

/// A place in a run's plan where a fault can be planted: a step of one program of one phase, by the
/// name of its first result, or a weight.
struct Site {
  std::string phase;    ///< "prefill", "decode", "hand_over" or "weights"
  std::string program;  ///< "embed", "layer", "head", "sample", "hand_over"
  std::string value;    ///< "yr"; of a weight its name in programs, "wq"

  /// Returns "decode.layer.yr".
  std::string to_string() const;
  /// Throws Error("faults_only", ...) unless the text has three words with dots between them.
  static Site parse(std::string_view text);
  bool operator==(const Site&) const = default;
};

struct Operator;

/// One operator at one site with one value of its parameter.
struct Mutant {
  const Operator* how = nullptr;
  Site site;
  std::string parameter = "-";  ///< "-" if the operator has none

  /// Returns "OPERATOR SITE PARAMETER", which --only takes.
  std::string to_string() const;
};

}  // namespace shardproof::faults
