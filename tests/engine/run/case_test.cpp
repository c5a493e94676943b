#include "engine/run/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "engine/run/plan.h"
#include "tests/engine/text_rows.h"
#include "tests/golden/case_gen.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

std::string said_of(const std::string& line) {
  return message_of([&] { make_plan(parse_case(line)); });
}

TEST(Case, PrintsEveryKeyInOneOrder) {
  EXPECT_EQ(
      print_case(parse_case("seed=11 torus=4x2x3 decode=ws2d:batch prefill=wg-xyz:batch "
                            "model=palm-tiny,K=24 gen=4 prompt=7")),
      "torus=4x2x3 model=palm-tiny,K=24 prefill=wg-xyz:batch decode=ws2d:batch block=parallel "
      "weights=f32 act=f32 regime=exact schedule=group loop=none acc=f32 wire=f32 batch=24 "
      "prompt=7 chunk=7 gen=4 seed=11");
}

TEST(Case, PrintsPaddingOnlyWhereItIsGiven) {
  EXPECT_EQ(print_case(parse_case("")).find("pad"), std::string::npos);
  const std::string line = print_case(parse_case("pad_vocab=300 model=palm-tiny pad_heads=24"));
  EXPECT_TRUE(line.ends_with(" seed=1 pad_heads=24 pad_vocab=300")) << line;
  EXPECT_EQ(print_case(parse_case(line)), line);
  EXPECT_TRUE(print_case(parse_case("pad_vocab=300")).ends_with(" seed=1 pad_vocab=300"));
}

TEST(Case, PrintsATorusOfTheDecodesOnlyWhereItIsGiven) {
  EXPECT_EQ(print_case(parse_case("")).find("decode_torus"), std::string::npos);
  const std::string line = print_case(parse_case("decode_torus=1x2x1 torus=2x1x1"));
  EXPECT_TRUE(line.starts_with("torus=2x1x1 decode_torus=1x2x1 model=palm-tiny ")) << line;
  EXPECT_EQ(print_case(parse_case(line)), line);
  const Case one = parse_case("torus=1x2x1"), two = parse_case("torus=1x2x1 decode_torus=1x2x1");
  EXPECT_NE(one, two);  // a slice of its own, also of the same shape
}

TEST(Case, PrintsPrefixesOnlyWhereTheyAreGivenBehindLengths) {
  EXPECT_EQ(print_case(parse_case("")).find("prefix"), std::string::npos);
  const std::string line =
      print_case(parse_case("prefix=3:2 prompt=9 chunk=4 batch=6 lengths=9,5"));
  EXPECT_NE(line.find(" batch=6 prompt=9 lengths=9,5 prefix=3:2 chunk=4 gen=2 "), std::string::npos)
      << line;
  EXPECT_EQ(print_case(parse_case(line)), line);
  const Case c = parse_case("prefix=3:2 prompt=9 batch=6");
  EXPECT_EQ(c.prefix, (SharedPrefix{3, 2}));
  EXPECT_NE(print_case(c).find(" prompt=9 prefix=3:2 chunk=9 "), std::string::npos);
}

TEST(Case, PrefixesMoveTheDefaultsBehindThem) {
  const Case c = parse_case("prefix=5:3");
  EXPECT_EQ(c.prompt, 9);  // four tokens of a row's own
  EXPECT_EQ(c.batch, 3);
  EXPECT_EQ(c.chunk, 9);
  const Case cut = parse_case("torus=4x2x3 prefill=sp:1d decode=ws2d:bfirst-x prefix=48:5");
  EXPECT_EQ(cut.prompt, 72);
  EXPECT_EQ(cut.batch, 8);
  EXPECT_EQ(said_of(print_case(c)), "");
  EXPECT_EQ(said_of(print_case(cut)), "");
  // What is given stays.
  EXPECT_EQ(parse_case("prefix=5:3 batch=4 prompt=6").batch, 4);
  EXPECT_EQ(parse_case("prefix=5:3 batch=4 prompt=6").prompt, 6);
}

