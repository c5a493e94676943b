// Everything that a run shows its judge, kept, to be shown again with something changed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/inference.h"
#include "golden/memo/oracle_memo.h"

namespace shardproof {

/// One value as it was shown. Program and declaration are the plan's.
struct Shown {
  Scope scope;
  const Program* program;
  const Op* op;
  const ValueDecl* declared;
  Sharded value;

  std::string step() const { return scope.step(*program, declared->name); }
  void to(Observer& judge) const { judge.observe(scope, *program, op, *declared, value); }
  void to(Observer& judge, const Sharded& changed) const {
    judge.observe(scope, *program, op, *declared, changed);
  }
};

/// A run of a case. Not to be copied: what was shown points into the plan.
class RecordedRun {
 public:
  explicit RecordedRun(const std::string& line) : RecordedRun(parse_case(line)) {}
  explicit RecordedRun(const Case& c) : plan(make_plan(c)) {
    known = memo.get(plan);
    Recorder recorder(shown);
    Threads threads(1);
    generated = run_inference(plan, known->weights, known->prompt, threads, &recorder);
  }
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  OracleMemo memo;
  RunPlan plan;
  std::shared_ptr<const OracleMemo::Known> known;
  std::vector<Shown> shown;
  IntTensor generated;

 private:
  class Recorder : public Observer {
   public:
    explicit Recorder(std::vector<Shown>& shown) : shown_(shown) {}
    void observe(const Scope& scope, const Program& program, const Op* op,
                 const ValueDecl& declared, const Sharded& value) override {
      shown_.push_back({scope, &program, op, &declared, value});
    }

   private:
    std::vector<Shown>& shown_;
  };
};

}  // namespace shardproof
