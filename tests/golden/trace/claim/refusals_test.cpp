// What a trace says that cannot mean anything, one line each.
#include <gtest/gtest.h>

#include "golden/trace/claim/memory.h"
#include "tests/golden/trace/written.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

template <class Call>
void expect_error(const std::string& label, const std::string& part, Call&& call) {
  EXPECT_EQ(label_of(call), label) << part;
  EXPECT_NE(message_of(call).find(part), std::string::npos) << part << " in " << message_of(call);
}

struct Refused {
  const char* label;
  const char* attribute;
  const char* value;
  const char* part;  ///< of the message
};

TEST(Claim, RefusesByName) {
  const ExactRun run(kLine);
  for (const Refused& r : {
           Refused{"dump_format", "format", "something", "shardproof trace"},
           Refused{"dump_format", "version", "2", "2"},
           Refused{"dump_attribute", "arithmetic", "f8", "arithmetic=\"f8\": legal: f32"},
           Refused{"dump_attribute", "ulp", "-1", "ulp"},
           Refused{"dump_attribute", "folded", "x", "folded"},
           Refused{"dump_attribute", "wire", "1e9", "wire"},
           Refused{"dump_attribute", "masked", "yes", "any"},
           Refused{"dump_attribute", "heads", "0,1,2", "3 heads, of 6"},
           Refused{"dump_attribute", "heads", "0,1,2,3,4,6", "not a head; legal: 0 to 5"},
           Refused{"dump_attribute", "heads", "0,1,2,3,4,4", "head 4 is named twice"},
           Refused{"dump_attribute", "rope_pairs", "both", "half"},
           Refused{"dump_attribute", "score_base", "10", "score_base"},
           Refused{"dump_attribute", "norm_gain", "yes", "folded"},
           Refused{"dump_mesh", "mesh", "x y w", "'w'"},
           Refused{"dump_mesh", "mesh", "x x z", "axis x is named twice"},
           Refused{"dump_mesh", "mesh", "x y", "axis z of torus 3x1x2 is not named"},
           Refused{"dump_mesh", "mesh", "a=x a=z", "'a' is named twice"},
           Refused{"case_c1", "case", "tours=1x1x1", "tours"},
       }) {
    dump::Dump d = run.trace({}, "f32");
    d.attributes[r.attribute] = r.value;
    expect_error(r.label, r.part, [&] { read_claim(d.attributes, std::nullopt); });
  }
  dump::Dump d = run.trace({}, "exact");
  d.attributes["score_base"] = "2";
  expect_error("dump_attribute", "exact", [&] { read_claim(d.attributes, std::nullopt); });
  d = run.trace({}, "exact");
  d.attributes.erase("case");
  expect_error("compare_case", "--case", [&] { read_claim(d.attributes, std::nullopt); });
}

TEST(Claim, AsksForNoMoreMemoryThanThereIs) {
  const std::string line = "torus=1x1x1 batch=1 prompt=4 gen=1 model=palm-tiny";
  EXPECT_NO_THROW(require_memory(parse_case(line)));
  for (const char* keys :
       {",layers=4096,E=16384,F=65536", ",layers=4096,E=16384,F=65536 weights=int8",
        ",positions=2000000000 prompt=100000000", " batch=100000000 prompt=2000",
        " batch=1000000000 prompt=20 lengths=7,3",
        ",positions=2000 batch=1000000000 lengths=ragged"})
    expect_error("memory_c1", "to judge this takes about", [&] {
      require_memory(parse_case("torus=1x1x1 gen=1 model=palm-tiny" + std::string(keys)));
    });
}

TEST(Claim, RefusesOtherLengths) {
  const std::string line = "torus=1x1x1 batch=3 prompt=5 gen=1 model=palm-tiny seed=4";
  const auto asked = [&](const std::string& theirs, const std::string& mine) {
    const dump::Attributes of_trace{
        {"format", "shardproof trace"}, {"version", "1"}, {"case", line + theirs}};
    read_claim(of_trace, line + mine);
  };
  expect_error("compare_case", "lengths=5,3,5, not of lengths=5,5,5",
               [&] { asked(" lengths=5,3", ""); });
  expect_error("compare_case", "lengths=5,5,5, not of lengths=4,5,5",
               [&] { asked("", " lengths=4,5,5"); });
  EXPECT_NO_THROW(asked(" lengths=5", ""));
  EXPECT_NO_THROW(asked(" lengths=2,3", " lengths=2,3,2"));
  EXPECT_NO_THROW(asked(" lengths=ragged", " lengths=ragged"));
  EXPECT_THROW(asked(" lengths=6", ""), Error);
}

