// Tokens that are chosen wrongly from right logits.
#include "golden/trace/verdict/token_faults.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "golden/trace/verdict/wrong_value.h"
#include "tests/golden/trace/written.h"

namespace shardproof::dump {
namespace {

using Logits = std::vector<double>;

class TokenFaults : public testing::Test {
 protected:
  explicit TokenFaults(const std::string& line = kLine) : run(line), values(run.values()) {}

  std::vector<std::string> passes() const {
    std::vector<std::string> all;
    for (const Written& w : values)
      if (w.name.ends_with(".token")) all.push_back(w.name.substr(0, w.name.size() - 6));
    return all;
  }
  /// A row of a pass's logits, [V].
  Logits row(const std::string& pass, std::size_t b) {
    const Written& w = named(values, pass + ".logits");
    const auto V = static_cast<std::ptrdiff_t>(w.shape.back()),
               at = static_cast<std::ptrdiff_t>(b) * V;
    return {w.numbers.begin() + at, w.numbers.begin() + at + V};
  }
  static std::size_t largest(const Logits& z, std::size_t first, std::size_t last) {
    return static_cast<std::size_t>(
        std::max_element(z.begin() + static_cast<std::ptrdiff_t>(first),
                         z.begin() + static_cast<std::ptrdiff_t>(last)) -
        z.begin());
  }
  static std::size_t largest(const Logits& z) { return largest(z, 0, z.size()); }

  using Chosen = std::function<std::size_t(const std::string& pass, std::size_t row)>;
  void choose(const Chosen& token) {
    for (const std::string& pass : passes()) {
      Written& w = named(values, pass + ".token");
      for (std::size_t b = 0; b < w.numbers.size(); ++b)
        w.numbers[b] = static_cast<double>(token(pass, b));
    }
  }
  std::vector<diagnosis::Hypothesis> said(const dump::Dump& d) const {
    ExactRun::Read read(run, d);
    return token_faults(read.values, read.claim, read.reference);
  }
  std::vector<diagnosis::Hypothesis> said() const { return said(run.trace(values, "f32")); }
  static std::string text(const std::vector<diagnosis::Hypothesis>& all) {
    std::string lines;
    for (const diagnosis::Hypothesis& h : all) lines += h.fault + ": " + h.detail + "\n";
    return lines;
  }
  void expect(const Chosen& token, const std::string& fault) {
    choose(token);
    const auto all = said();
    ASSERT_FALSE(all.empty()) << fault;
    EXPECT_EQ(all[0].fault + ": " + all[0].detail, fault) << text(all);
    EXPECT_TRUE(all[0].explains);
  }

