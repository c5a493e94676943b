#pragma once

#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/read/dump.h"
#include "golden/trace/verdict/verdict.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// A foreign file's shards, judged against a golden of layouts or of collectives.
struct GoldenComparison {
  dump::Values values;
  dump::Verdict verdict;
  /// For the first different value: another layout, or other partial sums, under which every chip
  /// would hold these bits.
  std::vector<diagnosis::Hypothesis> diagnosis;
};

/// Judges the values of `file` that the golden has, by name and bit for bit on every chip, in the
/// golden's order; as in any trace, `file` states whether they are stacked or shards, and the order
/// of the mesh. A value needs no layout: the golden's applies. Operands are judged, too, and count
/// as inputs. A value with another declared meaning (summand_of, padded) is unknown. Throws Error:
/// "compare_case" (the file has another torus), "dump_mesh", "dump_layout" (another layout than the
/// golden's, or shards that do not fit it), "golden_value" (the golden itself is faulty), and what
/// check() and Layout::parse throw.
GoldenComparison judge_against(const dump::Dump& golden, const dump::Dump& file);

}  // namespace shardproof::corpus
