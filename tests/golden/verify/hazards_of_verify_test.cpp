// Cases are judged with all hazards on unless somebody says otherwise, and they are in effect while
// the chips work: what golden/verify/verify.h promises of its defaults.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "engine/numeric/buffer.h"
#include "engine/run/inference.h"
#include "golden/verify/verify.h"

namespace shardproof {
namespace {

constexpr const char* kCase =
    "torus=1x2x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:batch batch=6 "
    "prompt=3 chunk=2 gen=3 seed=5";

TEST(HazardsOfVerify, AreAllOnByDefault) {
  for (const Hazards& hazards : {VerifyOptions().hazards, Hazards::hostile()}) {
    EXPECT_TRUE(hazards.fresh_nan);
    EXPECT_TRUE(hazards.poison);
    EXPECT_TRUE(hazards.order.has_value());
    EXPECT_TRUE(hazards.replicas);
  }
  EXPECT_NE(Hazards::hostile(1).order, Hazards::hostile(2).order);
}

/// What the memory of chips does while a run is under way: whether fresh blocks are full of 0xFF,
/// and whether a block is again after its owner wrote zeros and gave it back.
class Prober : public Observer {
 public:
  void observe(const Scope&, const Program&, const Op*, const ValueDecl&, const Sharded&) override {
    ++values;
    Buffer<float> fresh(kSize);
    fresh_hostile += filled(fresh.data());
    std::fill(fresh.begin(), fresh.end(), 0.0F);
    const float* const block = fresh.data();
    fresh = Buffer<float>();
    returned_hostile += chip_memory::recycles() && filled(block);
  }

  int values = 0, fresh_hostile = 0, returned_hostile = 0;

 private:
  static constexpr std::size_t kSize = 977;  // nobody else's
  static bool filled(const float* block) {
    std::array<unsigned char, sizeof(float) * kSize> bytes{};
    std::memcpy(bytes.data(), block, bytes.size());
    return std::ranges::all_of(bytes, [](unsigned char byte) { return byte == 0xFF; });
  }
};

TEST(HazardsOfVerify, FillFreshAndReturnedMemory) {
  for (const char* regime : {"", " regime=f32"}) {
    Prober prober;
    OracleMemo memo;
    EXPECT_EQ(
        verify_case(parse_case(kCase + std::string(regime)), memo, {.observer = &prober}).verdict,
        Verdict::equal);
    EXPECT_GT(prober.values, 100);
    EXPECT_EQ(prober.fresh_hostile, prober.values);
    if (chip_memory::recycles()) {
      EXPECT_EQ(prober.returned_hostile, prober.values);
    }
  }
}

TEST(HazardsOfVerify, CompareReplicas) {
  // Without a judge, which would see the wrong value first.
  const Case c = parse_case(kCase);
  OracleMemo memo;
  const auto known = memo.get(c);
  FaultHooks faults;
  faults.result = [](const Scope&, const Program&, const Op&, const ValueDecl& declared,
                     Sharded& value) {
    if (declared.name == "xg" && !value.holds_partial()) value.f32_of(5)[0] += 1.0F;
  };
  int found = 0;
  for (const Hazards& hazards : {VerifyOptions().hazards, Hazards{}}) {
    Findings findings;
    Threads one(1);
    run_inference(make_plan(c), known->weights, known->prompt, one, nullptr, hazards, faults,
                  &findings);
    found += !findings.all().empty() && findings.all()[0].label == "hazard_replicas";
  }
  EXPECT_EQ(found, 1) << "with the defaults of verify alone";
}

/// The order in which a pool of one thread visits chips.
std::vector<std::int64_t> visits(const Hazards& hazards) {
  Threads one(1);
  std::vector<std::int64_t> order;
  {
    const HazardScope scope(hazards, one);
    one.for_each(24, [&](std::int64_t chip) { order.push_back(chip); });
  }
  return order;
}

TEST(HazardsOfVerify, VisitTheChipsOutOfOrder) {
  const auto plain = visits({});
  EXPECT_TRUE(std::ranges::is_sorted(plain));
  const auto shuffled = visits(VerifyOptions().hazards);
  EXPECT_FALSE(std::ranges::is_sorted(shuffled));
  EXPECT_EQ(std::set(shuffled.begin(), shuffled.end()), std::set(plain.begin(), plain.end()));
}

}  // namespace
}  // namespace shardproof
