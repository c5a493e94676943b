#include "engine/run/cache_crossing.h"

#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "engine/collectives/crossing.h"
#include "engine/collectives/transfer.h"
#include "engine/program/step.h"

namespace shardproof {
namespace {

const ValueDecl& taken_as(const Program& program, const std::string& role) {
  for (const ValueDecl& input : program.inputs)
    if (input.role.to_string() == role) return input;
  return program.declared(role);  // throws
}

}  // namespace

Sharded CacheCrossing::arrived(const Sharded& cache, const ValueDecl& as) const {
  Moves plan = crossing_moves(cache.torus(), cache.layout(), target_, as.layout, cache.shape());
  if (execution_.faults != nullptr && execution_.faults->crossing) {
    Moves changed = plan;
    try {
      execution_.faults->crossing(execution_.scope, program_, as, changed);
    } catch (...) {
      throw HookFailed{std::current_exception()};
    }
    require_executable(changed, plan, cache.torus().chips());
    plan = std::move(changed);
  }
  if (execution_.observer != nullptr)
    execution_.observer->crossed(execution_.scope, program_, as, pulled(plan));
  return transfer(cache, plan, target_, as.layout, cache.shape(), execution_.threads);
}

SharedValue CacheCrossing::of(const SharedValue& cache, const std::string& role) const {
  if (execution_.findings != nullptr && execution_.findings->ended()) return nullptr;
  const HazardScope hazards(execution_.hazards, execution_.threads);
  const ValueDecl& as = taken_as(program_, role);
  try {
    SharedValue made = std::make_shared<Sharded>(arrived(*cache, as));
    if (execution_.hazards.poison) std::const_pointer_cast<Sharded>(cache)->poison();
    return made;
  } catch (const HookFailed& hook) {
    std::rethrow_exception(hook.error);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error& error) {
    if (execution_.findings == nullptr) throw;
    Finding found{.detector = Detector::run};
    found.label = error.label();
    found.message = error.message();
    found.pass = execution_.scope.pass;
    found.step = execution_.scope.step(program_, as.name);
    found.op = "crossing";
    execution_.findings->add(std::move(found));
    execution_.findings->end();  // there is no value to continue with
    return nullptr;
  }
}

}  // namespace shardproof
