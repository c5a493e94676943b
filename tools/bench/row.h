#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/cost.h"

namespace shardproof::bench {

/// Unit of a figure, for printing.
enum class Unit { ratio, bytes, seconds, per_minute, share };

/// Required bound of a figure.
struct Target {
  double value;
  bool at_least = false;  ///< otherwise an upper bound
};

/// Clock by which a figure must meet its target: processor time, which other work on the machine
/// hardly affects; the wall clock, for multithreading; both, for whole processes as users
/// experience them; neither, for figures that no clock measures.
enum class Decides { processor, wall, both, neither };

/// One measurement of a row.
struct Sample {
  Cost ours;
  std::optional<Cost> theirs = {};  ///< the other side of a ratio
  /// The row's figure, by either clock. A figure that no clock measures, such as bytes, is in
  /// `processor`, and `wall` is NaN.
  Cost figure;

  static Sample ratio(Cost ours, Cost theirs) { return {ours, theirs, ours / theirs}; }
};

/// A row of the table and how it is measured.
struct Row {
  std::string id;     ///< "ffn/64/8"
  std::string group;  ///< heading of the row
  std::string what;   ///< label, at most 26 columns
  std::optional<Target> target = {};
  Unit unit = Unit::ratio;
  Decides decides = Decides::processor;
  bool once = false;   ///< measured once: already an average, or too slow
  bool apart = false;  ///< skipped unless --filter is given
  /// Sets up the measurement and returns a function that measures once. Throws std::exception if
  /// measuring fails or the result is wrong.
  std::function<std::function<Sample()>()> start = {};
};

/// Rows by kind; `program` is the path of the program whose processes are measured.
std::vector<Row> ffn_rows();
std::vector<Row> exact_rows();
std::vector<Row> thread_rows();
std::vector<Row> kernel_rows();
std::vector<Row> collective_rows();
std::vector<Row> memory_rows();
std::vector<Row> random_case_rows();
std::vector<Row> process_rows(const std::string& program);
std::vector<Row> compare_rows(const std::string& program);

/// Returns all rows in table order. Processes come first: the system starts a child's peak memory
/// at its parent's.
std::vector<Row> all_rows(const std::string& program);

}  // namespace shardproof::bench
