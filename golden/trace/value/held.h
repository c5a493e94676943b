#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "golden/trace/claim/claim.h"
#include "golden/trace/layout/conventions.h"
#include "golden/trace/layout/subject.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::candidate {

/// A value as a trace's writer has it on each chip, and which element of the model's value each of
/// the numbers is: by the layout that the writer declares, and by the writer's conventions.
struct Held {
  static constexpr std::int64_t kNone = Place::kNone;

  std::string name;  ///< in the file
  Subject subject;
  /// Dims in the writer's order. Without axes and with one chip where the file has it whole.
  Layout layout;
  Torus torus;  ///< 1x1x1 where the file has it whole
  bool whole = false;
  int summands = 1;  ///< that the writer keeps of each number: a sum of several is not rounded
  dump::Encoding encoding = dump::Encoding::f32;
  /// By chip; empty where the file lacks it.
  std::vector<std::vector<double>> shards;
  /// Of a number that is the sum of several summands the sum of their sizes; else empty.
  std::vector<std::vector<double>> sizes;
  /// Of each number of a shard its element in the model's value, row-major, or kNone, as of padding
  /// of rows that are shorter than others.
  std::vector<std::vector<std::int64_t>> places;
  /// Which elements of the model's value are such padding; empty: none.
  std::vector<bool> padding;
  /// What the writer's number times this is the model's, by element; empty: 1. The writer's units.
  std::vector<double> units;
  /// The arithmetic of this value, where it is not the trace's; and whether its bits are claimed.
  std::optional<bounds::Declared> declared;
  bool exact = false;
  bool own_wire = false;  ///< it says itself how often its partial sums are rounded on their way
  bool given = false;     ///< an operand of what follows, whatever it is
  bool misfit = false;    ///< its array is not of the model's shape, or of no type that is read
  std::string why_not;    ///< why it is not judged; then `shards` are empty but of operands
  std::string note;       ///< how it was read, where that is not said by the trace

  const bounds::Declared& declared_or(const bounds::Declared& of_trace) const {
    return declared ? *declared : of_trace;
  }
  bool padded(std::int64_t element) const {
    return !padding.empty() && padding[static_cast<std::size_t>(element)];
  }
  double unit(std::int64_t element) const {
    return units.empty() ? 1.0 : units[static_cast<std::size_t>(element)];
  }
  double size(std::size_t chip, std::size_t i) const {
    return sizes.empty() ? std::abs(shards[chip][i]) : sizes[chip][i];
  }
  /// The chips whose summands add up to what the first of them, `chip`, stands for; of a value that
  /// is not partial the chip alone. None where it is not the first, or the file lacks one of them.
  std::vector<int> group(int chip) const;
  /// Whether the file has fewer digits than values of this format: then it has them rounded.
  bool coarser_than(bounds::Format format) const;
  /// Whether it has f64 numbers that are no f32.
  bool finer_than_f32() const;
  /// Whether every element is there but padding, of partial sums all summands; of copies one will
  /// do.
  bool complete() const;
};

/// A value of the file that is not one of the model's, or that nothing can be said of.
struct Unknown {
  std::string name, why;
};

/// All values of a trace, in its order: as `order` says, else by passes. Of an array that does not
/// fit (no layout where it needs one; one that its shape is not of, or whose dims are not the
/// value's; elements of no type that is read) the value is not judged: it has no shards, and says
/// why. Throws Error: "dump_attribute" (fused, along, summand_of, same_as, given, arithmetic that
/// cannot mean anything), "compare_given" (a pattern that no name is of).
struct Values {
  /// How an array lies on chips, as the writer declares it, also one that the file has whole or
  /// that is the same as another.
  struct Laid {
    Subject subject;
    Layout layout;
    bool plain = true;  ///< each chip has a block of the model's value
  };

  std::vector<Held> held;
  std::vector<Laid> laid;
  std::vector<Unknown> unknown;
  std::int64_t copies = 0;  ///< values that are the same as another (`same_as`): judged with it
};
/// `weights` as stored for the run.
Values read_values(const dump::Dump& dump, const Claim& claim, const Weights& weights);

}  // namespace shardproof::candidate
