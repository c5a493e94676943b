// For which values the roundings that a trace declares for its wire hold: those that travel.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

using Layouts = std::vector<std::pair<std::string, std::string>>;  ///< of values by id

/// Of a trace with these values in their layouts, and decode.1.layer1.gate whole, the roundings on
/// the wire that hold for the gate.
int roundings_of_gate(const ExactRun& run, const Layouts& layouts) {
  const std::string gate = "decode.1.layer1.gate";
  std::vector<Written> values{run.whole(gate)};
  for (const auto& [id, layout] : layouts) {
    values.push_back(run.whole(id));
    values.back().attributes["layout"] = layout;
  }
  Dump d = run.trace(values, "f32");
  d.attributes["wire"] = "2";
  const Values read = read_values(d, read_claim(d.attributes, std::nullopt), run.weights());
  const auto at = std::find_if(read.dumped.begin(), read.dumped.end(),
                               [&](const DumpedValue& value) { return value.name == gate; });
  return at->declared ? at->declared->wire_roundings : 2;
}

// A gate is a sum over E of norm and w_gate of its own layer and pass.
TEST(Wire, RoundingsHoldWhereOperandsOfItsLayerAndPassAreCut) {
  const ExactRun run{kLine};
  const std::string own = "decode.1.layer1.norm";
  EXPECT_EQ(roundings_of_gate(run, {{own, "BLE"}}), 0);
  EXPECT_EQ(roundings_of_gate(run, {{own, "BLE_x"}}), 2);
  EXPECT_EQ(roundings_of_gate(run, {{own, "B_xLE"}}), 0) << "the sum is not over B";
  EXPECT_EQ(roundings_of_gate(run, {{own, "BLE_y"}}), 0) << "y has one chip";
  for (const char* other : {"prefill.c0.layer1.norm", "prefill.c1.layer1.norm",
                            "decode.2.layer1.norm", "decode.1.layer0.norm", "decode.1.layer1.up"}) {
    const std::string cut = std::string(other).ends_with("up") ? "BLF_x" : "BLE_x";
    EXPECT_EQ(roundings_of_gate(run, {{own, "BLE"}, {other, cut}}), 0) << other;
  }
  EXPECT_EQ(roundings_of_gate(run, {}), 2) << "no layout of an operand is known";
  EXPECT_EQ(roundings_of_gate(run, {{"decode.2.layer1.norm", "BLE"}}), 2) << "of this pass none";
}

}  // namespace
}  // namespace shardproof::dump
