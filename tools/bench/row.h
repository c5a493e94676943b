#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/cost.h"

namespace shardproof::bench {

/// What a figure is, for its printing.
enum class Unit { ratio, bytes, seconds, per_minute, share };

/// What is wanted of a figure.
struct Target {
  double value;
  bool at_least = false;  ///< else at most
};

/// By which clock a figure must meet its target: processor time, which other work on the machine
/// hardly lengthens; the wall clock, where several threads are the point; or both, where whole
/// processes are compared as a user meets them; or neither, of what no clock measures.
enum class Decides { processor, wall, both, neither };

/// One measurement of a row.
struct Sample {
  Cost ours;
  std::optional<Cost> theirs = {};  ///< of a ratio the other side
  /// What the row states, by either clock. What no clock measures, as bytes, stands in `processor`,
  /// and `wall` is NaN.
  Cost figure;

  static Sample ratio(Cost ours, Cost theirs) { return {ours, theirs, ours / theirs}; }
};

/// A line of the table: what it is called and how it is measured.
struct Row {
  std::string id;     ///< "ffn/64/8"
  std::string group;  ///< the heading that it stands under
  std::string what;   ///< at most 26 columns
  std::optional<Target> target = {};
  Unit unit = Unit::ratio;
  Decides decides = Decides::processor;
  bool once = false;   ///< measured once: already the mean of much, or too long
  bool apart = false;  ///< left out unless --filter is given
  /// Sets up what is measured, and returns what measures it once more. Throws std::exception where
  /// it cannot be measured, or the answer is wrong.
  std::function<std::function<Sample()>()> start = {};
};

/// The rows, kind by kind; `program` is the file of the program whose processes are measured.
std::vector<Row> ffn_rows();
std::vector<Row> exact_rows();
std::vector<Row> thread_rows();
std::vector<Row> kernel_rows();
std::vector<Row> collective_rows();
std::vector<Row> memory_rows();
std::vector<Row> random_case_rows();
std::vector<Row> process_rows(const std::string& program);

/// All of them, in the order of the table. Processes come first: the system counts a child's memory
/// from what its parent held until then.
std::vector<Row> all_rows(const std::string& program);

}  // namespace shardproof::bench
