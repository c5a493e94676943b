// What a file or a value says of arithmetic, and where roundings on the wire count.
#include "golden/trace/claim/arithmetic_declaration.h"

#include <gtest/gtest.h>

#include "tests/golden/trace/written.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

using bounds::Order;
using bounds::Reduction;

bool is(const bounds::Ulp& ulp, const std::vector<double>& of) {
  const std::vector<double> all{static_cast<double>(ulp.exp), static_cast<double>(ulp.erf),
                                static_cast<double>(ulp.tanh), static_cast<double>(ulp.sigmoid),
                                static_cast<double>(ulp.rsqrt)};
  return all == of;
}
bool is(const bounds::Adding& adding, int block, int extra) {
  return adding.block == block && adding.extra == extra;
}

TEST(DeclaredArithmetic, ReadsEachKeyOfAFileAndOfAValue) {
  const Arithmetic none = read_arithmetic({}, NumberFormat::f32);
  EXPECT_FALSE(none.said);
  EXPECT_EQ(none.bounds.values, NumberFormat::f32);
  EXPECT_TRUE(is(none.bounds.ulp, {4, 8, 8, 8, 2}));
  struct Case {
    const char *key, *value;
    bool (*holds)(const Arithmetic&);
  };
  for (const Case& c : {
           Case{"arithmetic", "f64", [](auto& a) { return a.bounds.sums == NumberFormat::f64; }},
           Case{"arithmetic", "exact", [](auto& a) { return a.exact && a.said; }},
           Case{"arithmetic", "bf16",
                [](auto& a) {
                  return a.bounds.values == NumberFormat::bf16 &&
                         a.bounds.sums == NumberFormat::f32;
                }},
           Case{"arithmetic", "f16",
                [](auto& a) {
                  return a.bounds.values == NumberFormat::f16 &&
                         a.bounds.unstored() == NumberFormat::f32;
                }},
           Case{"wire", "3",
                [](auto& a) {
                  return a.bounds.wire_roundings == 3 && a.bounds.wire == NumberFormat::bf16;
                }},
           Case{"wire", "bf16:2", [](auto& a) { return a.bounds.wire_roundings == 2; }},
           Case{"wire", "f16:7",
                [](auto& a) {
                  return a.bounds.wire_roundings == 7 && a.bounds.wire == NumberFormat::f16;
                }},
           Case{"wire", "f32",
                [](auto& a) {
                  return a.bounds.wire_roundings == 0 && a.bounds.wire == NumberFormat::f32;
                }},
           Case{"sums", "bf16",
                [](auto& a) {
                  return a.bounds.of_matrix_product().sums == NumberFormat::bf16 &&
                         a.bounds.operations.unit == 0x1p-24;
                }},
           Case{"sums", "f16",
                [](auto& a) { return a.bounds.of_matrix_product().sums == NumberFormat::f16; }},
           Case{"sums", "f32",
                [](auto& a) { return a.bounds.of_matrix_product().sums == NumberFormat::f32; }},
           Case{"ulp", "5",
                [](auto& a) {
                  return is(a.bounds.ulp, {5, 5, 5, 5, 5});
                }},
           Case{"ulp", "tanh:3, rsqrt:1",
                [](auto& a) {
                  return is(a.bounds.ulp, {4, 8, 3, 8, 1});
                }},
           Case{"folded", "2", [](auto& a) { return a.bounds.folded == 2; }},
           Case{"rounding", "any", [](auto& a) { return a.bounds.rounding.empty(); }},
           Case{"reduction", "ring", [](auto& a) { return a.bounds.reduction == Reduction::ring; }},
           Case{"reduction", "any", [](auto& a) { return a.bounds.reduction == Reduction::any; }},
           Case{"order", "natural", [](auto& a) { return a.bounds.order == Order::natural; }},
           Case{"order", "lanes:16",
                [](auto& a) { return a.bounds.order == Order::lanes && a.bounds.lanes == 16; }},
           Case{"sum_depth", "12", [](auto& a) { return a.bounds.sum_depth == 12; }},
           Case{"adding", "truncating:8,1", [](auto& a) { return is(a.bounds.adding, 8, 1); }},
           Case{"adding", "h100", [](auto& a) { return is(a.bounds.adding, 16, 2); }},
           Case{"adding", "nearest", [](auto& a) { return is(a.bounds.adding, 0, 0); }},
       }) {
    const dump::Attributes said{{c.key, c.value}};
    EXPECT_TRUE(c.holds(read_arithmetic(said, NumberFormat::f32))) << c.key << "=" << c.value;
    EXPECT_TRUE(c.holds(read_arithmetic(said, none))) << c.key << "=" << c.value;
    EXPECT_TRUE(says_arithmetic(said)) << c.key;
  }
  EXPECT_FALSE(read_arithmetic({{"confidence", "worst"}}, NumberFormat::f32).bounds.confident);
  EXPECT_FALSE(says_arithmetic({{"confidence", "worst"}, {"layout", "BLE"}}));
}

