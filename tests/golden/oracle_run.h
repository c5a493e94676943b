#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/run/plan.h"
#include "golden/memo/oracle_memo.h"

namespace shardproof {

/// The oracle's answer to a case on one chip, to be judged as another program's.
class OracleRun {
 public:
  explicit OracleRun(const std::string& keys)
      : OracleRun(make_plan(parse_case("torus=1x1x1 prefill=ws1d decode=ws1d " + keys))) {}
  explicit OracleRun(RunPlan of) : plan(std::move(of)), known_(memo_.get(plan)) {
    for (const auto& [id, tensor] : answer().inputs)
      if (id.ends_with(".ids")) ids[id.substr(0, id.size() - 4)] = tensor;
  }

  const Weights& weights() const { return known_->stored; }
  const ModelConfig& config() const { return weights().config(); }
  const oracle::Answer& answer() const { return known_->answer; }
  const OracleMemo::Known& known() const { return *known_; }
  /// Returns all named values, by id, as dumps have them.
  std::map<std::string, Array<double>> values() const {
    std::map<std::string, Array<double>> all;
    for (const auto& [id, tensor] : answer().checkpoints) {
      all[id] = Array<double>(tensor.shape);
      all[id].data.assign(tensor.data.begin(), tensor.data.end());
    }
    return all;
  }

  RunPlan plan;
  std::map<std::string, IntTensor> ids;  ///< by pass

 private:
  OracleMemo memo_;
  std::shared_ptr<const OracleMemo::Known> known_;
};

}  // namespace shardproof