  ExactRun run;
  std::vector<Written> values;
};

TEST_F(TokenFaults, OfOneShard) {
  for (const std::size_t n : {2U, 3U, 6U}) {
    const std::size_t width = 30 / n;
    const std::string of_n = fmt::format(", of {} shards of {} ids", n, width);
    expect([&](const auto& pass, std::size_t b) { return largest(row(pass, b)) % width; },
           "token of a shard: the index in its shard, without the shard's first id" + of_n);
    expect(
        [&](const auto& pass, std::size_t b) {
          const std::size_t id = largest(row(pass, b));
          return 2 * id - id % width;
        },
        "token of a shard: the shard's first id is added twice" + of_n);
    for (std::size_t block = 0; block < n; ++block) {
      const auto of_block = [&](const auto& pass, std::size_t b) {
        return largest(row(pass, b), block * width, (block + 1) * width);
      };
      const std::string words = fmt::format("the largest logit of ids {} to {} alone{}",
                                            block * width, (block + 1) * width - 1, of_n);
      expect(of_block, "token of a shard: " + words);
      if (block > 0)
        expect([&](const auto& pass, std::size_t b) { return of_block(pass, b) % width; },
               "token of a shard: the index in its shard of " + words);
    }
    for (const bool ids : {true, false})
      expect(
          [&](const auto& pass, std::size_t b) {
            std::size_t sum = 0;
            for (std::size_t block = 0; block < n; ++block) {
              const std::size_t id = largest(row(pass, b), block * width, (block + 1) * width);
              sum += ids ? id : id % width;
            }
            return sum;
          },
          fmt::format("token of a shard: the sum of the shards' {}{}", ids ? "ids" : "indices",
                      of_n));
  }
}

TEST_F(TokenFaults, OfOtherLogits) {
  const std::string other = "another layer's or pass's value: ";
  expect([&](const auto& pass, std::size_t) { return largest(row(pass, 0)); },
         other + "each row has the token of row 0");
  expect([&](const auto& pass, std::size_t b) { return largest(row(pass, (b + 2) % 6)); },
         other + "row b has the token of row (b + 2) mod 6");
  const std::vector<std::string> all = passes();
  expect(
      [&](const auto& pass, std::size_t b) {
        const auto at = std::find(all.begin(), all.end(), pass);
        return largest(row(at == all.begin() ? pass : *(at - 1), b));
      },
      other + "each pass has the token of the logits of the one before");
  expect(
      [&](const auto& pass, std::size_t b) {
        const Logits z = row(pass, b);
        return static_cast<std::size_t>(std::min_element(z.begin(), z.end()) - z.begin());
      },
      "token of a shard: the smallest logit in place of the largest");
}

// Each chip has another token, so copies differ.
TEST_F(TokenFaults, OfEachChipsOwnShard) {
  for (const bool index : {false, true}) {
    dump::Dump d = run.trace(values, "f32");
    for (const std::string& pass : passes()) {
      dump::Value value;
      value.attributes["layout"] = "B";
      for (int chip = 0; chip < 6; ++chip) {
        const std::size_t block =
            static_cast<std::size_t>(run.source_case.torus.block(chip, Axes::parse("zx")));
        std::vector<double> tokens;
        for (std::size_t b = 0; b < 6; ++b)
          tokens.push_back(static_cast<double>(largest(row(pass, b), block * 5, block * 5 + 5) -
                                               (index ? block * 5 : 0)));
        value.chips[judged_coordinates(run.source_case.torus, chip)] = stored(Shape{6}, tokens);
      }
      d.values[pass + ".token"] = value;
    }
    const auto all = said(d);
    ASSERT_EQ(all.size(), 1U) << text(all);
    EXPECT_EQ(all[0].detail,
              index ? "each chip has the index in its shard of the largest logit of "
                      "its own shard, V cut over zx"
                    : "each chip has the largest logit of its own shard, V cut over zx");
    EXPECT_EQ(all[0].axes, "zx");
  }
}

// Of as few tokens as a chance may explain nothing is said, nor of those that nothing explains.
TEST_F(TokenFaults, OfChanceAreNotNamed) {
  choose([&](const auto& of, std::size_t b) { return (largest(row(of, b)) + 7 + b * b) % 30; });
  EXPECT_TRUE(said().empty()) << text(said());
  // One pass alone, in which so many rows choose an id behind the first shard.
  const std::string pass = passes().at(0);
  std::erase_if(values, [&](const Written& w) {
    return w.name.ends_with(".token") && !w.name.starts_with(pass);
  });
  for (const std::size_t wrong : {1U, 6U}) {
    for (std::size_t b = 0; b < 6; ++b)
      named(values, pass + ".logits").numbers[b * 30 + (b < wrong ? 20 + b : b)] =
          1e6 * static_cast<double>(wrong);
    choose([&](const auto& of, std::size_t b) { return largest(row(of, b)) % 15; });
    EXPECT_EQ(said().empty(), wrong == 1) << text(said());
  }
}

// A right token contradicts a fault that would have changed it.
TEST_F(TokenFaults, OfRightTokensAreNotNamed) {
  EXPECT_TRUE(said().empty()) << text(said());
  choose([&](const auto& pass, std::size_t b) {
    const std::size_t id = largest(row(pass, b));
    return b == 0 ? id : id % 15;
  });
  bool changed = false;
  for (const std::string& pass : passes()) changed = changed || largest(row(pass, 0)) >= 15;
  EXPECT_EQ(said().empty(), changed) << text(said());
}

TEST_F(TokenFaults, AreTheDiagnosisOfATrace) {
  choose([&](const auto& pass, std::size_t b) { return largest(row(pass, b)) % 10; });
  const dump::Dump d = run.trace(values, "f32");
  ExactRun::Read read(run, d);
  const Verdict verdict = judge(read.values, read.claim, read.reference);
  ASSERT_TRUE(verdict.first);
  EXPECT_EQ(verdict.rows[*verdict.first].title, passes()[0] + ".token");
  const auto all = diagnosed(verdict, read.values, read.claim, read.reference);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].fault, "token of a shard");
}

class PaddedVocabulary : public TokenFaults {
 protected:
  PaddedVocabulary()
      : TokenFaults(
            "torus=2x1x3 model=palm-tiny,layers=2,E=24,F=36,H=6,K=2,Q=4,V=44 pad_vocab=48 batch=6 "
            "prompt=5 gen=3 seed=6") {}
};

TEST_F(PaddedVocabulary, OfAPaddingThatWinsAndOfFirstIdsWithoutPadding) {
  const std::vector<Written> right = values;
  for (Written& w : values)
    if (w.name.ends_with(".logits"))
      for (double& z : w.numbers) z = static_cast<float>(z - 1000);
  expect([](const auto&, std::size_t) { return 44; },
         "token of a shard: a logit of the padding, 0, is the largest");
  values = right;
  expect(
      [&](const auto& pass, std::size_t b) {
        const std::size_t id = largest(row(pass, b));
        return id % 16 + id / 16 * 14;
      },
      "token of a shard: first ids are counted by shards of 14, of 3 shards of 16 ids");
}

}  // namespace
}  // namespace shardproof::dump
