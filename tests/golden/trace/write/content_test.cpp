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

#include "golden/compare/block_map.h"
#include "golden/trace/write/field_words.h"
#include "golden/trace/write/trace.h"
#include "tests/engine/numbers.h"
#include "tests/golden/case_gen.h"
#include "tests/golden/trace/write/reader.h"
#include "tests/golden/trace/write/traced_run.h"
#include "tests/weights/folder.h"

namespace shardproof {
namespace {

/// The bits of one chip's shard as it was held.
std::string held_on(const Sharded& value, std::size_t chip) {
  return std::visit(
      [&](const auto& data) {
        if constexpr (requires { data.values; })  // partial sums, field elements
          return as_bytes(data.values[chip]);
        else
          return as_bytes(data[chip]);
      },
      value.data());
}

bool same_shards(const Sharded& a, const Sharded& b) {
  for (std::size_t chip = 0; chip < static_cast<std::size_t>(a.torus().chips()); ++chip)
    if (held_on(a, chip) != held_on(b, chip)) return false;
  return true;
}

/// f32 as f64.
std::string widened(const std::string& bytes) {
  std::vector<float> narrow(bytes.size() / sizeof(float));
  std::memcpy(narrow.data(), bytes.data(), bytes.size());
  return as_bytes(std::vector<double>(narrow.begin(), narrow.end()));
}

/// The path of a chip's shard of a value that stands as shards: a copy's, where it is not there.
std::string shard_path(const TraceReader& file, const Torus& torus, const Layout& layout, int chip,
                       const std::string& id) {
  const std::string own = group_of(torus, chip) + "/" + id;
  if (file.has(own)) return own;
  int first = 0;
  for (const Axis axis : {Axis::x, Axis::y, Axis::z})
    first =
        first * torus.size(axis) +
        (layout.used().has(axis) || layout.partial().has(axis) ? torus.coordinate(chip, axis) : 0);
  const std::string path = group_of(torus, first) + "/" + id;
  return file.text(path, "replicas") == "identical" ? path : "none";
}

/// Whether a file's bytes are what is expected, padding apart.
bool holds(const std::string& bytes, const ExpectedBits& expected) {
  std::vector<std::uint32_t> bits(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(bits.data(), bytes.data(), bytes.size());
  if (bits.size() != expected.bits.size()) return false;
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i] != expected.bits[i] && (expected.padding.empty() || !expected.padding[i]))
      return false;
  return true;
}

/// The first thing in the file that is not what the keeper saw; empty if there is none.
std::string first_difference(const TraceReader& file, const Case& c, const Keeper& keeper) {
  int last = -1;
  for (const std::string& id : keeper.order) {
    const Keeper::Kept& kept = keeper.kept.at(id);
    const Layout& layout = kept.declared.layout;
    const bool whole = file.has(id);
    if (whole == layout.is_partial()) return id + " form";
    const auto chips = static_cast<std::size_t>(whole ? 1 : c.torus.chips());
    Shape shape;
    for (std::size_t chip = 0; chip < chips; ++chip) {
      const std::string path =
          whole ? id : shard_path(file, c.torus, layout, static_cast<int>(chip), id);
      if (path == "none") return id + " chips";
      if (file.text(path, "layout") != layout.to_string()) return path + " layout";
      if (file.text(path, "meaning") != kept.declared.role.to_string()) return path + " meaning";
      if (file.text(path, "op") != kept.op) return path + " op";
      if (chip == 0 && file.number(path, "order") <= last) return path + " order";
      last = file.number(path, "order");
      const std::string dtype = file.text(path, "dtype");
      if (!whole) {
        std::string found = file.data(path, &shape);
        if (dtype == "f32 partial" && kept.value.holds_partial()) found = widened(found);
        if (found != held_on(kept.value, chip) ||
            shape != local_shape(layout, kept.value.shape(), c.torus))
          return path;
        if (dtype != "f32 partial" && (dtype != "f64 partial" || !kept.value.holds_partial()))
          return path + " dtype";
        continue;
      }
      // By the oracle, and cut again.
      const std::string found = file.data(file.stored(id), &shape);
      if (c.numerics.regime == Regime::exact && !holds(found, kept.expected)) return id;
      if (found != bytes_of_whole(kept.value)) return id;
      if (shape != kept.value.shape()) return id + " shape";
      const auto cut = [&](const auto& tensor) {
        return same_shards(shard(tensor, layout, c.torus), kept.value);
      };
      if (!(kept.value.stores_int32() ? cut(assemble_int(kept.value)) : cut(assemble(kept.value))))
        return id + " shards";
      if (kept.value.stores_int32() ? dtype != "int32" : dtype != "f32" && dtype != "bf16")
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
  EXPECT_EQ(first_difference(file, c, traced.keeper), "");

  EXPECT_EQ(file.text("/", "format"), "shardproof trace");
  EXPECT_EQ(file.number("/", "version"), 1);
  EXPECT_EQ(file.text("/", "arithmetic"), "exact");
  EXPECT_EQ(parse_case(file.text("/", "case")), c);
  EXPECT_EQ(file.text("/", "torus"), "2x1x3");
  EXPECT_EQ(file.text("/", "ended"), "complete");
  EXPECT_EQ(file.number("/chips/1_0_2", "x"), 1);
  EXPECT_EQ(file.number("/chips/1_0_2", "z"), 2);
  // F_zyx: chip (1,0,1) holds block 1·2+1 = 3 of 6, two wide.
  Shape shape;
  const std::string whole = file.data("decode.1.layer0.hr", &shape);
  EXPECT_EQ(shape, (Shape{6, 1, 12}));
  const Sharded& hr = traced.keeper.kept.at("decode.1.layer0.hr").value;
  EXPECT_EQ(held_on(hr, 4).substr(0, 8), whole.substr(std::size_t{4} * 6, 8));
}

TEST(Trace, HoldsWhatARunIsGiven) {
  const Folder folder;
  const Case c = parse_case(kCase);
  trace_case(c, folder / "t.h5");
  const TraceReader file(folder / "t.h5");
  OracleMemo memo;
  const auto known = memo.get(c);
  Shape shape;
  for (const auto& [id, weight] : known->stored.tensors()) {
    EXPECT_EQ(file.data(id, &shape), as_bytes(weight.data)) << id;
    EXPECT_EQ(shape, weight.shape) << id;
    EXPECT_EQ(file.text(id, "op"), "input") << id;
    EXPECT_EQ(file.text(id, "meaning"), "none") << id;
  }
  EXPECT_EQ(file.text("layer0.wq", "layout"), "E_xH_zyQ");
  std::vector<std::int32_t> ids;
  for (std::size_t b = 0; b < 6; ++b)
    for (std::size_t i = 0; i < 2; ++i) ids.push_back(known->prompt.data[3 * b + i]);
  EXPECT_EQ(file.data("prefill.c0.ids"), as_bytes(ids));
  EXPECT_EQ(file.data("decode.1.ids"), file.data("prefill.c1.sample.token"));
  // Caches of the pass before: as the hand-over left them.
  EXPECT_EQ(file.text("decode.1.layer1.k_old", "meaning"), "previous k_cache");
  EXPECT_EQ(file.data("decode.1.layer1.k_old", &shape), "");
  EXPECT_EQ(shape, Shape{0});
  EXPECT_EQ(file.text("decode.2.layer1.v_old", "same_as"), "decode.1.layer1.vc");
  EXPECT_EQ(file.text("prefill.c1.layer0.k_old", "same_as"), "prefill.c0.layer0.kc");
  EXPECT_FALSE(file.has("prefill.c0.layer0.k_old"));  // there is none yet
}

/// Whole where each chip has its block, by chip of partial sums; words are a dim of their own.
TEST(Trace, HoldsTheWordsOfFieldNumbers) {
  const Folder folder;
  const Case c = parse_case(
      "torus=2x1x3 prefill=ws2d:heads model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 "
      "prompt=2 gen=1 regime=field seed=5");
  const Traced traced = trace_case(c, folder / "t.h5", false);
  EXPECT_EQ(traced.judgement.verdict, Verdict::equal);
  const TraceReader file(folder / "t.h5");
  int whole = 0, by_chip = 0;
  for (const auto& [id, kept] : traced.keeper.kept) {
    if (!kept.value.holds_field()) continue;
    const FieldSetting& setting = kept.value.field().field->setting();
    const auto expect = [&](const std::string& path, Shape shape,
                            const Buffer<FieldElement>& numbers) {
      Shape found;
      EXPECT_EQ(file.data(path, &found), as_bytes(to_words(numbers, setting))) << path;
      shape.push_back(words_of(setting));
      EXPECT_EQ(found, shape) << path;
    };
    const auto& chips = kept.value.field().values;
    const Layout& layout = kept.declared.layout;
    if (layout.is_partial()) {
      ++by_chip;
      for (int chip = 0; chip < c.torus.chips(); ++chip)
        expect(group_of(c.torus, chip) + "/" + id,
               judged_block(layout, kept.value.shape(), c.torus),
               chips[static_cast<std::size_t>(chip)]);
    } else {
      ++whole;
      Buffer<FieldElement> all(static_cast<std::size_t>(element_count(kept.value.shape())));
      for (int chip = 0; chip < c.torus.chips(); ++chip)
        judged_elements(
            layout, kept.value.shape(), c.torus, chip,
            [&](std::int64_t local, std::int64_t global) {
              all[static_cast<std::size_t>(global)] =
                  chips[static_cast<std::size_t>(chip)][static_cast<std::size_t>(local)];
              return false;
            });
      expect(id, kept.value.shape(), all);
    }
  }
  EXPECT_GT(whole, 20);
  EXPECT_GT(by_chip, 5);
}

TEST(Trace, NamesWhatOnlyMoved) {
  const Folder folder;
  const Case c = parse_case(
      "torus=2x1x3 prefill=wg-xyz:batch decode=ws2d:batch "
      "model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 batch=6 prompt=3 gen=2");
  trace_case(c, folder / "t.h5");
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(file.text("prefill.c0.layer0.wq_g2", "same_as"), "layer0.wq");
  EXPECT_EQ(file.text("prefill.c0.layer0.wq_g2", "layout"), "EHQ");
  EXPECT_EQ(file.stored("decode.1.layer0.ag"), "decode.1.layer0.a");
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
    EXPECT_EQ(first_difference(file, c, traced.keeper), "");
    EXPECT_EQ(file.text("prefill.c0.layer0.wq_g", "meaning"), "weight wq");
    EXPECT_EQ(file.stored("prefill.c0.layer0.wq_g"), "layer0.wq");
    const std::string bytes = file.data("layer0.wq");
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
  // Read back with the shards of two chips exchanged, and a value changed.
  const Folder folder;
  const Case c = parse_case(kCase);
  Traced traced = trace_case(c, folder / "t.h5");
  const TraceReader file(folder / "t.h5");
  const auto difference = [&] { return first_difference(file, c, traced.keeper); };
  EXPECT_EQ(difference(), "");
  for (const char* id : {"decode.1.layer0.hr", "decode.1.layer0.h"}) {
    const std::string where =
        std::string(id) == "decode.1.layer0.h" ? "chips/0_0_0/decode.1.layer0.h" : id;
    auto& kept = traced.keeper.kept.at(id);
    const auto exchange = [&] {
      if (kept.value.holds_partial()) {
        const auto a = kept.value.partial_values_of(0), b = kept.value.partial_values_of(4);
        std::swap_ranges(a.begin(), a.end(), b.begin());
        return;
      }
      const auto chips = numbers_of(kept.value);
      std::swap_ranges(chips[0].begin(), chips[0].end(), chips[4].begin());
    };
    exchange();
    EXPECT_EQ(difference(), where);
    exchange();
    EXPECT_EQ(difference(), "");
  }
  auto& kept = traced.keeper.kept.at("decode.1.layer0.hr");
  const auto right = kept.expected.bits;
  std::vector<std::uint32_t> changed = right.copy();
  changed[3] ^= 1;
  kept.expected.bits = changed;
  EXPECT_EQ(difference(), "decode.1.layer0.hr");
  kept.expected.bits = right;
  kept.declared.layout = Layout::parse("BLF_xyz");
  EXPECT_EQ(difference(), "decode.1.layer0.hr layout");
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
        RC_ASSERT(first_difference(file, c, traced.keeper) == "");
        const auto size = static_cast<double>(fs::file_size(folder / "t.h5"));
        const double estimate = estimated_trace_bytes(make_typed_plan(c));
        constexpr double kFile = 1 << 20;
        RC_ASSERT(size <= estimate);
        RC_ASSERT(estimate <= 2.0 * size + kFile);
      },
      rc::detail::TestMetadata(), params);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << rc::toString(result);
}

TEST(Trace, SaysWhatIsStoredAsBf16) {
  const Folder folder;
  const Case c = parse_case(std::string(kCase) + " act=bf16");
  const Traced traced = trace_case(c, folder / "t.h5");
  const TraceReader file(folder / "t.h5");
  EXPECT_EQ(first_difference(file, c, traced.keeper), "");
  std::map<std::string, std::set<std::string>> dtypes;  // by role
  for (const auto& [id, kept] : traced.keeper.kept)
    if (!kept.value.holds_partial()) {
      const std::string dtype = file.text(id, "dtype");
      dtypes[kept.declared.role.to_string()].insert(dtype);
      if (dtype != "bf16") continue;
      for (std::uint32_t bits : kept.expected.bits.copy()) EXPECT_EQ(bits & 0xFFFFU, 0U) << id;
    }
  for (const char* stored : {"embed", "in", "norm", "q_rot", "k_cache", "attn", "gate", "out"})
    EXPECT_EQ(dtypes[stored], std::set<std::string>{"bf16"}) << stored;
  for (const char* wide : {"raw gate", "score", "exp", "denom", "logits", "stat ss"})
    EXPECT_EQ(dtypes[wide], std::set<std::string>{"f32"}) << wide;
  EXPECT_EQ(dtypes["token"], std::set<std::string>{"int32"});
}

}  // namespace
}  // namespace shardproof