TEST(Claim, RefusesAnotherCase) {
  const ExactRun run(kLine);
  const dump::Dump d = run.trace({}, "f32");
  for (const char* key : {"torus=1x3x2", "model=palm-tiny,layers=1", "weights=bf16", "act=bf16",
                          "batch=12", "prompt=6", "chunk=5", "gen=4", "seed=7"}) {
    std::string line = " " + kLine;
    const std::string name = std::string(key).substr(0, std::string(key).find('='));
    if (const std::size_t at = line.find(" " + name + "="); at != std::string::npos)
      line.erase(at, line.find(' ', at + 1) - at);
    expect_error("compare_case", key, [&] { read_claim(d.attributes, line + " " + key); });
  }
  // How it is laid out and summed up is no matter of the values.
  EXPECT_NO_THROW(read_claim(d.attributes, kLine + " prefill=ws1d regime=f32 schedule=ring"));
}

const std::string kGate = "decode.1.layer0.gate";

/// A trace of one value, of ones.
dump::Dump of_ones(const ExactRun& run, Shape shape, dump::Attributes attributes,
                   const std::string& name = kGate) {
  dump::Dump d = run.trace({}, "f32");
  const auto count = static_cast<std::size_t>(element_count(shape));
  dump::Value& value = run.insert(d, name, {});
  value.whole = stored(std::move(shape), std::vector<double>(count, 1.0));
  value.attributes = std::move(attributes);
  return d;
}

/// A value of a trace that is refused.
void expect_refused(const char* label, const char* part, Shape shape, dump::Attributes attributes,
                    const std::string& name = kGate) {
  const ExactRun run(kLine);
  const dump::Dump d = of_ones(run, std::move(shape), std::move(attributes), name);
  const Claim claim = read_claim(d.attributes, std::nullopt);
  expect_error(label, part, [&] { read_values(d, claim, run.weights()); });
}

/// A value that is not judged, and why.
void expect_misfit(const char* part, Shape shape, dump::Attributes attributes,
                   const std::string& name = kGate) {
  const ExactRun run(kLine);
  const Verdict v = run.judged(of_ones(run, std::move(shape), std::move(attributes), name));
  ASSERT_GE(v.rows.size(), 1U) << part;
  for (const Row& row : v.rows) {
    EXPECT_EQ(row.fit, Fit::not_judged) << part;
    EXPECT_NE(row.why.find(part), std::string::npos) << part << " in " << row.why;
    EXPECT_FALSE(row.why.starts_with(name)) << row.why;
  }
  EXPECT_EQ(v.misfits, std::ssize(v.rows));
  EXPECT_EQ(v.exit_code(), 1);
}