TEST(Case, ItsPassesBeginWithThoseOverThePrefixes) {
  const auto names = [](const std::string& line) {
    std::string all;
    const Passes passes = parse_case(line).passes();
    for (std::int64_t i = 0; i < passes.size(); ++i) {
      const PassPlan pass = passes.at(i);
      all += fmt::format("{} {}x{}, ", pass.name, pass.batch(), pass.L);
    }
    return all;
  };
  EXPECT_EQ(names("prefix=3:2 prompt=7 batch=5 chunk=2 gen=3"),
            "prefix.c0 2x2, prefix.c1 2x1, prefill.c0 5x2, prefill.c1 5x2, decode.1 5x1, "
            "decode.2 5x1, ");
  EXPECT_EQ(names("prompt=7 batch=5 chunk=4 gen=1"), "prefill.c0 5x4, prefill.c1 5x3, ");
  // Drawn lengths have a token behind the prefix.
  for (int seed = 1; seed < 20; ++seed) {
    const Passes passes =
        parse_case(fmt::format("prefix=3:2 prompt=5 batch=7 lengths=ragged chunk=5 seed={}", seed))
            .passes();
    for (const PassRows& group : passes.at(1).rows) {
      EXPECT_EQ(group.start, 3);
      EXPECT_GE(group.tokens, 1);
      EXPECT_LE(group.tokens, 2);
    }
  }
}

TEST(Case, ALayerProgramHasNoPrefixes) {
  Case c = parse_case("torus=2x1x3 batch=6 prompt=9 gen=3");
  const Program layer = partitioned(c, c.prefill, Phase::prefill).layer;
  const Strategy own(parse_program("layer", print_program(layer), "p.txt"));
  const auto message = [&](bool prefill, bool decode, std::int64_t gen, std::int64_t rows) {
    Case changed = c;
    if (prefill) changed.prefill = own;
    if (decode) changed.decode = own;
    changed.gen = gen;
    if (rows > 0) changed.prefix = {5, rows};
    return message_of([&] { make_plan(changed); });
  };
  const std::string refused =
      "case_prefix: prefix=5:3: the layer program p.txt has one cache, of a row's own tokens; "
      "legal: no prefix, or a table in its place";
  EXPECT_EQ(message(true, true, 3, 3), refused);
  EXPECT_EQ(message(true, false, 1, 3), refused);
  EXPECT_EQ(message(false, true, 3, 3), refused);
  EXPECT_EQ(message(false, true, 1, 3), "");  // it is not run
  EXPECT_EQ(message(true, true, 3, 0), "");
  EXPECT_EQ(message(false, false, 3, 3), "");
}

// Each row runs its prefix alone, so a shared one saves the oracle nothing.
TEST(Case, MultipliesForEachRowsPrefix) {
  const auto of = [](const char* line) { return multiply_adds(parse_case(line)); };
  EXPECT_EQ(of("batch=6 prompt=8 chunk=4 prefix=4:1"), of("batch=6 prompt=8 chunk=4"));
  EXPECT_EQ(of("batch=6 prompt=8 chunk=4 prefix=4:6"), of("batch=6 prompt=8 chunk=4"));
  // Another chunk is another look at the vocabulary.
  EXPECT_EQ(of("batch=6 prompt=8 chunk=8 prefix=4:1"), of("batch=6 prompt=8 chunk=4"));
}

TEST(Case, DefaultsAreTheSpecifications) {
  const Case c = parse_case("torus=4x2x3 prefill=ws1d decode=ws2d:batch");
  EXPECT_EQ(c.prefill.to_string(), "ws1d:heads");
  EXPECT_EQ(c.batch, 24);
  EXPECT_EQ(c.prompt, 4);
  EXPECT_EQ(c.chunk, 4);
  EXPECT_EQ(c.gen, 2);
  EXPECT_EQ(c.seed, 1U);
}

