#include "golden/corpus/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "golden/corpus/not_equal.h"
#include "tests/golden/corpus/goldens.h"
#include "tests/sanitized.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"
#include "weights/text/writer.h"

namespace shardproof::corpus {
namespace {

const std::string kTiny =
    "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=4,V=12,positions=8 "
    "prefill=wg-xyz:batch decode=ws2d:batch batch=6 prompt=3 chunk=2 gen=2";

/// The tiny case of the text that its model is written as, which no file has.
Case text_case(const std::string& keys) {
  static const ModelText text = parse_model_text(text_of_model(parse_case(kTiny).model));
  std::string line = kTiny;
  const auto at = line.find("model=") + 6;
  return parse_case(line.replace(at, line.find(' ', at) - at, "gone.model") + " " + keys, {},
                    &text);
}

constexpr std::string_view kTextAttribute = "text";

/// Of the tiny case, with these keys, too, after "text" of its text; of its seed or of a file.
const dump::Dump& golden_of(const std::string& keys, bool of_file = false) {
  static std::map<std::pair<std::string, bool>, dump::Dump> made;
  auto& golden = made[{keys, of_file}];
  if (!golden.values.empty()) return golden;
  const Case c = keys.starts_with(kTextAttribute) ? text_case(keys.substr(kTextAttribute.size()))
                                                  : parse_case(kTiny + " " + keys);
  const Weights weights = generate_weights(c.model, 77);
  golden = model_golden(c, of_file ? &weights : nullptr);
  return golden;
}

struct Sort {
  const char* keys;
  bool of_file;
};
class ModelGolden : public testing::TestWithParam<Sort> {
 protected:
  const dump::Dump& golden() const { return golden_of(GetParam().keys, GetParam().of_file); }
};

TEST_P(ModelGolden, IsEqual) {
  const CheckResult checked = check(golden());
  EXPECT_EQ(checked.fault, "");
  EXPECT_EQ(checked.kind, Kind::model);
  EXPECT_EQ(checked.values, std::ssize(golden().order));
  EXPECT_EQ(golden().attributes.find("weights")->second, GetParam().of_file ? "file" : "seed");
}

bool is_weight(const dump::Dump& golden, const std::string& name) {
  const Case c = case_of(golden);
  const auto specs = weight_specs(
      c.model, c.numerics.weights == NumberFormat::int8 ? NumberFormat::int8 : NumberFormat::f32);
  return std::any_of(specs.begin(), specs.end(),
                     [&](const WeightSpec& spec) { return spec.name == name; });
}

/// What is said of it by the unsharded model alone, as where somebody is judged by it: a run of the
/// same programs finds nothing more in a value.
std::string said_by_model(const dump::Dump& golden) {
  try {
    return first_difference(expected_model(golden, By::model), golden).value_or("");
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_P(ModelGolden, EveryArrayChangedIsSeen) {
  OneInN next(7, "values");
  for (const std::string& name : golden().order) {
    if (!next() || (GetParam().of_file && is_weight(golden(), name))) continue;
    const dump::StoredArray& stored = golden().values.find(name)->second.whole;
    const std::size_t last = stored.size() - 1;
    const int bits = 8 * static_cast<int>(bytes_of(stored.encoding));
    const std::string first_bit = said_by_model(flipped(golden(), name, 0, 0));
    EXPECT_TRUE(names(first_bit, name)) << first_bit;
    const std::string last_bit = said_by_model(flipped(golden(), name, last, bits - 1));
    EXPECT_TRUE(names(last_bit, name)) << last_bit;
  }
  const std::string name = "decode.1.layer0.gate";
  const std::string fault = check(flipped(golden(), name, 1)).fault;
  EXPECT_TRUE(names(fault, name)) << fault;
}

/// Where the golden's weights are the only ones, the values are others. An element that they
/// depend on: of the tables of RoPE position 1, where no sine is 0.
TEST_P(ModelGolden, EveryWeightChangedIsSeen) {
  OneInN next(4, "weights");
  for (const std::string& name : golden().order) {
    if (!next() || !is_weight(golden(), name)) continue;
    const bool int8 = golden().values.find(name)->second.whole.encoding == NumberFormat::int8;
    const std::string fault = said_by_model(flipped(golden(), name, 2, int8 ? 6 : 23));
    EXPECT_NE(fault, "") << name;
    if (!GetParam().of_file) {
      EXPECT_TRUE(names(fault, name)) << fault;
    }
  }
}

TEST_P(ModelGolden, EveryArrayThatIsMissingIsSeen) {
  OneInN next(7, "values");
  for (const std::string& name : golden().order) {
    if (!next()) continue;
    dump::Dump less = golden();
    erase(less, name);
    EXPECT_NE(said_by_model(less).find(name), std::string::npos) << name;
  }
  dump::Dump more = golden();
  more.values["prefill.c9.embed"] = more.values["prefill.c0.embed"];
  EXPECT_EQ(said_by_model(more), "prefill.c9.embed is one value too many");
}

INSTANTIATE_TEST_SUITE_P(Sorts, ModelGolden,
                         testing::Values(Sort{"", false}, Sort{"", true},
                                         Sort{"weights=int8", false}, Sort{"weights=int8", true},
                                         Sort{"act=bf16", false},
                                         Sort{"weights=bf16 act=bf16", true}, Sort{"text", false},
                                         Sort{"text act=bf16", true},
                                         Sort{"text prefix=2:3", false}));

/// The text that a golden carries is its model: a changed text gives other values, and a golden
/// without it cannot be recomputed.
TEST(ModelGolden, ATextThatIsChangedIsSeen) {
  struct Change {
    const char *from, *to;
  };
  for (const Change& change :
       {Change{"act : BLF = silu(gate)", "act : BLF = gelu(gate)"},
        Change{"within(far, -inf, 0)", "within(far, -inf, 1)"},
        Change{"merge_dim(raw_attn, KG->H)", "merge_dim(raw_attn, GK->H)"},
        Change{"mul(act, up)", "mul(act, act)"}, Change{"layers=1", "layers=2"}}) {
    dump::Dump golden = golden_of("text");
    std::string& text = golden.attributes["text_of_model"];
    const auto at = text.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from << "\n" << text;
    text.replace(at, std::string(change.from).size(), change.to);
    EXPECT_NE(fault_of(golden), "") << change.to;
  }
  dump::Dump without = golden_of("text");
  without.attributes.erase("text_of_model");
  EXPECT_NE(fault_of(without).find("gone.model"), std::string::npos) << fault_of(without);
}

TEST(ModelGolden, OfATextHasTheValuesOfItsKeys) {
  const dump::Dump &of_text = golden_of("text"), &of_keys = golden_of("");
  int equal = 0;
  for (const auto& [name, value] : of_keys.values) {
    const auto at = of_text.values.find(name);
    if (at == of_text.values.end()) continue;
    if (name.ends_with("logits") || name.starts_with("rope_")) {
      // Of all positions, and with a column for each channel.
      EXPECT_NE(at->second.whole.shape, value.whole.shape) << name;
      continue;
    }
    EXPECT_EQ(at->second.whole.bytes, value.whole.bytes) << name;
    ++equal;
  }
  EXPECT_GE(equal, 3 * 20);  // of three passes
}

/// Layers whose flags differ have programs of their own, and values that the others lack.
TEST(ModelGolden, OfLayersThatDifferIsEqual) {
  std::string lines = text_of_model(parse_case(kTiny).model);
  const auto put = [&](const std::string& from, const std::string& to) {
    const auto at = lines.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    lines.replace(at, from.size(), to);
  };
  put("layers=1", "local=10, layers=2");
  put("small ", "flag local\nsmall ");
  put("act : BLF = silu(gate)\n",
      "act : BLF = silu(gate) if local\nbent : BLF = tanh(gate) unless local\n"
      "act : BLF = mul(bent, 2) unless local\n");
  const ModelText text = parse_model_text(lines);
  std::string line = kTiny;
  const auto at = line.find("model=") + 6;
  const Case c = parse_case(line.replace(at, line.find(' ', at) - at, "gone.model"), {}, &text);
  const dump::Dump golden = model_golden(c);
  EXPECT_EQ(check(golden).fault, "");
  for (const char* name : {"layer0.act", "layer1.act", "layer1.bent"})
    EXPECT_EQ(golden.values.find("decode.1." + std::string(name))->second.attributes.at("layout"),
              golden.values.find("decode.1.layer0.gate")->second.attributes.at("layout"))
        << name;
  EXPECT_FALSE(golden.values.contains("decode.1.layer0.bent"));
}

/// A layer program that computes something else, or nothing.
TEST(ModelGolden, AChangedProgramIsSeen) {
  struct Change {
    const char *phase, *from, *to;
  };
  for (const Change& change :
       {Change{"decode_layer", "swiglu(hr, ur)", "swiglu(ur, hr)"},
        Change{"prefill_layer", "swiglu(h, u)", "swiglu(u, h)"},
        Change{"prefill_layer", "BLE,EF->BLF; xn, w_up_g2", "BLE,EF->BLF; xn, w_gate_g2"},
        Change{"prefill_layer", "add(x, y)", "add(x, x)"},
        Change{"decode_layer", "reduce_scatter(q, H, x)", "reduce_scatter(q, H, y)"},
        Change{"decode_layer", "all_gather(x, E, zy)", "all_gather(x, E, yz)"},
        Change{"decode_layer", "output out, kc, vc", "output out, kc"},
        Change{"decode_layer", "rope(kr, ps", "rope(kr, pos"},
        Change{"decode_layer", "append(v_old, vr, ps)", "append(v_old, kp, ps)"},
        Change{"decode_layer", "is out\n", "is block_out\n"},
        Change{"prefill_layer", "add(x, y)", "nonsense"}}) {
    dump::Dump golden = golden_of("");
    std::string& text = golden.attributes[change.phase];
    const auto at = text.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from;
    text.replace(at, std::string(change.from).size(), change.to);
    EXPECT_NE(fault_of(golden), "") << change.to;
  }
}

/// Other axes of a type that fits: README's fault.
TEST(ModelGolden, AWrongOrderOfAxesIsSeen) {
  dump::Dump golden = golden_of("");
  std::string& text = golden.attributes["prefill_layer"];
  // The blocks of F are gathered as if they were in the order y z.
  const std::string wrong[][2] = {{"input w_up : E_xF_zy", "input w_up : E_xF_yz"},
                                  {"w_up_g : EF_zy", "w_up_g : EF_yz"},
                                  {"all_gather(w_up_g, F, zy)", "all_gather(w_up_g, F, yz)"}};
  for (const auto& [from, to] : wrong) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  EXPECT_NE(fault_of(golden), "");
}

/// What is said of the tiny golden after a change of an attribute.
std::string said_of_attribute(const std::string& attribute, const std::string& value) {
  dump::Dump golden = golden_of("");
  if (value.empty())
    golden.attributes.erase(attribute);
  else
    golden.attributes[attribute] = value;
  return fault_of(golden);
}

TEST(ModelGolden, ChangedAttributesAreSeen) {
  for (const char* attribute :
       {"case", "weights", "prefill_layer", "decode_layer", "arithmetic", "version", "format"})
    EXPECT_NE(said_of_attribute(attribute, ""), "") << attribute;
  EXPECT_NE(said_of_attribute("case", kTiny), "") << "not in full";
  const std::string full = golden_of("").attributes.find("case")->second;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = full;
    line.replace(line.find(from), from.size(), to);
    return said_of_attribute("case", line);
  };
  EXPECT_NE(with("seed=1", "seed=2"), "");
  // The values are those of every torus: what a corpus has to be of, its CASES say.
  EXPECT_EQ(with("torus=2x1x3", "torus=3x1x2"), "");
  EXPECT_NE(with("torus=2x1x3", "torus=5x1x1"), "") << "no run has these layouts there";
  EXPECT_NE(with("gen=2", "gen=1"), "");
  EXPECT_NE(with("gen=2", "gen=3"), "");
  EXPECT_NE(with("batch=6", "batch=12"), "");
  EXPECT_NE(with("layers=1", "layers=2"), "");
  EXPECT_NE(with("act=f32", "act=bf16"), "");
  EXPECT_NE(with("weights=f32", "weights=int8"), "");
  EXPECT_EQ(with("regime=exact", "regime=f32"),
            "golden_case: regime=f32; a golden is of regime=exact");
  EXPECT_NE(said_of_attribute("weights", "file "), "");
  EXPECT_NE(said_of_attribute("arithmetic", "f32"), "");
  EXPECT_NE(said_of_attribute("gen", "2"), "");
}

TEST(ModelGolden, RefusesWhatIsNoGolden) {
  EXPECT_THROW(model_golden(parse_case(kTiny + " regime=f32")), Error);
  const Case shared = parse_case(kTiny + " prefix=1:1");
  EXPECT_THROW(model_golden(shared), Error);
  Case own = parse_case(kTiny);
  own.prefill = Strategy(
      parse_program(kLayerProgram, golden_of("").attributes.find("prefill_layer")->second, "mine"));
  try {
    model_golden(own);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "golden_case: a golden is of strategies that ship, not of a layer program");
  }
}

TEST(GoldenWeights, RefusesWhatTheModelDoesNotHave) {
  const auto refusal = [](auto change) {
    dump::Dump golden = golden_of("", true);
    change(golden);
    return fault_of(golden);
  };
  EXPECT_EQ(refusal([](dump::Dump& g) { erase(g, "layer0.wq"); }),
            "golden_weights: the golden has no whole layer0.wq");
  EXPECT_EQ(refusal([](dump::Dump& g) {
              g.values.find("layer0.wq")->second.whole.shape = {12, 4, 6};
            }),
            "golden_weights: layer0.wq is [12,4,6], the model's is [12,6,4]");
  EXPECT_NE(refusal([](dump::Dump& g) {
              for (int bit = 23; bit < 31; ++bit)
                flip(g.values.find("layer0.wq")->second.whole, 5, bit);
            }),
            "");
}

}  // namespace
}  // namespace shardproof::corpus
