#pragma once

// Dumps of a small run, right and with one number changed, as `compare` judges them.
#include <string>
#include <vector>

#include "tests/golden/trace/written.h"
#include "tools/report/comparison.h"

namespace shardproof::tools {

class JudgedDump {
 public:
  static constexpr const char* kLine =
      "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 batch=6 prompt=3 gen=2 seed=5";

  /// Every value of the run in shards of some layout, the same for the same seed.
  dump::Dump dump(std::uint64_t seed = 1) const {
    std::mt19937_64 random(seed);
    return run_.trace(run_.values(), "exact", &random);
  }
  Comparison judged(const dump::Dump& dump, const std::string& file = "mine.npz") const {
    return compare(dump, {.file = file, .line = {}, .weights_file = "", .golden = "", .given = {}});
  }
  const dump::ExactRun& run() const { return run_; }

 private:
  dump::ExactRun run_{kLine};
};

}  // namespace shardproof::tools