TEST(Case, DefaultsAreWhatBothStrategiesDivide) {
  const Case c = parse_case("torus=4x2x3 prefill=sp:1d decode=ws2d:bfirst-x");
  EXPECT_EQ(c.prompt, 24);
  EXPECT_EQ(c.chunk, 24);
  EXPECT_EQ(c.batch, 4);
  EXPECT_EQ(parse_case("torus=1x1x3 prefill=context-z:2d decode=ws2d:batch").prompt, 6);
  EXPECT_EQ(parse_case("torus=4x2x3 prefill=ws2d:bfirst-x decode=dp-z:2d").batch, 12);
  EXPECT_EQ(parse_case("prefill=wg-xyz").decode.to_string(), "wg-xyz:natural");
}

TEST(Case, ABlockGivenTwiceAlikeIsOne) {
  EXPECT_EQ(parse_case("model=palm-tiny,block=serial block=serial"),
            parse_case("model=palm-tiny,block=serial"));
}

TEST(Case, ReleasedIsPrintedAsTheKeysThatItStandsFor) {
  const Case c = parse_case("numerics=released");
  const std::string line = print_case(c);
  EXPECT_NE(line.find("model=palm-tiny,cache=bf16 "), std::string::npos) << line;
  EXPECT_NE(
      line.find("weights=bf16 act=bf16 regime=f32 schedule=ring loop=none acc=bf16 wire=bf16 "),
      std::string::npos)
      << line;
  EXPECT_EQ(line.find("numerics="), std::string::npos) << line;
  EXPECT_EQ(parse_case(line), c);
  // The same said twice is harmless.
  EXPECT_EQ(parse_case("acc=bf16 model=palm-tiny,cache=bf16 numerics=released wire=bf16 act=bf16"),
            c);
}

TEST(Case, EveryChoiceOfArithmeticIsAKeyWithItsWords) {
  for (const NumericsKey& key : numerics_keys()) {
    EXPECT_NE(std::find(case_keys().begin(), case_keys().end(), key.name), case_keys().end());
    const std::string first(key.words.substr(0, key.words.find(',')));
    EXPECT_EQ(parse_case(fmt::format("{}={}", key.name, first)), parse_case("")) << key.name;
    EXPECT_NE(said_of(fmt::format("{}=x", key.name)).find(key.words), std::string::npos);
  }
}

TEST(Case, TheSpecificationHasTheTableOfTheseKeys) {
  std::ifstream file(SHARDPROOF_SOURCE "/docs/spec-numerics.md");
  const std::string spec{std::istreambuf_iterator<char>(file), {}};
  std::size_t at = 0;
  for (const NumericsKey& key : numerics_keys()) {
    const std::size_t row = spec.find(fmt::format("| `{}` | {} | ", key.name, key.words));
    ASSERT_NE(row, std::string::npos) << key.name;
    EXPECT_GT(row, at) << key.name << " is out of order";
    at = row;
  }
  EXPECT_NE(spec.find("`numerics=released` is short for `weights=bf16 act=bf16 regime=f32 "
                      "schedule=ring acc=bf16 wire=bf16`"),
            std::string::npos);
}

RC_GTEST_PROP(Case, ParseOfPrintIsTheIdentity, ()) {
  const Case c = *any_case();
  RC_ASSERT(parse_case(print_case(c)) == c);
}

TEST(Case, MadeByHandIsHeldToTheSameRules) {
  const auto label = [](auto&& change) {
    Case c = parse_case("");
    change(c);
    return label_of([&] { make_plan(c); });
  };
  EXPECT_EQ(label([](Case& c) { c.batch = 0; }), "case_batch");
  EXPECT_EQ(label([](Case& c) { c.prompt = 0; }), "case_prompt");
  EXPECT_EQ(label([](Case& c) { c.gen = 0; }), "case_gen");
  EXPECT_EQ(label([](Case& c) { c.chunk = 9; }), "case_chunk");
  EXPECT_EQ(label([](Case& c) { c.model.H = 0; }), "model_value");
  EXPECT_EQ(label([](Case&) {}), "");
}

TEST(Case, IsRefusedAsItsTableSays) {
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/run", "refused_cases.txt")) {
    const std::string message = said_of(row[0]);
    EXPECT_TRUE(matches(message, row[1])) << row.place << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace shardproof
