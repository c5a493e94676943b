// Chips that share a result, and chips that compute alone: the same values, and every fault is
// found in both modes; but for one of a chip whose result nobody computed, which only the second
// shows.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/collectives/chip_groups.h"
#include "engine/run/inference.h"
#include "golden/verify/verify.h"

namespace shardproof {
namespace {

constexpr const char* kCases[] = {
    "torus=3x1x2 model=palm-tiny,layers=1,E=36,F=36,H=6,K=3,Q=4,V=36 prefill=wg-xyz:batch "
    "decode=ws2d:batch batch=6 prompt=4 chunk=2 gen=2 seed=3",
    "torus=1x2x3 model=palm-tiny,layers=1,E=36,F=36,H=6,Q=4,V=36 prefill=ws2d:heads "
    "decode=ws1d:heads batch=6 prompt=3 gen=2 seed=4 block=serial weights=int8"};

/// Every value of a run, chip after chip, as bytes; and how many buffers hold them.
class Recorder : public Observer {
 public:
  void observe(const Scope& scope, const Program& program, const Op*, const ValueDecl& declared,
               const Sharded& value) override {
    std::string all = scope.step(program, declared.name);
    const auto put = [&](const auto& held) {
      for (const auto& of_chip : held)
        all.append(reinterpret_cast<const char*>(of_chip.data()),
                   of_chip.size() * sizeof(of_chip[0]));
    };
    if (value.holds_partial())
      put(value.partial().values), put(value.partial().bounds);
    else if (value.holds_field())
      put(value.field().values);
    else if (value.stores_int32())
      put(value.i32());
    else
      put(value.f32());
    values.push_back(std::move(all));
    ChipGroups groups(value.torus());
    groups.split(value);
    buffers += groups.first_chips().size();
    chips += static_cast<std::size_t>(value.torus().chips());
  }

  std::vector<std::string> values;
  std::size_t buffers = 0, chips = 0;
};

Recorder recorded(const std::string& line, const Hazards& hazards, int threads) {
  Recorder recorder;
  OracleMemo memo;
  EXPECT_EQ(verify_case(parse_case(line), memo,
                        {.threads = threads, .hazards = hazards, .observer = &recorder})
                .verdict,
            Verdict::equal)
      << line;
  return recorder;
}

TEST(SharedAndAlone, HaveTheSameBits) {
  for (const std::string line : kCases)
    for (const char* regime : {"", " regime=f32 schedule=ring", " regime=field"}) {
      const Recorder alone = recorded(line + regime, Hazards::full(), 1);
      EXPECT_EQ(alone.buffers, alone.chips);
      for (const int threads : {1, 2, 7}) {
        const Recorder shared = recorded(line + regime, Hazards::hostile(), threads);
        EXPECT_LT(shared.buffers, shared.chips);
        EXPECT_EQ(shared.values, alone.values) << line << regime << " threads " << threads;
        EXPECT_EQ(recorded(line + regime, Hazards{}, threads).values, alone.values);
      }
    }
}

Judgement judged(const std::string& line, const FaultHooks& faults, const Hazards& hazards) {
  OracleMemo memo;
  return verify_case(parse_case(line), memo, {.hazards = hazards, .faults = faults});
}

/// Adds to the last number that one chip's executor makes, in every step of a program's layer.
FaultHooks executor_fault(int of_chip, bool& computed) {
  FaultHooks faults;
  faults.computed = [of_chip, &computed](const Scope&, const Program& program, const Op& op,
                                         const ValueDecl&, int chip, std::span<std::byte> made) {
    if (chip != of_chip || program.name != "layer" || made.empty() ||
        op.kind != OpKind::reduce_scatter)
      return;
    computed = true;
    float last = 0;
    std::memcpy(&last, made.data() + made.size() - sizeof last, sizeof last);
    last += 1.0F;
    std::memcpy(made.data() + made.size() - sizeof last, &last, sizeof last);
  };
  return faults;
}

TEST(SharedAndAlone, AnExecutorFaultOfAnyChipShowsWhereItComputesByItself) {
  // Of 1D weight-stationary layers every chip gets its own block of every sum; of 2D ones over
  // heads, replicas along the axes of a block share.
  for (const std::string line : kCases)
    for (int chip = 0; chip < 6; ++chip) {
      bool computed = false;
      const Judgement alone = judged(line, executor_fault(chip, computed), Hazards::full());
      EXPECT_TRUE(computed);
      EXPECT_EQ(alone.verdict, Verdict::different) << line << chip;
      computed = false;
      const Judgement shared = judged(line, executor_fault(chip, computed), Hazards::hostile());
      EXPECT_EQ(shared.verdict, computed ? Verdict::different : Verdict::equal) << line << chip;
    }
}

TEST(SharedAndAlone, AnExecutorFaultOfACopyShowsInFullAlone) {
  // Gathered over all axes, W_gate is made once, for the first chip.
  const Case c = parse_case(kCases[0]);
  for (int of_chip = 0; of_chip < 6; ++of_chip) {
    FaultHooks faults;
    faults.computed = [&](const Scope& scope, const Program& program, const Op& op,
                          const ValueDecl& declared, int chip, std::span<std::byte> made) {
      if (chip == of_chip && program.name == "layer" && op.kind == OpKind::all_gather &&
          scope.pass == "prefill.c0" && declared.role.kind == Role::Kind::weight &&
          declared.layout == Layout::parse("EF"))
        made.back() ^= std::byte{1};
    };
    EXPECT_EQ(judged(kCases[0], faults, Hazards::full()).verdict, Verdict::different) << of_chip;
    EXPECT_EQ(judged(kCases[0], faults, Hazards::hostile()).verdict,
              of_chip == 0 ? Verdict::different : Verdict::equal)
        << of_chip;
  }
}

}  // namespace
}  // namespace shardproof