TEST(DumpedValue, RefusesByName) {
  const auto& layout = [](const char* text) { return dump::Attributes{{"layout", text}}; };
  expect_misfit("F 35", {6, 1, 35}, {});
  expect_misfit("padding is declared", {6, 1, 40}, {});
  expect_misfit("neither whole", {7, 36}, {});
  expect_misfit("reshape 6 to B 6, L 1", {6, 36}, {});
  expect_misfit("the mesh [3,1,2]", {2, 1, 3, 6, 1, 6}, layout("BLF_zx"));
  expect_misfit("need a layout", {3, 1, 2, 6, 1, 36}, {});
  expect_misfit("has not the dims of", {6, 1, 36}, layout("BLE"));
  expect_misfit("F 72", {3, 1, 2, 6, 1, 12}, layout("BLF_zx"));
  expect_refused("layout_c3", "x", {3, 1, 2, 6, 1, 6}, layout("B_xLF_x"));
  expect_misfit("no axis", {3, 1, 2, 6, 1, 6}, {{"spec", R"([null, null, "model"])"}});
  expect_misfit("not a JSON list", {3, 1, 2, 6, 1, 6}, {{"spec", "F over x"}});
  expect_misfit("2 layouts of 1", {6, 1, 36}, layout("BLF, BLF"));
  expect_refused("dump_attribute", "the model has no decode.1.layer0.gat", {6, 1, 72},
                 {{"fused", "gat,up"}, {"along", "F"}, {"layout", "BLF, BLF"}});
  expect_refused("dump_attribute", "no array of that name", {0},
                 {{"same_as", "decode.1.layer0.up"}});
  expect_refused("dump_attribute", "along", {6, 1, 72},
                 {{"fused", "gate,up"}, {"along", "E"}, {"layout", "BLF, BLF"}});
  expect_misfit("72 together", {6, 1, 70},
                {{"fused", "gate,up"}, {"along", "F"}, {"layout", "BLF, BLF"}});
  const std::string candidates = "decode.1.candidates";
  expect_misfit("4 blocks do not divide V 30", {6, 4}, {}, candidates);
  expect_misfit("0 blocks do not divide V 30", {6, 0}, {}, candidates);
  expect_refused("dump_attribute", "the model has no decode.1.candidates", {6, 4},
                 {{"fused", "candidates,indices"}, {"along", "C"}, {"layout", "BC, BC"}},
                 candidates);
}

TEST(DumpedValue, IsTheSameAsNoOtherValue) {
  const ExactRun run(kLine);
  dump::Dump d = run.trace({run.whole(kGate)}, "exact");
  const auto add = [&](const std::string& name, const std::string& meaning) {
    dump::Value& value = run.insert(d, name, {});
    value.whole = stored({0}, {});
    value.attributes = {{"same_as", kGate}, {"layout", "BLF"}};
    if (!meaning.empty()) value.attributes["meaning"] = meaning;
  };
  add("decode.1.layer0.g2", "gate");
  EXPECT_EQ(run.judged(d).count(Fit::equal), 1);
  add("decode.1.layer0.up", "");
  const Claim claim = read_claim(d.attributes, std::nullopt);
  expect_error("dump_attribute", "this is decode.1.layer0.up, that decode.1.layer0.gate",
               [&] { read_values(d, claim, run.weights()); });
}

TEST(DumpedValue, TakesAPartitionSpec) {
  const ExactRun run(kLine);
  dump::Dump d = run.trace({}, "exact");
  d.attributes["mesh"] = "model=z data=x";
  dump::Value& value = run.insert(d, "decode.1.layer1.gate", {});
  run.put(value, run.whole("decode.1.layer1.gate"), Layout::parse("B_xLF_z"),
          Mesh::parse("z x", run.source_case.torus), 1);
  value.attributes["spec"] = R"(["data", null, ["model"]])";
  EXPECT_EQ(run.judged(d).count(Fit::equal), 1);
  value.attributes["spec"] = R"(["model", null, "data"])";
  EXPECT_EQ(run.judged(d).misfits, 1);  // 3·12 is not 36/2·…: it does not fit
}

