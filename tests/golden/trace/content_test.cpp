#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "golden/trace/trace.h"
#include "tests/engine/numbers.h"
#include "tests/golden/case_gen.h"
#include "tests/golden/trace/reader.h"
#include "tests/golden/trace/traced_run.h"
#include "tests/weights/folder.h"

namespace shardproof {
namespace {

/// The first thing in the file that is not what the keeper saw; empty if there is none.
std::string first_difference(const TraceReader& file, const Case& c, const Keeper& keeper,
                             bool complete) {
  std::set<std::string> ids(keeper.order.begin(), keeper.order.end());
  for (int chip = 0; chip < c.torus.chips(); ++chip)
    if (file.names(group_of(c.torus, chip)) != ids) return "steps of a chip";
  // A sum of f32 partials has no bits before its schedule.
  const auto unsummed = [&](const std::string& id) {
    return c.numerics.regime == Regime::f32 && keeper.kept.at(id).declared.layout.is_partial();
  };
  std::set<std::string> root{"chips", "prompt"};
  for (const std::string& id : ids)
    if (!unsummed(id)) root.insert(id);
  if (complete) root.insert("generated");
  if (file.names("/") != root) return "names";
  for (std::size_t i = 0; i < keeper.order.size(); ++i) {
    const std::string& id = keeper.order[i];
    const Keeper::Kept& kept = keeper.kept.at(id);
    const Shape local = local_shape(kept.declared.layout, kept.value.shape(), c.torus);
    Shape shape;
    if (!unsummed(id)) {
      // By the oracle: the bits of the logical tensor, also of one that only partials hold.
      const bool whole = c.numerics.regime == Regime::exact
                             ? file.data(id, &shape) == as_bytes(kept.expected.bits)
                             : file.data(id, &shape) == bytes_of_whole(kept.value);
      if (!whole) return id;
      if (shape != kept.value.shape()) return id + " shape";
    }
    for (int chip = unsummed(id) ? 0 : -1; chip < c.torus.chips(); ++chip) {
      const std::string path = chip < 0 ? id : group_of(c.torus, chip) + "/" + id;
      if (file.text(path, "layout") != kept.declared.layout.to_string()) return path + " layout";
      if (file.text(path, "meaning") != kept.declared.role.to_string()) return path + " meaning";
      if (file.text(path, "op") != kept.op) return path + " op";
      if (file.number(path, "order") != static_cast<int>(i)) return path + " order";
      if (chip < 0) continue;
      const auto at = static_cast<std::size_t>(chip);
      const std::string held = std::visit(
          [&](const auto& data) {
            if constexpr (requires { data.values; })  // partial sums, field elements
              return as_bytes(data.values[at]);
            else
              return as_bytes(data[at]);
          },
          kept.value.data());
      if (file.data(path, &shape) != held || shape != local) return path;
      const std::string dtype = file.text(path, "dtype");
      const bool integer = std::holds_alternative<ChipArrays<std::int32_t>>(kept.value.data());
      if (unsummed(id)                 ? dtype != "f32 partial"
          : kept.value.holds_partial() ? dtype != "f64 partial"
          : integer                    ? dtype != "int32"
                                       : dtype != "f32" && dtype != "bf16")
        return path + " dtype";
    }
  }
  return "";
}

/// The ids of all steps of a whole run, from its programs.
std::set<std::string> step_ids(const Case& c) {
  const RunPlan programs = make_plan(c);
  std::set<std::string> ids;
  const auto add = [&](const Program& program, const std::string& pass, int layer) {
    for (const Op& op : program.ops)
      for (const ValueDecl& r : op.results)
        ids.insert(Scope{.pass = pass, .previous = "", .layer = layer}.step(program, r.name));
  };
  const auto pass = [&](const PhasePrograms& phase, const std::string& name, bool samples) {
    add(phase.embed, name, 0);
    for (int l = 0; l < c.model.layers; ++l) add(phase.layer, name, l);
    add(phase.head, name, 0);
    if (samples) add(phase.sample, name, 0);
  };
  std::int64_t chunks = 0;
  for (std::int64_t at = 0; at < c.prompt; at += c.chunk, ++chunks)
    pass(programs.prefill, "prefill.c" + std::to_string(chunks), at + c.chunk >= c.prompt);
  for (std::int64_t step = 1; step < c.gen; ++step)
    pass(programs.decode, "decode." + std::to_string(step), true);
  if (c.gen > 1)
    for (int l = 0; l < c.model.layers; ++l)
      add(programs.hand_over, "prefill.c" + std::to_string(chunks - 1), l);
  return ids;
}

TEST(Trace, HoldsEveryOpOutputOfEveryPassAsTheOracleSaysItIs) {
  const Folder folder;
  const Case c = parse_case(kCase);
  const Traced traced = trace_case(c, folder / "t.h5");
  EXPECT_EQ(traced.judgement.verdict, Verdict::equal);
  EXPECT_EQ(folder.names(), std::set<std::string>{"t.h5"});
  const TraceReader file(folder / "t.h5");
  ASSERT_TRUE(file.opened());
  const std::set<std::string> seen(traced.keeper.order.begin(), traced.keeper.order.end());
  EXPECT_EQ(seen, step_ids(c));
  const auto handed_over = [](const std::string& id) {
    return id.starts_with("prefill.c1.layer1.hand_over.");
  };
  EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), handed_over));
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "");

  EXPECT_EQ(file.text("/", "format"), "shardproof trace");
  EXPECT_EQ(file.number("/", "version"), 0);
  EXPECT_EQ(parse_case(file.text("/", "case")), c);
  EXPECT_EQ(file.text("/", "torus"), "2x1x3");
  EXPECT_EQ(file.text("/", "ended"), "complete");
  EXPECT_EQ(file.number("/chips/1_0_2", "x"), 1);
  EXPECT_EQ(file.number("/chips/1_0_2", "z"), 2);
  // F_zyx: chip (1,0,1) holds block 1·2+1 = 3 of 6, two wide.
  Shape shape;
  const std::string whole = file.data("decode.1.layer0.hr", &shape);
  EXPECT_EQ(shape, (Shape{6, 1, 12}));
  const std::string shard = file.data("chips/1_0_1/decode.1.layer0.hr", &shape);
  EXPECT_EQ(shape, (Shape{6, 1, 2}));
  EXPECT_EQ(shard.substr(0, 8), whole.substr(std::size_t{4} * 6, 8));
  EXPECT_EQ(file.data("prompt").size(), 4U * 6 * 3);
  // Column by column the tokens of the passes.
  const std::string generated = file.data("generated", &shape);
  EXPECT_EQ(shape, (Shape{6, 3}));
  for (std::size_t b = 0; b < 6; ++b) {
    EXPECT_EQ(generated.substr(12 * b, 4), file.data("prefill.c1.sample.token").substr(4 * b, 4));
    EXPECT_EQ(generated.substr(12 * b + 8, 4), file.data("decode.2.sample.token").substr(4 * b, 4));
  }
}

