#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "engine/run/inference.h"
#include "golden/verify/verify.h"

namespace shardproof {

/// Keeps what one step yielded the first time it ran.
class Recorder : public Observer {
 public:
  struct Done {};
  Recorder(std::string program, std::string value, std::string pass)
      : program_(std::move(program)), value_(std::move(value)), pass_(std::move(pass)) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (op == nullptr || program.name != program_ || declared.name != value_ ||
        !scope.pass.starts_with(pass_))
      return;
    seen = value;
    step = scope.step(program, declared.name);
    throw Done{};
  }

  std::optional<Sharded> seen;
  std::string step;

 private:
  std::string program_, value_, pass_;
};

inline Recorder value_of_step(const OracleMemo::Known& known, const RunPlan& plan,
                              const FaultHooks& faults, Recorder recorder) {
  Threads threads(1);
  try {
    run_inference(plan, known.weights, known.prompt, threads, &recorder, Hazards::hostile(),
                  faults);
  } catch (const Recorder::Done&) {
  }
  return recorder;
}

/// The lowest-numbered chip whose complete shard differs; none for partial data.
inline std::optional<std::string> first_wrong_chip(const Sharded& right, const Sharded& wrong) {
  for (int chip = 0; chip < right.torus().chips(); ++chip) {
    const auto c = static_cast<std::size_t>(chip);
    bool same = true;
    if (right.stores_int32())
      same = right.i32()[c] == wrong.i32()[c];
    else if (!right.holds_partial())
      same =
          std::memcmp(right.f32()[c].data(), wrong.f32()[c].data(), 4 * right.f32()[c].size()) == 0;
    if (!same) return right.torus().name(chip);
  }
  return std::nullopt;
}

}  // namespace shardproof
