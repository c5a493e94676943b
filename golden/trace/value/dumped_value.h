#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "golden/trace/claim/claim.h"
#include "golden/trace/layout/conventions.h"
#include "golden/trace/layout/subject.h"
#include "golden/trace/value/numbers.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::dump {

/// A value as a trace's writer has it on each chip, with the element of the model's value for each
/// number: by the writer's declared layout and conventions.
struct DumpedValue {
  static constexpr std::int64_t kNone = Places::kNone;

  std::string name;  ///< name in the file
  Subject subject;
  /// Dims in the writer's order. Without axes and with one chip if the file has the value whole.
  Layout layout;
  Torus torus;  ///< 1x1x1 if the file has the value whole
  bool whole = false;
  int terms = 1;  ///< terms that the writer keeps per number; a sum of several is not rounded
  NumberFormat encoding = NumberFormat::f32;
  /// By chip; empty if the file lacks it.
  std::vector<Numbers> shards;
  /// Sum of the parts' magnitudes, if a number is the sum of several parts; otherwise empty.
  std::vector<std::vector<double>> sizes;
  /// places[chip][i]: row-major index of shard element i in the model's value, or kNone for
  /// padding, also that of rows shorter than others.
  std::vector<Places> places;
  /// Flags elements of the model's value that are padding of shorter rows; empty: none.
  std::vector<bool> padding;
  /// Factors from the writer's units to the model's, by element; empty: all 1.
  std::vector<double> units;
  /// declared: this value's arithmetic, if not the trace's; exact: its bits are claimed.
  std::optional<bounds::DeclaredArithmetic> declared;
  bool exact = false;
  bool own_wire = false;  ///< declares its own number of wire roundings
  bool given = false;     ///< an operand of later values, not judged
  bool misfit = false;    ///< its array has another shape or an unsupported element type
  std::string why_not;    ///< why it is not judged; `shards` are then empty, except for operands
  std::string note;       ///< how it was read, if the trace does not say

  const bounds::DeclaredArithmetic& declared_or(const bounds::DeclaredArithmetic& of_trace) const {
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
  /// Returns the chips whose partial sums add up to the value at `chip`, the first of them; `chip`
  /// alone if the layout is not partial. Empty if `chip` is not the first or one is missing.
  std::vector<int> group(int chip) const;
  /// Returns whether the file's encoding has fewer digits than `format`, so it rounds.
  bool coarser_than(NumberFormat format) const;
  /// Returns whether it has f64 numbers that are not representable in f32.
  bool finer_than_f32() const;
  /// Returns whether every element but padding is present, with all its partial sums; one of its
  /// replicas suffices.
  bool complete() const;
};

/// Returns the whole value in the model's units and order, assembled from the chips. Partial sums
/// are added; of replicas the lowest-numbered chip's is taken, with the others' distance from it as
/// the radius. Returns nullopt if an element is missing.
std::optional<bounds::IntervalTensor> assembled_value(const DumpedValue& dumped);

/// A value of the file that is not one of the model's, or that cannot be judged.
struct Unknown {
  std::string name, why;
};

/// All values of a trace, by `order` if declared, otherwise by passes. The value of an array that
/// does not fit (no layout where it needs one; a layout that contradicts its shape or the value's
/// dims; an unsupported element type) is not judged: it has no shards, and says why. Throws Error:
/// "dump_attribute" (fused, along, summand_of, same_as, given, meaningless arithmetic),
/// "compare_given" (a pattern that matches no name).
struct Values {
  /// The layout that the writer declares for an array, also for one that the file has whole or that
  /// is the same as another.
  struct Laid {
    Subject subject;
    Layout layout;
    bool plain = true;  ///< each chip has a block of the model's value
  };

  std::vector<DumpedValue> dumped;
  std::vector<Laid> laid;
  std::vector<Unknown> unknown;
  std::int64_t copies = 0;  ///< values declared the same as another (`same_as`), judged with it
};
/// `weights` as stored for the run. The values show numbers of the dump, which outlives whatever
/// reads them.
Values read_values(const dump::Dump& dump, const Claim& claim, const Weights& weights);

}  // namespace shardproof::dump
