#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/program/execute.h"

namespace shardproof::faults {

/// The latest value of each name that a run showed, as the steps after it take it.
class Seen : public Observer {
 public:
  void observe(const Scope&, const Program&, const Op*, const ValueDecl& declared,
               const Sharded& value) override {
    latest_[declared.name] = std::make_shared<Sharded>(value);
  }
  const Sharded& at(const std::string& name) const { return *latest_.at(name); }
  std::shared_ptr<const Sharded> shared(const std::string& name) const { return latest_.at(name); }

 private:
  std::map<std::string, std::shared_ptr<const Sharded>> latest_;
};

}  // namespace shardproof::faults
