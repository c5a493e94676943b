#include "golden/verify/degenerate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "golden/verify/verify.h"
#include "tests/golden/case_gen.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

Case a_case(const std::string& more = "") {
  return parse_case(
      more +
      " torus=2x1x3 prefill=ws2d:batch batch=6 prompt=3 gen=2 seed=9 block=serial "
      "model=palm-tiny,layers=2,E=24,F=24,H=12,K=6,Q=4,V=24,norm=layernorm,bias=all,tied=false");
}

/// The notes on the case's data, with its generated weights but for what `change` makes of them.
std::vector<std::string> notes_with(
    const Case& c, const std::function<void(std::map<std::string, Tensor>&)>& change) {
  const Weights made = generate_weights(c.model, c.seed);
  std::map<std::string, Tensor> tensors = made.tensors();
  change(tensors);
  const Weights given(c.model, std::move(tensors));
  OracleMemo memo;
  const auto known = memo.get(c, &given);
  return notes_of_data(known->stored, known->answer);
}

constexpr const char* kEnd = " (try regime=field)";

TEST(Degenerate, GeneratedDataAreNot) {
  EXPECT_EQ(notes_with(a_case(), [](auto&) {}), std::vector<std::string>());
  OracleMemo memo;
  for (const char* more : {"weights=int8", "act=bf16", "regime=f32"}) {
    const Case c = a_case(more);
    EXPECT_EQ(verify_case(c, memo).notes, std::vector<std::string>()) << more;
  }
}

TEST(Degenerate, AWeightThatIsZeroIsNamed) {
  for (const WeightSpec& spec : weight_specs(a_case().model)) {
    if (spec.dims == "PJ") continue;
    const auto notes = notes_with(a_case(), [&](auto& tensors) {
      std::fill(tensors.at(spec.name).data.begin(), tensors.at(spec.name).data.end(), 0.0F);
    });
    ASSERT_FALSE(notes.empty()) << spec.name;
    EXPECT_TRUE(notes[0].starts_with("degenerate data: " + spec.name)) << notes[0];
    EXPECT_NE(notes[0].find(" zero, and a fault in what it multiplies does not show"),
              std::string::npos);
  }
  // A single other element makes it another.
  for (const float other : {1.0F, -0x1p-20F})
    EXPECT_EQ(notes_with(a_case(),
                         [&](auto& tensors) {
                           Tensor& wo = tensors.at("layer1.wo");
                           std::fill(wo.data.begin(), wo.data.end(), 0.0F);
                           wo.data.back() = other;
                         }),
              std::vector<std::string>());
}

TEST(Degenerate, AWeightThatIsEqualAlongADimIsNamedWithIt) {
  for (const WeightSpec& spec : weight_specs(a_case().model)) {
    if (spec.dims == "PJ") continue;
    for (std::size_t d = 0; d < spec.dims.size(); ++d) {
      const auto equal_along_d = [&](Tensor& t) {
        std::int64_t inner = 1;
        for (std::size_t i = d + 1; i < t.shape.size(); ++i) inner *= t.shape[i];
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(t.data.size()); ++i)
          t.data[static_cast<std::size_t>(i)] =
              t.data[static_cast<std::size_t>(i - i % (inner * t.shape[d]) + i % inner)];
      };
      const std::string wanted = fmt::format(
          "degenerate data: {} is equal along {}, and a wrong order of {} does not show", spec.name,
          spec.dims[d], spec.dims[d]);
      const auto notes =
          notes_with(a_case(), [&](auto& tensors) { equal_along_d(tensors.at(spec.name)); });
      // Of a gain or bias nothing else is degenerate; a table whose tokens are alike has alike
      // rows.
      ASSERT_FALSE(notes.empty()) << wanted;
      EXPECT_TRUE(notes[0] == wanted + kEnd || notes.size() > 1) << notes[0];
      EXPECT_NE(std::find(notes.begin(), notes.end(), wanted + kEnd), notes.end()) << wanted;
      const auto nearly = notes_with(a_case(), [&](auto& tensors) {
        Tensor& t = tensors.at(spec.name);
        equal_along_d(t);
        t.data.back() = std::nextafter(t.data.back(), 9.0F);
      });
      EXPECT_EQ(std::find(nearly.begin(), nearly.end(), wanted + kEnd), nearly.end()) << wanted;
    }
  }
}

TEST(Degenerate, RowsThatAreEqualAreNamed) {
  Case c = a_case();
  // One token in the vocabulary: every row is the same.
  c.model.V = 1;
  c.torus = Torus(1, 1, 1);
  const auto notes = notes_with(c, [](auto&) {});
  ASSERT_FALSE(notes.empty());
  for (const char* phase : {"prefill", "decode"})
    EXPECT_EQ(std::count(notes.begin(), notes.end(),
                         fmt::format("degenerate data: all rows of B are equal in the {}, and rows "
                                     "that change places do not show{}",
                                     phase, kEnd)),
              1)
        << notes.back();
}

// What is degenerate is equal all the same, and said by verify.
TEST(Degenerate, VerifySaysIt) {
  const Case c = a_case();
  const Weights made = generate_weights(c.model, c.seed);
  std::map<std::string, Tensor> tensors = made.tensors();
  for (const char* name : {"layer0.wq", "layer1.wq"}) {
    Tensor& t = tensors.at(name);
    const auto row = static_cast<std::ptrdiff_t>(t.data.size()) / t.shape[0];
    for (std::int64_t e = 1; e < t.shape[0]; ++e)
      std::copy_n(t.data.begin(), row, t.data.begin() + e * row);
  }
  const Weights given(c.model, std::move(tensors));
  OracleMemo memo;
  const Judgement j = verify_case(c, memo, {.weights = &given});
  EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
  EXPECT_EQ(j.notes, std::vector<std::string>({std::string(
                         "degenerate data: layer0.wq, layer1.wq are equal along E, and a wrong "
                         "order of E does not show (try regime=field)")}));
}

}  // namespace
}  // namespace shardproof
