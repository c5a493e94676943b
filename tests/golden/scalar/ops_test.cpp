// The scalar model knows every op of the table.
#include "golden/scalar/ops.h"

#include <gtest/gtest.h>

#include "golden/scalar/term_order.h"
#include "tests/engine/op_samples.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

TEST(ScalarOps, EveryOpOfTheTableIsApplied) {
  const ModelConfig config;
  for (const OpRow& row : all_ops()) {
    const OpSample* const sample = op_sample(row.kind);
    ASSERT_NE(sample, nullptr) << row.name << " has no sample";
    const Program program = sample->program();
    const std::map<std::string, Type> types = sample->types();
    std::map<std::string, scalar::Value> values;
    for (const ValueDecl& input : program.inputs) {
      const Type& type = types.at(input.name);
      const auto size = static_cast<std::size_t>(element_count(type.shape));
      scalar::Value value{.layout = type.layout, .shape = type.shape, .parts = {}, .ints = {}};
      for (std::size_t i = 0; i < size; ++i)
        if (type.integer)
          value.ints.push_back(static_cast<std::int32_t>(3 + i % 2));
        else if (value.parts.empty())
          value.parts.emplace_back(size, 0.5F);
      values[input.name] = value;
    }
    const scalar::Setting setting{.config = config, .torus = sample->torus};
    for (const Op& op : program.ops) {
      std::vector<const scalar::Value*> args;
      for (const std::string& arg : op.args) args.push_back(&values.at(arg));
      const std::vector<scalar::Value> results = scalar::apply(op, args, setting);
      ASSERT_EQ(results.size(), op.results.size()) << row.name;
      for (std::size_t r = 0; r < results.size(); ++r) {
        EXPECT_EQ(results[r].shape, types.at(op.results[r].name).shape) << row.name;
        values[op.results[r].name] = results[r];
        values[op.results[r].name].layout = op.results[r].layout;
      }
    }
  }
}

TEST(ScalarOps, AnOpThatItDoesNotKnowIsRefused) {
  const scalar::Value one{
      .layout = Layout::parse("B"), .shape = {1}, .parts = {{1.0F}}, .ints = {}};
  Op op;
  op.kind = static_cast<OpKind>(99);
  EXPECT_TRUE(message_of([&] {
                scalar::apply(op, {&one}, {.config = ModelConfig(), .torus = Torus()});
              }).starts_with("scalar_c1"));
}

TEST(ScalarOps, AContractionWhoseOperandsLieElsewhereHasNoOrder) {
  const scalar::Value norm{
      .layout = Layout::parse("BE_x"), .shape = {1, 2}, .parts = {{1.0F, 2.0F}}, .ints = {}};
  const scalar::Value w{
      .layout = Layout::parse("EF"), .shape = {2, 1}, .parts = {{1.0F, 2.0F}}, .ints = {}};
  const Program program = parse_program("test",
                                        "input n : BE_x is in\ninput w : EF is weight w_gate\n"
                                        "h : BF = einsum(BE,EF->BF; n, w) is gate");
  EXPECT_EQ(label_of([&] {
              scalar::require_placed(program.ops.at(0), {&norm, &w}, Torus(2, 1, 1));
            }),
            "scalar_c2");
}

}  // namespace
}  // namespace shardproof
