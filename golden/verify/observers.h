#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/program/execute.h"

namespace shardproof {

/// Several observers of one run: each sees every value, in the given order. If one ends the run by
/// an exception, those after it do not see that value.
class Observers : public Observer {
 public:
  explicit Observers(std::vector<Observer*> all) : all_(std::move(all)) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    for (Observer* each : all_) each->observe(scope, program, op, declared, value);
  }
  bool reads_partials() const override {
    return std::any_of(all_.begin(), all_.end(),
                       [](const Observer* each) { return each->reads_partials(); });
  }
  void moved(const Scope& scope, const Program& program, const Op& op,
             std::int64_t elements) override {
    for (Observer* each : all_) each->moved(scope, program, op, elements);
  }
  void crossed(const Scope& scope, const Program& program, const ValueDecl& declared,
               std::int64_t elements) override {
    for (Observer* each : all_) each->crossed(scope, program, declared, elements);
  }

 private:
  std::vector<Observer*> all_;
};

}  // namespace shardproof