TEST(Trace, HoldsTheCodesOfInt8Weights) {
  for (const char* act : {"f32", "bf16"}) {
    const Folder folder;
    const Case c = parse_case(std::string("torus=2x1x3 prefill=wg-xyz:batch decode=ws2d:batch "
                                          "model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12,"
                                          "bias=all batch=6 prompt=3 gen=2 weights=int8 act=") +
                              act);
    const Traced traced = trace_case(c, folder / "t.h5");
    EXPECT_EQ(traced.judgement.verdict, Verdict::equal);
    const TraceReader file(folder / "t.h5");
    EXPECT_EQ(first_difference(file, c, traced.keeper, true), "");
    EXPECT_EQ(file.text("prefill.c0.layer0.wq_g", "meaning"), "weight wq");
    const std::string bytes = file.data("prefill.c0.layer0.wq_g");
    std::vector<float> codes(bytes.size() / sizeof(float));
    std::memcpy(codes.data(), bytes.data(), bytes.size());
    EXPECT_EQ(codes.size(), 12U * 6 * 2);
    float largest = 0.0F;
    for (float code : codes) largest = std::max(largest, std::abs(code));
    EXPECT_EQ(largest, 127.0F);
    EXPECT_TRUE(std::all_of(codes.begin(), codes.end(),
                            [](float code) { return std::nearbyint(code) == code; }));
  }
}