TEST(DeclaredArithmetic, AValueOverridesTheFile) {
  const Arithmetic file =
      read_arithmetic({{"arithmetic", "f64"}, {"wire", "2"}, {"ulp", "3"}}, NumberFormat::f32);
  const Arithmetic value = read_arithmetic({{"arithmetic", "f32"}, {"wire", "f32"}}, file);
  EXPECT_EQ(value.bounds.sums, NumberFormat::f32);
  EXPECT_EQ(value.bounds.wire_roundings, 0);
  EXPECT_EQ(value.bounds.ulp.exp, 3);
  EXPECT_EQ(value.bounds.operations.unit, 0x1p-24);
  // The file's sums are of products with matrices, a value's own of its sum.
  const Arithmetic sums = read_arithmetic({{"sums", "bf16"}}, NumberFormat::f32);
  EXPECT_EQ(sums.bounds.sums, NumberFormat::f32);
  EXPECT_EQ(read_arithmetic({{"ulp", "3"}}, sums).bounds.of_matrix_product().sums,
            NumberFormat::bf16);
  EXPECT_EQ(read_arithmetic({{"sums", "f32"}}, sums).bounds.of_matrix_product().sums,
            NumberFormat::f32);
  EXPECT_EQ(read_arithmetic({{"sums", "f16"}}, sums).bounds.sums, NumberFormat::f16);
  // Of a case of bf16 the file's f32 is that of sums; a value's own is its format.
  const Arithmetic bf16 = read_arithmetic({{"arithmetic", "f32"}}, NumberFormat::bf16);
  EXPECT_EQ(bf16.bounds.values, NumberFormat::bf16);
  EXPECT_EQ(read_arithmetic({{"arithmetic", "f32"}}, bf16).bounds.values, NumberFormat::f32);
}

TEST(DeclaredArithmetic, RefusesByName) {
  for (const auto& [key, value, part] :
       {std::tuple{"arithmetic", "f8", "arithmetic=\"f8\": legal: f32, f64, bf16, f16, exact"},
        {"sums", "f64", "legal: f32, bf16, f16"},
        {"wire", "int8:2", "wire"},
        {"wire", "-1", "whole number from 0"},
        {"ulp", "exp", "ulp"},
        {"ulp", "sin:3", "legal: exp, erf, tanh, sigmoid, rsqrt"},
        {"ulp", "exp:x", "whole number"},
        {"folded", "1.5", "folded"},
        {"reduction", "butterfly", "legal: named, ring, tree, group, any"},
        {"order", "lanes:0", "from 1"},
        {"order", "lanes:W", "order"},
        {"order", "sorted", "legal: any, natural, lanes:W"},
        {"sum_depth", "0", "from 1"},
        {"adding", "truncating:8", "truncating:BLOCK,EXTRA"},
        {"adding", "b200", "legal: nearest, v100, a100, h100"},
        {"confidence", "0.99", "legal: 2^-41, worst"}}) {
    const auto read = [&, k = key, v = value] { read_arithmetic({{k, v}}, NumberFormat::f32); };
    EXPECT_EQ(label_of(read), "dump_attribute") << value;
    EXPECT_NE(message_of(read).find(part), std::string::npos) << message_of(read);
  }
  const auto exact = [] {
    read_arithmetic({{"arithmetic", "exact"}, {"sums", "bf16"}}, NumberFormat::f32);
  };
  EXPECT_NE(message_of(exact).find("sums are exact"), std::string::npos);
  const auto f16 = [] { read_arithmetic({{"arithmetic", "f16"}}, NumberFormat::bf16); };
  EXPECT_NE(message_of(f16).find("act=bf16"), std::string::npos);
}

/// The values of some names, each in a layout, stacked on the torus.
dump::Dump laid_out(const ExactRun& run, const std::map<std::string, std::string>& layouts) {
  dump::Dump d = run.trace({}, "f32");
  for (const Written& w : run.values()) {
    if (const auto layout = layouts.find(w.name); layout != layouts.end())
      run.add(d, w, layout->second, 1);
  }
  return d;
}

