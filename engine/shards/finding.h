#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/shards/reach.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// What finds that a run is wrong: the type check, the comparison of replicas, the judge of values,
/// or the run itself, which could not go on.
enum class Detector { types, replicas, values, run };
std::string_view to_string(Detector detector);

/// One thing that a detector found. A finding is never a caller's mistake, which is thrown.
struct Finding {
  Detector detector = Detector::values;
  /// The rule: "all_gather_c3", "hazard_replicas"; none of values, and of what no rule foresees.
  std::string label = {};
  /// Of all but values, what the detector says, one line.
  std::string message = {};

  std::string pass = {};  ///< "decode.1"; of types the first that the program is wrong in
  /// The step's id: "decode.1.layer0.hr", of types in the first layer; the program's name where the
  /// step has no result. Of a program that is checked by itself, without a run, the value's name.
  std::string step = {};
  std::string op = {};          ///< "reduce_scatter(h, F, x)"; "input" for an input of a program
  std::string checkpoint = {};  ///< what the value was declared to be: "decode.1.layer0.gate"
  std::string where = {};       ///< "p.txt line 14: " of a program file

  std::string chip = {};  ///< "(1,0,2)"; of a partial, the first chip of the summed group
  Shape index = {};       ///< of the first wrong element: global, of replicas in the chip's shard
  std::string expected = {}, actual = {};  ///< value and bits
  /// Of values; none where one has another shape or number of elements than it must have.
  std::optional<Reach> reach = {};

  /// One line: the first wrong element, or the label and what the detector says.
  std::string to_string() const;
};

/// What the detectors of one run have found.
class Findings {
 public:
  /// When a run ends: at the first finding, or only where it cannot go on.
  enum class Until { first, all };

  explicit Findings(Until until = Until::first) : until_(until) {}

  /// Of `first`, the run ends here; as it does where the run itself is what found it.
  void add(Finding finding);
  /// The run ends, whatever was found.
  void end() { ended_ = true; }
  bool ended() const { return ended_; }
  const std::vector<Finding>& all() const { return all_; }

 private:
  Until until_;
  bool ended_ = false;
  std::vector<Finding> all_;
};

/// All that was found of what the caller gave, a layer program: a caller's mistake, and as an Error
/// what was found first.
class FindingsError : public Error {
 public:
  /// At least one finding.
  explicit FindingsError(std::vector<Finding> findings);
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  std::vector<Finding> findings_;
};

}  // namespace shardproof