TEST(Subject, EveryValueHasAPlaceInTheOrderOfARun) {
  for (const char* model : {"palm-tiny", "llama", "palm-tiny,norm=layernorm"}) {
    const ModelConfig config = parse_model(model);
    const Passes passes(2, 4, 2, 3);
    std::map<std::int64_t, std::string> places;
    for (std::int64_t i = 0; i < passes.size(); ++i)
      for (const ValueRow& row : all_values()) {
        if (row.in_model != nullptr && !row.in_model(config)) continue;
        if (row.kind != ValueKind::checkpoint && row.kind != ValueKind::stat) continue;
        if (row.per_block || row.dims.find('C') != row.dims.npos) continue;
        for (std::int64_t layer = 0; layer < (row.per_layer ? config.layers : 1); ++layer) {
          const std::string id =
              checkpoint_id(passes.at(i).name, row.per_layer ? layer : -1, row.name);
          const auto s = subject(id, "", config, passes, NumberFormat::f32);
          ASSERT_TRUE(s.has_value()) << id;
          EXPECT_EQ(s->id, id);
          const auto [at, fresh] = places.emplace(order_of(*s, config, passes), id);
          // The statistics of a norm share one place.
          EXPECT_TRUE(fresh || row.kind == ValueKind::stat) << id << " and " << at->second;
        }
      }
    // As one is made of another.
    const auto place = [&](const char* id) {
      return order_of(*subject(std::string("prefill.") + id, "", config, passes, NumberFormat::f32),
                      config, passes);
    };
    using Pairs = std::vector<std::pair<const char*, const char*>>;
    Pairs pairs{{"c0.embed", "c0.layer0.norm"},       {"c0.layer0.ss", "c0.layer0.norm"},
                {"c0.layer0.attn", "c0.layer0.gate"}, {"c0.layer0.out", "c0.layer1.norm"},
                {"c0.layer1.out", "c0.final_norm"},   {"c0.logits", "c1.embed"}};
    if (config.block == Block::serial)
      for (const auto& pair :
           Pairs{{"c0.layer0.mid", "c0.layer0.norm2"}, {"c0.layer0.norm2", "c0.layer0.gate"}})
        pairs.push_back(pair);
    for (const auto& [first, second] : pairs) EXPECT_LT(place(first), place(second)) << second;
  }
}

TEST(Subject, IsWhatARoleMeans) {
  const ModelConfig config = parse_model("palm-tiny");
  const Passes passes(2, 4, 2, 3);
  struct Case {
    const char *id, *meaning, *title, *dims;
  };
  for (const Case& c :
       {Case{"prefill.c1.head.x", "last out", "last prefill.c1.layer1.out", "BE"},
        {"prefill.c1.head.n", "unstored last final_norm", "unstored last prefill.c1.final_norm",
         "BE"},
        {"prefill.c1.head.s", "stat last final_ss", "stat last prefill.c1.final_ss", "B"},
        {"prefill.c1.layer1.n", "last in", "last prefill.c1.layer0.out", "BE"},
        {"prefill.c1.layer0.n", "last in", "last prefill.c1.embed", "BE"},
        {"prefill.c1.layer1.k_old", "previous k_cache", "prefill.c0.layer1.k_cache", "BMKQ"},
        {"prefill.c1.layer1.ps", "input pos", "prefill.c1.pos", "BL"},
        {"prefill.c1.layer1.w", "weight wq", "layer1.wq", "EHQ"},
        {"prefill.c1.layer1.w", "weight rope_cos", "rope_cos", "PJ"},
        {"prefill.c1.head.g", "weight final_norm", "final_norm", "E"},
        {"prefill.c1.sample.v", "stat candidates", "stat prefill.c1.candidates", "BC"},
        {"prefill.c1.sample.i", "stat indices", "stat prefill.c1.indices", "BC"}}) {
    const auto s = subject(c.id, c.meaning, config, passes, NumberFormat::f32);
    ASSERT_TRUE(s.has_value()) << c.meaning;
    EXPECT_EQ(s->title(), c.title);
    EXPECT_EQ(s->dims, c.dims);
  }
  for (const char* meaning : {"last logits", "last k_cache", "last token", "stat gate",
                              "previous k_cache", "weight gate", "constant ones", "input gate"})
    EXPECT_FALSE(subject("prefill.c0.layer0.v", meaning, config, passes, NumberFormat::f32))
        << meaning;
}

TEST(Subject, OfNoModel) {
  const ModelConfig config = parse_model("palm-tiny");
  const Passes passes(2, 4, 2, 3);
  for (const char* id : {"prefill.c2.embed", "prefill.c0.layer2.q", "prefill.c0.layer0.embed",
                         "prefill.c0.q", "prefill.c0.layer0.norm2", "prefill.c0.layerx.q",
                         "prefill.c0.layer", "prefill.c0.", "x", "", "layer0.w_down"})
    EXPECT_FALSE(subject(id, "", config, passes, NumberFormat::f32).has_value()) << id;
}

}  // namespace
}  // namespace shardproof::dump
