#pragma once

#include <memory>
#include <string>
#include <vector>

#include "golden/memo/oracle_memo.h"
#include "golden/trace/read/dump.h"
#include "tools/binding/boundary.h"
#include "tools/report/comparison.h"
#include "tools/report/pair_comparison.h"
#include "weights/maps/load_model.h"
#include "weights/storage/weights.h"

namespace shardproof::binding {

struct WeightsObject : ShardproofObject {
  explicit WeightsObject(Weights of) : weights(std::move(of)) {}
  Weights weights;
  std::map<std::string, std::shared_ptr<const Tensor>> lent = {};  ///< whose data the caller has
};

/// A value of the unsharded model: f32 or i32.
struct ReferenceValue {
  std::string id, dims;
  Shape shape;
  bool integer = false;
  const void* numbers = nullptr;
};

struct ReferenceObject : ShardproofObject {
  std::shared_ptr<const OracleMemo::Known> known;
  std::vector<ReferenceValue> values;  ///< in the order of the run
};

struct DumpObject : ShardproofObject {
  dump::Dump dump;
};

struct ComparisonObject : ShardproofObject {
  explicit ComparisonObject(tools::Comparison of) : comparison(std::move(of)) {}
  tools::Comparison comparison;
};

struct PairObject : ShardproofObject {
  explicit PairObject(tools::PairComparison of) : pair(std::move(of)) {}
  tools::PairComparison pair;
};

/// A model of a text, in the sizes that a map gives for a config.
struct MappedObject : ShardproofObject {
  MappedObject(ModelMap of_map, MappedModel of) : map(std::move(of_map)), mapped(std::move(of)) {}
  ModelMap map;
  MappedModel mapped;
  std::vector<std::string> unread;  ///< entries of the config that no line of the map reads
};

}  // namespace shardproof::binding
