#pragma once

#include <memory>
#include <string>
#include <vector>

#include "golden/trace/read/dump.h"
#include "golden/trace/value/dumped_value.h"
#include "weights/base/tensor.h"
#include "weights/storage/weights.h"

namespace shardproof::dump {

/// A value in the model's order and units, put together by its writer's layout. Of replicas the
/// lowest-numbered chip's numbers; partial sums are added.
struct WholeValue {
  Shape shape;
  std::vector<double> numbers;
  std::vector<bool> present;   ///< false for padding, and for elements that the trace lacks
  bool copies_differ = false;  ///< replicas on several chips have different bits
  bool computed = false;       ///< sums of parts, or in other units: not the writer's own bits
};

WholeValue whole_value(const DumpedValue& dumped);

/// One value of a trace, and the arrays that hold its numbers, lent by the trace.
struct ValueAgain {
  std::unique_ptr<const Dump> arrays;
  DumpedValue value;
};
/// Reads one value of a trace again, by its array's name and its title: only its numbers are held.
/// Returns a misfit without numbers if the trace has no such value. The trace outlives the result.
ValueAgain read_value(const Dump& dump, const std::string& name, const std::string& title,
                      const Claim& claim, const Weights& weights);

/// Returns the format in which the writer stored a value: the declared one, or that of the file
/// where this has fewer digits.
NumberFormat stored_format(const DumpedValue& dumped, const Claim& claim);

/// Returns whether both have the same shards, bit for bit, in the same layout, torus and padding.
bool same_shards(const DumpedValue& a, const DumpedValue& b);

}  // namespace shardproof::dump
