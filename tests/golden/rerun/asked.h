#pragma once

// A case's exact run, and runs of it made again.
#include <cstdint>
#include <string>
#include <vector>

#include "golden/compare/row_padding.h"
#include "golden/rerun/distances.h"
#include "tests/golden/oracle_run.h"
#include "weights/model/registry.h"

namespace shardproof::rerun {

class ExactCase : public OracleRun {
 public:
  using OracleRun::OracleRun;

  const Tensor& exact(const std::string& id) const { return answer().checkpoints.at(id); }
  RequestedValue asked(const std::string& pass, std::int64_t layer, const std::string& name) const {
    const std::string id = checkpoint_id(pass, layer, name);
    for (std::int64_t i = 0; i < plan.passes.size(); ++i)
      if (plan.passes.at(i).name == pass)
        return {id, &exact(id),
                padding_in_trace(value_row(name, config().rows.get())->dims, exact(id).shape, false,
                                 plan.passes.at(i))};
    return {id, nullptr};
  }
  RequestedValue last_logits() const { return asked(answer().passes.back(), -1, "logits"); }

  /// Of each asked value, by place; `others` are the weights of a wrong run.
  std::vector<std::vector<double>> distances_of(const std::vector<RequestedValue>& asked,
                                                const Arithmetic& arithmetic, int runs = 32,
                                                std::uint64_t seed = 1,
                                                const Weights* others = nullptr) const {
    Threads threads(2);
    return distances({others == nullptr ? weights() : *others, plan.passes, ids, arithmetic}, asked,
                     runs, seed, threads);
  }
  std::vector<double> distances_of(const RequestedValue& asked, const Arithmetic& arithmetic,
                                   int runs = 32, std::uint64_t seed = 1,
                                   const Weights* others = nullptr) const {
    return distances_of(std::vector{asked}, arithmetic, runs, seed, others)[0];
  }
};

inline const std::string kShape = "E=32,F=48,H=4,K=2,Q=8,V=24";
/// The keys are of the case, those that begin with a comma of the model.
inline std::string line_of(const std::string& keys) {
  return "batch=2 prompt=4 chunk=3 gen=3 seed=2 "
         "model=palm-tiny,layers=2," +
         kShape + keys;
}

}  // namespace shardproof::rerun
