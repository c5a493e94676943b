#pragma once

#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/read/dump.h"
#include "golden/trace/verdict/verdict.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// Somebody's shards, held against a golden of layouts or of collectives.
struct Against {
  candidate::Values values;
  candidate::Verdict verdict;
  /// Of the first that is different: under which other layout, or with which other summands, every
  /// chip would hold just this.
  std::vector<diagnosis::Hypothesis> diagnosis;
};

/// Judges the values of `file` that the golden has, by their names and bit for bit on every chip,
/// in the golden's order; what they are, stacked or as shards, and in which order of the mesh,
/// `file` says as any trace does. A value needs no layout: it is the golden's. Operands are judged,
/// too, and count as inputs. A value that says to be something else (summand_of, padded) is
/// unknown. Throws Error: "compare_case" (the file is of another torus), "dump_mesh", "dump_layout"
/// (another layout than the golden's, or other shards than that has), "golden_value" (the golden
/// itself is not as it must be), and what check() and Layout::parse throw.
Against judge_against(const dump::Dump& golden, const dump::Dump& file);

}  // namespace shardproof::corpus
