#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/shards/reach.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// The detector of a finding: the type check, the comparison of replicas, the judge of values, or
/// the run itself, which could not continue.
enum class Detector { types, replicas, values, run };
std::string_view to_string(Detector detector);

/// One result of a detector. A caller's mistake is not a finding; it is thrown.
struct Finding {
  Detector detector = Detector::values;
  /// The rule: "all_gather_c3", "hazard_replicas"; empty for values and for internal errors.
  std::string label = {};
  /// The detector's message, one line; empty for values.
  std::string message = {};

  std::string pass = {};  ///< "decode.1"; for types the first pass in which the program is wrong
  /// The step's id: "decode.1.layer0.hr", for types in the first layer; the program's name if the
  /// step has no result. For a program checked by itself, without a run, the value's name.
  std::string step = {};
  std::string op = {};          ///< "reduce_scatter(h, F, x)"; "input" for an input of a program
  std::string checkpoint = {};  ///< declared role of the value: "decode.1.layer0.gate"
  std::string where = {};       ///< "p.txt line 14: " for a program file

  std::string chip = {};  ///< "(1,0,2)"; for a partial sum, the first chip of the summed group
  Shape index = {};  ///< index of the first wrong element: global, for replicas in the chip's shard
  std::string expected = {}, actual = {};  ///< value and bits
  /// For values; nullopt if a value has a wrong shape or number of elements.
  std::optional<Reach> reach = {};

  /// One line: the first wrong element, or the label and what the detector says.
  std::string to_string() const;
};

/// The findings of one run.
class Findings {
 public:
  /// When a run ends: at the first finding, or only when it cannot continue.
  enum class Until { first, all };

  explicit Findings(Until until = Until::first) : until_(until) {}

  /// Adds a finding. Ends the run with Until::first, and always if the run is the detector.
  void add(Finding finding);
  /// Ends the run, whatever was found.
  void end() { ended_ = true; }
  bool ended() const { return ended_; }
  const std::vector<Finding>& all() const { return all_; }

 private:
  Until until_;
  bool ended_ = false;
  std::vector<Finding> all_;
};

/// Findings in what the caller gave (a layer program), thrown since they are the caller's mistake.
/// As an Error it carries the first of them.
class FindingsError : public Error {
 public:
  /// `findings` must not be empty.
  explicit FindingsError(std::vector<Finding> findings);
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  std::vector<Finding> findings_;
};

}  // namespace shardproof
