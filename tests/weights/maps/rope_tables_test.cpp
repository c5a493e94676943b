#include "weights/maps/rope_tables.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

using Value = ConfigFormula::Value;

/// Values of arguments, as a map writes them.
std::vector<Value> arguments(const std::string& text) {
  return ConfigFormula::parse("f(" + text + ")").arguments([](const std::string&) {
    return std::nullopt;
  });
}

Tensor table(const std::string& function, const std::string& text, std::int64_t positions = 3) {
  return make_table(function, arguments(text), positions);
}

/// Row 2 of the cosines and row 1 of the sines, pair by pair, of theta = 100 and 8 channels.
struct ScalingRow {
  const char* scaling;
  std::vector<float> cosines, sines;
};

// Another program's numbers, rounded to f32.
TEST(RopeTables, OfEachScaling) {
  const std::vector<ScalingRow> rows{
      {"None",
       {-0.416146844625473F, 0.8065783977508545F, 0.9800665974617004F, 0.9980006814002991F},
       {0.8414709568023682F, 0.3109835982322693F, 0.0998334139585495F, 0.031617507338523865F}},
      {"dict(rope_type='default')",
       {-0.416146844625473F, 0.8065783977508545F, 0.9800665974617004F, 0.9980006814002991F},
       {0.8414709568023682F, 0.3109835982322693F, 0.0998334139585495F, 0.031617507338523865F}},
      {"dict(rope_type='linear', factor=8.0)",
       {0.9689124226570129F, 0.9968766570091248F, 0.9996874928474426F, 0.9999687671661377F},
       {0.1246747300028801F, 0.03951817750930786F, 0.0124996742233634F, 0.0039528366178274155F}},
      {"dict(rope_type='llama3', factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, "
       "original_max_position_embeddings=16)",
       {0.4065580368041992F, 0.9968766570091248F, 0.9996874928474426F, 0.9999687671661377F},
       {0.5447210073471069F, 0.03951817750930786F, 0.0124996742233634F, 0.0039528366178274155F}},
      {"dict(rope_type='yarn', factor=4.0, original_max_position_embeddings=16)",
       {-0.4738370478153229F, 1.124426245689392F, 1.1372064352035522F, 1.1384871006011963F},
       {0.9581236243247986F, 0.08992282301187515F, 0.028462771326303482F, 0.009001562371850014F}},
      {"dict(type='yarn', factor=4.0, beta_fast=8, beta_slow=2, truncate=False, mscale=1.0, "
       "mscale_all_dim=0.8), 64",
       {-0.4265330135822296F, 0.9725458025932312F, 1.0236769914627075F, 1.0248298645019531F},
       {0.8624723553657532F, 0.1638905555009842F, 0.025621280074119568F, 0.008102919906377792F}},
      {"dict(rope_type='yarn', factor=0.5, attention_factor=0.7), 64",
       {-0.29130280017852783F, 0.4655148684978485F, 0.6614698767662048F, 0.6944074630737305F},
       {0.5890296697616577F, 0.2864782512187958F, 0.11612728983163834F, 0.04424237832427025F}}};
  for (const ScalingRow& row : rows) {
    const std::string half = std::string("100.0, 8, 10, 'half', ") + row.scaling;
    const std::string mixed = std::string("100.0, 8, 10, 'interleaved', ") + row.scaling;
    const Tensor cosines = table("rope_cos", half), sines = table("rope_sin", mixed);
    ASSERT_EQ(cosines.shape, (Shape{3, 10}));
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(cosines.data[20 + i], row.cosines[i]) << row.scaling;
      EXPECT_EQ(cosines.data[24 + i], row.cosines[i]) << row.scaling;
      EXPECT_EQ(sines.data[10 + 2 * i], row.sines[i]) << row.scaling;
      EXPECT_EQ(sines.data[11 + 2 * i], row.sines[i]) << row.scaling;
    }
    for (std::size_t i : {8U, 9U, 18U, 19U, 28U, 29U}) {
      EXPECT_EQ(cosines.data[i], 1.0F);
      EXPECT_EQ(sines.data[i], 0.0F);
    }
  }
}

TEST(RopeTables, ArgumentsThatAreLeftOut) {
  EXPECT_EQ(table("rope_cos", "100, 8, 8").data, table("rope_cos", "100, 8, 8, 'half', None").data);
  EXPECT_EQ(table("slopes", "6").data, table("slopes", "6, 8.0, False").data);
}

TEST(RopeTables, Slopes) {
  using Row = std::vector<float>;
  EXPECT_EQ(table("slopes", "4").data, (Row{0.25F, 0.0625F, 0.015625F, 0.00390625F}));
  EXPECT_EQ(table("slopes", "6").data, (Row{0.25F, 0.0625F, 0.015625F, 0.00390625F, 0.5F, 0.125F}));
  EXPECT_EQ(table("slopes", "3, 4.0, True").data, (Row{0.25F, 0.0625F, 0.5F}));
  EXPECT_EQ(table("slopes", "3, 4.0").data, (Row{0.25F, 0.0625F, 0.5F}));
  EXPECT_EQ(table("slopes", "5, 8, True").data,
            (Row{0.25F, 0.0625F, 0.015625F, 0.00390625F, 0.5F}));
  EXPECT_EQ(table("slopes", "1").data, Row{0.00390625F});
  EXPECT_EQ(table("slopes", "2, 8, True").data, (Row{0.0625F, 0.00390625F}));
}

TEST(RopeTables, AreRefused) {
  const auto label = [](const std::string& function, const std::string& text) {
    return label_of([&] { table(function, text); });
  };
  for (const char* text : {"",
                           "1e4, 8",
                           "1e4, 8, 8, 'half', None, 64, 1",
                           "'a', 8, 8",
                           "0.0, 8, 8",
                           "-1, 8, 8",
                           "1e4, 7, 8",
                           "1e4, 8, 6",
                           "1e4, 0, 8",
                           "1e4, 2.5, 8",
                           "1e4, 8, 1e9",
                           "1e4, 8, 8, 'whole'",
                           "1e4, 8, 8, 3",
                           "1e4, 8, 8, 'half', 3",
                           "1e4, 8, 8, 'half', dict(rope_type='ntk')",
                           "1e4, 8, 8, 'half', dict(rope_type='linear')",
                           "1e4, 8, 8, 'half', dict(rope_type='linear', factor=0)",
                           "1e4, 8, 8, 'half', dict(rope_type='linear', factor='a')",
                           "1e4, 8, 8, 'half', dict(rope_type='yarn', factor=2.0)",
                           "1e4, 8, 8, 'half', dict(rope_type='yarn', factor=2.0), 0",
                           "1e4, 8, 8, 'half', dict(rope_type='llama3', factor=2.0), 16"})
    EXPECT_EQ(label("rope_cos", text), "model_map_c6") << text;
  for (const char* text : {"", "0", "1.5", "'a'", "1, 8, True, 4", "1, 'a'", "4e6"})
    EXPECT_EQ(label("slopes", text), "model_map_c6") << text;
  for (const char* name : {"rope_cos", "rope_sin", "slopes"}) EXPECT_TRUE(makes_table(name));
  EXPECT_FALSE(makes_table("rope"));
  EXPECT_FALSE(makes_table(""));
}

}  // namespace
}  // namespace shardproof
