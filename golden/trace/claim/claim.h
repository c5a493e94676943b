#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/case.h"
#include "golden/bounds/number/carried.h"
#include "golden/trace/claim/mesh.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::candidate {

/// What the writer of a trace says of it as a whole (docs/trace-format.md).
struct Claim {
  Case given;
  bool exact = false;            ///< the bits of the exact regime are claimed
  bool arithmetic_said = false;  ///< else the least is claimed
  bounds::Declared declared;
  Mesh mesh;
  bool weights_of_file = false;
  bool masked_any = false;
  std::optional<Rope> pairs;  ///< the order of rotated channels, where it is not the model's
  double score_unit = 1.0;    ///< what scores and maxima are multiplied by to be the model's
  double logits_unit = 1.0;   ///< likewise logits
  bool gain_folded = false;
  bool ids_are_given = false;         ///< the prompt is the case's own, so that ids are judged
  std::vector<std::int64_t> rows;     ///< what each row draws its tokens by; empty: its number
  std::vector<std::int64_t> heads;    ///< the model's head of each of the writer's; empty: the same
  std::vector<std::string> operands;  ///< patterns of names whose values are given, not judged
};

/// Reads the attributes of a trace. `line` replaces the case of the trace, or must agree with it
/// in all that the values depend on. Throws Error: "dump_format" (format or version),
/// "compare_case" (no case; another one than the trace's, the key named), "dump_attribute" (an
/// attribute that cannot mean anything: name and value), what parse_case and Mesh::parse throw.
Claim read_claim(const dump::Attributes& attributes, const std::optional<std::string>& line);

/// That two cases agree in what the values of a run depend on: neither torus nor strategies, nor
/// how sums are made. Throws Error("compare_case", ...) naming the key.
void require_same_values(const Case& given, const Case& theirs);

}  // namespace shardproof::candidate
