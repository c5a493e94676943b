// The keys of sampling: what they read and print, and what they refuse.
#include "weights/model/sampling.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

using KeyWords = std::map<std::string, std::string, std::less<>>;

Sampling read(const KeyWords& words) {
  return read_sampling([&](std::string_view key) {
    const auto at = words.find(key);
    return at == words.end() ? nullptr : &at->second;
  });
}

TEST(Sampling, IsGreedyUnlessAsked) {
  EXPECT_EQ(read({}), Sampling());
  EXPECT_EQ(read({{"sample", "greedy"}}).sample, Sample::greedy);
  EXPECT_EQ(read({{"sample", "random"}}).sample, Sample::random);
}

TEST(Sampling, EachOtherKeyAloneImpliesRandomAtTemperatureOne) {
  for (const auto& [key, word] : KeyWords{{"top_p", "0.9"}, {"top_k", "3"}, {"temperature", "1"}}) {
    const Sampling s = read({{key, word}});
    EXPECT_EQ(s.sample, Sample::random) << key;
    EXPECT_EQ(s.temperature, 1.0) << key;
  }
  EXPECT_EQ(read({{"top_p", "0.9"}}).top_p, 0.9);
  EXPECT_EQ(read({{"top_p", "0.9"}}).top_k, 0);
  EXPECT_EQ(read({{"top_k", "3"}}).top_k, 3);
  EXPECT_EQ(read({{"top_k", "3"}}).top_p, 1.0);
}

TEST(Sampling, PrintsWhatIsNotTheDefaultAndReadsItBack) {
  EXPECT_EQ(print_sampling({}), "");
  EXPECT_EQ(print_sampling({Sample::random, 1.0, 0, 1.0}), " sample=random");
  EXPECT_EQ(print_sampling({Sample::random, 0.7, 5, 0.9}),
            " sample=random temperature=0.7 top_k=5 top_p=0.9");
  for (const Sampling& s :
       {Sampling{Sample::random, 0.1, 0, 0.3}, Sampling{Sample::random, 1e-300, 7, 5e-324}}) {
    KeyWords words;
    const std::string text = print_sampling(s);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t equals = text.find('=', at),
                        end = std::min(text.find(' ', at + 1), text.size());
      words[text.substr(at + 1, equals - at - 1)] = text.substr(equals + 1, end - equals - 1);
      at = end;
    }
    EXPECT_EQ(read(words), s) << text;
  }
}

TEST(Sampling, RefusesWithValueRuleAndNearestLegalChoice) {
  const std::vector<std::pair<KeyWords, std::string>> bad{
      {{{"top_p", "0"}},
       "case_sampling: top_p=0: must be above 0 and at most 1; the nearest legal: "
       "top_k=1, which keeps the largest"},
      {{{"top_p", "1.5"}},
       "case_sampling: top_p=1.5: must be above 0 and at most 1; the nearest legal: top_p=1"},
      {{{"top_p", "nan"}},
       "case_sampling: top_p=nan: must be above 0 and at most 1; the nearest "
       "legal: top_k=1, which keeps the largest"},
      {{{"top_p", "0.9x"}}, "case_sampling: top_p=0.9x: a number is expected"},
      {{{"temperature", "0"}},
       "case_sampling: temperature=0: must be above 0; the nearest legal: "
       "sample=greedy, which takes the largest logit"},
      {{{"temperature", "-1"}},
       "case_sampling: temperature=-1: must be above 0; the nearest legal: "
       "sample=greedy, which takes the largest logit"},
      {{{"temperature", "inf"}}, "case_sampling: temperature=inf: must be finite"},
      {{{"top_k", "0"}}, "case_sampling: top_k=0: must be at least 1; the nearest legal: top_k=1"},
      {{{"top_k", "2.5"}}, "case_sampling: top_k=2.5: a whole number is expected"},
      {{{"sample", "beam"}}, "case_sampling: sample=\"beam\": legal: greedy, random"},
      {{{"sample", "greedy"}, {"top_p", "0.9"}},
       "case_sampling: top_p=0.9: has no effect beside sample=greedy; legal: sample=random, or "
       "leave top_p out"}};
  for (const auto& [words, message] : bad)
    EXPECT_EQ(message_of([&, &of = words] { read(of); }), message);
}

TEST(Sampling, IsCheckedAgainstTheVocabulary) {
  EXPECT_EQ(message_of([] { validate({Sample::random, 1.0, 264, 1.0}, 264); }), "");
  EXPECT_EQ(message_of([] {
              validate({Sample::random, 1.0, 265, 1.0}, 264);
            }),
            "case_sampling: top_k=265: the vocabulary has V=264; the nearest legal: top_k=264");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Sampling& s : {Sampling{Sample::random, 0.0, 0, 1.0},
                            {Sample::random, nan, 0, 1.0},
                            {Sample::random, 1.0, -1, 1.0},
                            {Sample::random, 1.0, 0, 0.0},
                            {Sample::random, 1.0, 0, nan},
                            {Sample::greedy, 1.0, 0, 0.5}})
    EXPECT_EQ(label_of([&] { validate(s, 264); }), "case_sampling");
}

TEST(Sampling, ARowDrawsByItsOwnNumber) {
  Draws draws;
  EXPECT_EQ(draws.of(3), (Draw{3, 0}));
  draws.rows = {{7, 2}, {0, 5}};
  EXPECT_EQ(draws.of(1), (Draw{0, 5}));
}

}  // namespace
}  // namespace shardproof
