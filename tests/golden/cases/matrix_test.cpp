// The standard matrix by what it contains: the rows that golden/cases/cases.h promises, each sought
// by its keys, which matrix_rows.txt lists. How many rows there are says nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "engine/run/plan.h"
#include "golden/cases/cases.h"
#include "golden/cases/products.h"
#include "golden/cases/strata.h"
#include "tests/golden/drawn.h"
#include "tests/golden/text_file.h"

namespace shardproof {
namespace {

using Words = std::set<std::string>;

/// The words that a row of matrix_rows.txt may have, those that are true of a case.
Words words_of(const Case& c) {
  const ModelConfig& m = c.model;
  Words words;
  const auto add = [&](std::string_view key, const auto& value) {
    words.insert(fmt::format("{}={}", key, value));
  };
  add("torus", c.torus.to_string());
  add("prefill", c.prefill.to_string());
  add("decode", c.decode.to_string());
  if (c.prefill == c.decode) add("strategy", c.prefill.to_string());
  add("model", m.preset);
  add("K", m.K);
  if (m.K == m.H) add("K", "H");
  if (1 < m.K && m.K < m.H) words.insert("1<K<H");
  add("block", to_string(m.block));
  add("ffn", to_string(m.ffn));
  add("norm", to_string(m.norm));
  add("bias", to_string(m.bias));
  add("rope", to_string(m.rope));
  add("tied", m.tied);
  add("softmax", to_string(m.softmax));
  add("cache", m.cache ? to_string(*m.cache) : "");
  for (const NumericsKey& key : numerics_keys()) add(key.name, key.get(c.numerics));
  if (c.prefix.given()) add("prefix", "given"), add("prefix", c.prefix.to_string());
  if (c.prefix.given() && c.batch % c.prefix.rows != 0) words.insert("more-rows-for-some");
  if (c.chunk < c.prefix.length) words.insert("chunk<P");
  if (c.lengths.given()) add("lengths", c.lengths.ragged ? "ragged" : "listed");
  add("pad_heads", c.pad_heads);
  add("pad_vocab", c.pad_vocab);
  add("sample", to_string(c.sampling.sample));
  add("temperature", c.sampling.temperature);
  add("top_k", c.sampling.top_k);
  add("top_p", c.sampling.top_p);
  return words;
}

/// Whether some case has all words of a row.
bool contains(const std::string& row) {
  static const std::vector<Words> all = [] {
    std::vector<Words> words;
    for (const Case& c : matrix()) words.push_back(words_of(c));
    return words;
  }();
  Words wanted;
  std::istringstream text(row);
  for (std::string word; text >> word;) wanted.insert(word);
  // Of one that is not asked for there must be none.
  if (row.find("pad_") == std::string::npos) wanted.insert({"pad_heads=0", "pad_vocab=0"});
  const bool of_prefixes = row.find("prefix=") != std::string::npos;
  return std::any_of(all.begin(), all.end(), [&](const Words& words) {
    return std::includes(words.begin(), words.end(), wanted.begin(), wanted.end()) &&
           (of_prefixes || !words.contains("prefix=given"));
  });
}

TEST(Matrix, HasEveryRow) {
  const std::vector<std::string> rows =
      cases::lines_of(text_of_file("tests/golden/cases/matrix_rows.txt"));
  EXPECT_GT(rows.size(), 1500U);
  for (const std::string& row : rows) EXPECT_TRUE(contains(row)) << row;
}

TEST(Matrix, IsNotSaidToHaveWhatItHasNot) {
  for (const char* row : {"torus=4x2x3 torus=3x2x2", "regime=exact acc=bf16", "pad_heads=25"})
    EXPECT_FALSE(contains(row)) << row;
}

TEST(Matrix, HasBf16AsItIsUsed) {
  const auto with_palm = [](const std::string& s, const char* torus, const std::string& rest) {
    return contains("strategy=" + s + " torus=" + torus + " " + rest);
  };
  // Each of five mixtures in some strategies, one of them in every one.
  const std::vector<std::string> mixtures{
      "cache=bf16 act=bf16 weights=bf16 regime=f32", "cache=bf16 act=f32 regime=exact loop=none",
      "cache=f32 act=bf16 wire=bf16 regime=exact", "acc=bf16 wire=f32 regime=f32 loop=none",
      "wire=bf16 acc=f32 regime=f32 loop=none"};
  for (const std::string& mixture : mixtures) {
    int strategies = 0;
    for (const Strategy& s : all_strategies())
      strategies += with_palm(s.to_string(), "4x2x3", mixture) ? 1 : 0;
    EXPECT_GT(strategies, 3) << mixture;
    EXPECT_TRUE(contains("torus=1x5x2 " + mixture)) << mixture;
  }
  for (const Strategy& s : all_strategies()) {
    if (!decodes(s) || !cases::strata::runs(s, Block::parallel)) continue;
    EXPECT_TRUE(std::any_of(mixtures.begin(), mixtures.end(), [&](const std::string& mixture) {
      return with_palm(s.to_string(), "4x2x3", "1<K<H " + mixture);
    })) << s.to_string();
  }
}

// Where the caches of prefixes lie: on all chips, or in blocks, under tables that say so.
TEST(Matrix, HasPrefixesWholeAndInBlocks) {
  std::map<std::string, std::set<bool>> in_blocks;
  for (const Case& c : matrix()) {
    if (!c.prefix.given() || !(c.prefill == c.decode) || c.torus.to_string() != "4x2x3") continue;
    const Layout cache = make_plan(c).decode.prefix_cache;
    in_blocks[c.prefill.to_string()].insert(!cache.to_string().starts_with("NT"));
  }
  for (const char* table : {"ws2d:batch", "wg-xyz:batch"})
    EXPECT_EQ(in_blocks[table], std::set<bool>{true}) << table;
  for (const char* table : {"ws1d:heads", "ws1d:batch", "ws2d:heads"})
    EXPECT_EQ(in_blocks[table], std::set<bool>{false}) << table;
}

TEST(Matrix, IsLegal) {
  for (const Case& c : matrix()) make_plan(c);
}

TEST(Matrix, PadsWhatIsShorter) {
  for (const Case& c : matrix())
    EXPECT_TRUE(c.pad_heads == 0 || (c.pad_heads > c.model.H && c.pad_vocab > c.model.V))
        << print_case(c);
}

TEST(Matrix, DecodesInEveryRow) {
  for (const Case& c : matrix()) EXPECT_GE(c.gen, 3) << print_case(c);
}

}  // namespace
}  // namespace shardproof