TEST(DeclaredArithmetic, AValueMayBeOfFewerDigits) {
  const ExactRun run(kLine);
  const std::string gate = "decode.1.layer0.gate";
  for (const auto& [encoding, arithmetic] :
       {std::pair{NumberFormat::bf16, "bf16"}, {NumberFormat::f16, "f16"}}) {
    dump::Dump d = laid_out(run, {{"decode.1.layer0.norm", "BLE"}, {"decode.1.layer0.up", "BLF"}});
    const Tensor t = run.value(gate);
    dump::Value value;
    const dump::StoredArray rounded = stored(t.shape, {t.data.begin(), t.data.end()}, encoding);
    std::vector<double> numbers;
    for (std::size_t i = 0; i < rounded.size(); ++i) numbers.push_back(rounded.at(i));
    value.whole = stored(t.shape, numbers, NumberFormat::f32);
    ExactRun::insert(d, gate, value);
    EXPECT_EQ(run.judged(d).count(Fit::different), 1) << arithmetic;
    d.values.find(gate)->second.attributes["arithmetic"] = arithmetic;
    const Verdict v = run.judged(d);
    EXPECT_EQ(v.count(Fit::different), 0) << arithmetic;
    // The others are f32 all the same.
    d.values.find("decode.1.layer0.up")->second.whole.bytes[2] = std::byte{0x40};
    EXPECT_EQ(run.judged(d).count(Fit::different), 1) << arithmetic;
  }
}

TEST(DeclaredArithmetic, RoundingsOnTheWireCountWhereChipsHavePartialSums) {
  const ExactRun run(
      "torus=2x1x1 model=llama,layers=1,E=16,F=24,H=4,K=2,Q=4,V=30 batch=2 prompt=3 gen=1");
  const std::string at = "prefill.c0.layer0.";
  dump::Dump d = laid_out(run, {{at + "norm", "BLE"},
                                {at + "q", "BLH_xQ"},
                                {at + "attn", "BLH_xQ"},
                                {at + "attn_out", "BLE"},
                                {at + "norm2", "BLE"},
                                {at + "gate", "BLF_x"},
                                {at + "up", "BLF_x"},
                                {at + "hidden", "BLF_x"},
                                {at + "ffn_out", "BLE"},
                                {"prefill.c0.logits", "BV_x"}});
  d.attributes["wire"] = "1";
  d.values.find(at + "up")->second.attributes["wire"] = "2";
  const auto roundings = [&](const std::string& name) {
    const Claim claim = read_claim(d.attributes, std::nullopt);
    const Values values = read_values(d, claim, run.weights());
    return named(values.dumped, name).declared_or(claim.declared).wire_roundings;
  };
  for (const char* name : {"q", "gate"}) EXPECT_EQ(roundings(at + name), 0) << name;
  for (const char* name : {"attn_out", "ffn_out"}) EXPECT_EQ(roundings(at + name), 1) << name;
  EXPECT_EQ(roundings(at + "up"), 2) << "it says so itself";
  EXPECT_EQ(roundings("prefill.c0.logits"), 1) << "its operand is not in the file";
  // What is the same as another may be what the product takes.
  dump::Value sliced;
  sliced.whole = stored({0}, {});
  sliced.attributes = {{"same_as", at + "norm"}, {"meaning", "norm"}, {"layout", "BLE_x"}};
  ExactRun::insert(d, at + "norm_slice", sliced);
  EXPECT_EQ(roundings(at + "q"), 1);
  d.values.erase(at + "norm_slice");
  d.order.pop_back();
  EXPECT_EQ(roundings(at + "q"), 0);
  // Of a product over channels that are cut.
  d.values.find(at + "norm")->second.attributes["layout"] = "BLE_x";
  d.values.find(at + "norm")->second.whole =
      stored({2, 1, 1, 2, 3, 8}, std::vector<double>(96, 1.0));
  EXPECT_EQ(roundings(at + "q"), 1);
}

TEST(DeclaredArithmetic, TheOrderOfAValueMayBeItsPlace) {
  EXPECT_FALSE(says_arithmetic({{"order", "17"}}));
  EXPECT_TRUE(says_arithmetic({{"order", "natural"}}));
  EXPECT_EQ(read_arithmetic({{"order", "17"}}, read_arithmetic({}, NumberFormat::f32)).bounds.order,
            Order::any);
  EXPECT_EQ(label_of([] {
              read_arithmetic({{"order", "17"}}, NumberFormat::f32);
            }),
            "dump_attribute");
}

}  // namespace
}  // namespace shardproof::dump
