// Traces have the same bytes: of one run, when each was written, and of weights on demand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "engine/run/inference.h"
#include "golden/trace/write/trace.h"
#include "tests/golden/trace/write/traced_run.h"
#include "tests/weights/folder.h"
#include "tests/weights/on_demand.h"

namespace shardproof {
namespace {

TEST(Trace, EqualRunsGiveEqualBytes) {
  const Folder folder;
  const Case c = parse_case(kCase);
  trace_case(c, folder / "a.h5");
  ::sleep(1);  // HDF5 would keep the second in which an object was made
  trace_case(c, folder / "b.h5");
  const std::vector<char> in_a = bytes_of(folder / "a.h5");
  const std::vector<char> in_b = bytes_of(folder / "b.h5");
  EXPECT_GT(in_a.size(), 100000U);
  EXPECT_TRUE(in_a == in_b);
}

/// Large models: each program's weights are placed when it runs.
TEST(Trace, OfWeightsOnDemandHasTheSameBytes) {
  const Folder folder;
  const std::string small =
      "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:heads "
      "decode=ws2d:batch batch=6 prompt=4 chunk=2 gen=3 seed=5 ";
  for (const char* keys : {"", "weights=bf16 act=bf16", "weights=int8", "regime=f32", "prefix=2:2",
                           "lengths=ragged"}) {
    const Case c = parse_case(small + keys);
    const TypedPlan typed = make_typed_plan(c);
    OracleMemo memo;
    const auto known = memo.get(c);
    std::map<std::string, int> placed;
    const auto write = [&](const Weights& weights, const fs::path& target) {
      Trace trace(typed, target);
      Threads threads(2);
      FaultHooks hooks;
      placed.clear();
      hooks.weight = [&](const std::string& id, Sharded&) { ++placed[id]; };
      const IntTensor tokens =
          run_inference(typed.plan, weights, known->prompt, threads, &trace, {}, hooks);
      trace.write("complete");
      return tokens.data;
    };
    const auto tokens = write(known->weights, folder / "all.h5");
    EXPECT_EQ(write(on_demand(known->weights), folder / "each.h5"), tokens) << keys;
    // None is kept from one pass to the next.
    EXPECT_EQ(placed.at("layer1.wq"), std::ssize(typed.plan.passes)) << keys;
    EXPECT_EQ(bytes_of(folder / "each.h5"), bytes_of(folder / "all.h5")) << keys;
  }
}

}  // namespace
}  // namespace shardproof