TEST(Trace, TheReadingBackSeesAFault) {
  // Read back with the shards of two chips exchanged, a value changed, and a step too many.
  const Folder folder;
  const Case c = parse_case(kCase);
  Traced traced = trace_case(c, folder / "t.h5");
  const TraceReader file(folder / "t.h5");
  auto& kept = traced.keeper.kept.at("decode.1.layer0.hr");
  const auto exchange = [&] {
    const auto chips = numbers_of(kept.value);
    std::swap_ranges(chips[0].begin(), chips[0].end(), chips[4].begin());
  };
  exchange();
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "chips/0_0_0/decode.1.layer0.hr");
  exchange();
  kept.expected.bits[3] ^= 1;
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "decode.1.layer0.hr");
  kept.expected.bits[3] ^= 1;
  kept.declared.layout = Layout::parse("BLF_xyz");
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "decode.1.layer0.hr layout");
  kept.declared.layout = Layout::parse("BLF_zyx");
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "");
  traced.keeper.order.emplace_back("decode.1.layer0.nothing");
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "steps of a chip");
}

TEST(Trace, ReadsBackAsAnObserverOfTheRunSawIt) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = std::min(params.maxSuccess, 12);  // a file has thousands of datasets
  const auto result = rc::detail::checkTestable(
      [] {
        Case c = *any_case();
        c.model.layers = 1;
        c.gen = std::min<std::int64_t>(c.gen, 3);
        RC_PRE(c.torus.chips() <= 12 && c.numerics.regime != Regime::field);
        const Folder folder;
        const Traced traced = trace_case(c, folder / "t.h5");
        RC_ASSERT(traced.judgement.verdict == Verdict::equal);
        const TraceReader file(folder / "t.h5");
        RC_ASSERT(first_difference(file, c, traced.keeper, true) == "");
        const auto size = static_cast<double>(fs::file_size(folder / "t.h5"));
        const double estimate = estimated_trace_bytes(make_typed_plan(c));
        constexpr double kFile = 1 << 20;
        RC_ASSERT(size <= estimate);
        RC_ASSERT(estimate <= 2.0 * size + kFile);
      },
      rc::detail::TestMetadata(), params);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << rc::toString(result);
}

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

TEST(Trace, SaysWhatIsStoredAsBf16) {
  const Folder folder;
  const Case c = parse_case(std::string(kCase) + " act=bf16");
  const Traced traced = trace_case(c, folder / "t.h5");
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(first_difference(file, c, traced.keeper, true), "");
  std::map<std::string, std::set<std::string>> dtypes;  // by role
  for (const auto& [id, kept] : traced.keeper.kept)
    if (!kept.value.holds_partial()) {
      const std::string dtype = file.text(id, "dtype");
      dtypes[kept.declared.role.to_string()].insert(dtype);
      if (dtype != "bf16") continue;
      for (std::uint32_t bits : kept.expected.bits) EXPECT_EQ(bits & 0xFFFFU, 0U) << id;
    }
  for (const char* stored : {"embed", "in", "norm", "q_rot", "k_cache", "attn", "gate", "out"})
    EXPECT_EQ(dtypes[stored], std::set<std::string>{"bf16"}) << stored;
  for (const char* wide : {"raw gate", "score", "exp", "denom", "logits", "stat ss"})
    EXPECT_EQ(dtypes[wide], std::set<std::string>{"f32"}) << wide;
  EXPECT_EQ(dtypes["token"], std::set<std::string>{"int32"});
}

}  // namespace
}  // namespace shardproof
