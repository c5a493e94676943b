// Each relation over several cases: a right pair, and in one trace a stale slot, a token at another
// position, a row of another token.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <regex>

#include "tests/golden/trace/pair/pairs.h"
#include "tests/sanitized.h"

namespace shardproof::dump {
namespace {

using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

/// Two right traces of one relation; B is the one that a fault is planted into.
struct Related {
  Related(const std::string& line_a, const std::string& line_b)
      : run_a(std::make_unique<ExactRun>(line_a)), run_b(std::make_unique<ExactRun>(line_b)) {}

  std::unique_ptr<const ExactRun> run_a, run_b;
  Dump a, b;
};

/// The values of an engine that adds over so many chips.
Dump engine_values(const ExactRun& run, const std::map<std::string, Floats>& prompt = {},
                   std::size_t chips = 1) {
  Engine engine(run);
  engine.prompt = prompt;
  engine.chips = chips;
  return engine.trace(kAllNames);
}

std::string line_of(Random& random, const std::string& keys) {
  return kPairModel + " batch=3 " + keys + " seed=" + std::to_string(below(random, 1000));
}

Related chunked(Random& random) {
  const std::string line = line_of(random, "prompt=6 gen=2");
  Related of(line, line + " chunk=" + std::to_string(2 + below(random, 4)));
  of.a = engine_values(*of.run_a, {}, 2), of.b = engine_values(*of.run_b);
  return of;
}

Related of_rows(Random& random, std::vector<std::int64_t> rows) {
  const std::string line = line_of(random, "prompt=4 gen=3");
  Related of(line, line);
  of.a = engine_values(*of.run_a, {}, 2);
  std::shuffle(rows.begin(), rows.end(), random);
  of.b = with_rows(engine_values(*of.run_b), rows);
  return of;
}
Related alone(Random& random) { return of_rows(random, {below(random, 3)}); }
Related in_another_order(Random& random) { return of_rows(random, {0, 1, 2}); }

/// Leaves of the first pass the ids and the caches, as of tokens that were cached.
void keep_caches(Dump& dump) {
  const auto is_other = [](const std::string& name) {
    const std::string word = last_word(name);
    return name.starts_with("prefill.c0.") && word != "ids" && word != "k_cache" &&
           word != "v_cache";
  };
  std::erase_if(dump.values, [&](const auto& value) { return is_other(value.first); });
  std::erase_if(dump.order, is_other);
}

/// A miss, and a hit whose trace has the ids of the tokens that were cached. `in_cache`: of the
/// hit.
Related hit(Random& random, const std::function<void(const std::string&, Floats&)>& in_cache) {
  const std::string line = line_of(random, "prompt=6 gen=2");
  Related of(line, line + " chunk=" + std::to_string(3 + below(random, 2)));
  of.a = engine_values(*of.run_a, {}, 2);
  Engine engine(*of.run_b);
  engine.in_cache = in_cache;
  of.b = engine.trace(kAllNames);
  keep_caches(of.b);
  return of;
}

Related hit(Random& random) { return hit(random, {}); }

/// The whole numbers of a value that is stored whole.
Floats numbers_in(const Dump& dump, const std::string& name) {
  const StoredArray& array = dump.values.find(name)->second.whole;
  Floats all;
  for (std::size_t i = 0; i < array.size(); ++i) all.push_back(static_cast<float>(array.at(i)));
  return all;
}

/// The token and two drafts that row `b` of plain decoding reads from a step on, of which the first
/// ones are kept; of others the next id.
void draft(Related& of, std::map<std::string, Floats>& prompt, std::vector<double>& positions,
           std::size_t b, std::int64_t step, std::int64_t kept) {
  for (std::int64_t l = 0; l < 3; ++l) {
    const float right =
        l < kept ? numbers_in(of.a, "decode." + std::to_string(step + l) + ".ids")[b] : 0;
    const float before = prompt["prefill.c1"].empty() ? 0 : prompt["prefill.c1"].back();
    prompt["prefill.c1"].push_back(l < kept ? right : std::fmod(before + 1, 30.0F));
    positions.push_back(l < kept ? static_cast<double>(3 + step + l) : -1);
  }
}
void add_positions(Dump& dump, std::int64_t B, const std::vector<double>& positions) {
  Value map;
  map.whole = stored({B, 3}, positions, NumberFormat::int32);
  ExactRun::insert(dump, "prefill.c1.positions", map);
}

/// Plain decoding, and one pass that verifies drafts of which each row keeps some.
Related speculative(Random& random) {
  const std::string line = line_of(random, "");
  Related of(line + " prompt=4 gen=5", line + " prompt=7 chunk=4 gen=1");
  of.a = engine_values(*of.run_a, {}, 2);
  std::map<std::string, Floats> prompt{{"prefill.c0", numbers_in(of.a, "prefill.c0.ids")}};
  std::vector<double> positions;
  for (std::size_t b = 0; b < 3; ++b) draft(of, prompt, positions, b, 1, 1 + below(random, 3));
  of.b = engine_values(*of.run_b, prompt);
  add_positions(of.b, 3, positions);
  return of;
}

/// A later such pass of one row, behind caches of which the trace has the ids alone.
Related speculative_later(Random& random) {
  const std::string line = line_of(random, "");
  const std::int64_t before = 1 + below(random, 3);  // kept by the pass before
  const std::string one = std::regex_replace(line, std::regex("batch=3"), "batch=1");
  Related of(line + " prompt=4 gen=8", one + " prompt=" + std::to_string(7 + before) +
                                           " chunk=" + std::to_string(4 + before) + " gen=1");
  of.a = engine_values(*of.run_a, {}, 2);
  const auto b = static_cast<std::size_t>(below(random, 3));
  const Floats ids = numbers_in(of.a, "prefill.c0.ids");
  std::map<std::string, Floats> prompt;
  Floats& cached = prompt["prefill.c0"];
  for (std::size_t i = 0; i < 4; ++i) cached.push_back(ids[b * 4 + i]);
  for (std::int64_t l = 1; l <= before; ++l)
    cached.push_back(numbers_in(of.a, "decode." + std::to_string(l) + ".ids")[b]);
  std::vector<double> positions;
  draft(of, prompt, positions, b, 1 + before, 1 + below(random, 3));
  of.b = engine_values(*of.run_b, prompt);
  keep_caches(of.b);
  add_positions(of.b, 1, positions);
  of.b.attributes["rows"] = std::to_string(b);
  return of;
}

/// The names of a trace's values that end with one of these words.
std::vector<std::string> names_of(const Dump& dump, const std::set<std::string>& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : dump.values)
    if (words.contains(last_word(name))) names.push_back(name);
  return names;
}
std::string one_of(const std::vector<std::string>& names, Random& random) {
  return names[static_cast<std::size_t>(below(random, std::ssize(names)))];
}

/// Puts what another slot holds into a slot; returns the cache.
std::string stale_slot(Dump& dump, const ExactRun&, Random& random) {
  const std::string name = one_of(names_of(dump, {"k_cache", "v_cache"}), random);
  StoredArray& cache = dump.values.find(name)->second.whole;
  const std::int64_t M = cache.shape[1], width = cache.shape[2] * cache.shape[3];
  const std::int64_t row = below(random, cache.shape[0]), slot = below(random, M),
                     other = (slot + 1 + below(random, M - 1)) % M;
  for (std::int64_t i = 0; i < width; ++i)
    poke(cache, static_cast<std::size_t>((row * M + slot) * width + i),
         cache.at(static_cast<std::size_t>((row * M + other) * width + i)));
  return name;
}

/// Rotates a token's q or k as at the position after its own; returns the value.
std::string shifted_position(Dump& dump, const ExactRun& run, Random& random) {
  const std::string name = one_of(names_of(dump, {"q_rot", "k_rot"}), random);
  StoredArray& turned = dump.values.find(name)->second.whole;
  const std::int64_t L = turned.shape[1], heads = turned.shape[2], Q = turned.shape[3], J = Q / 2;
  const std::int64_t row = below(random, turned.shape[0]), l = below(random, L);
  const std::string pass = name.substr(0, name.find('.', name.find('.') + 1));
  std::int64_t start = 0;
  for (std::int64_t i = 0; i < run.passes.size(); ++i)
    if (run.passes.at(i).name == pass) start = run.passes.at(i).cached;
  const auto cosines = run.weights().at("rope_cos"), sines = run.weights().at("rope_sin");
  const std::string raw = name.substr(0, name.size() - 4);  // without _rot
  const StoredArray& from = dump.values.find(raw)->second.whole;
  for (std::int64_t i = 0; i < heads * Q; ++i) {
    const std::int64_t at = (row * L + l) * heads * Q + i, q = i % Q;
    const auto table = static_cast<std::size_t>((start + l + 1) * J + q % J);
    const double x = from.at(static_cast<std::size_t>(at)),
                 other = q < J ? -from.at(static_cast<std::size_t>(at + J))
                               : from.at(static_cast<std::size_t>(at - J));
    poke(turned, static_cast<std::size_t>(at),
         f32(x * static_cast<double>(cosines->data[table]) +
             other * static_cast<double>(sines->data[table])));
  }
  return name;
}

/// Gives a token the row of another in the table; returns the value.
std::string another_token(Dump& dump, const ExactRun& run, Random& random) {
  const std::string name = one_of(names_of(dump, {"embed"}), random);
  StoredArray& embed = dump.values.find(name)->second.whole;
  const StoredArray& ids = dump.values.find(name.substr(0, name.size() - 5) + "ids")->second.whole;
  const auto table = run.weights().at("embed");
  const std::int64_t token = below(random, static_cast<std::int64_t>(ids.size())),
                     E = embed.shape[2],
                     id = (static_cast<std::int64_t>(ids.at(static_cast<std::size_t>(token))) + 1 +
                           below(random, 28)) %
                          30;
  for (std::int64_t e = 0; e < E; ++e)
    poke(embed, static_cast<std::size_t>(token * E + e),
         static_cast<double>(table->data[static_cast<std::size_t>(id * E + e)]));
  return name;
}

struct Relation {
  const char* name;
  Related (*make)(Random&);
};
std::ostream& operator<<(std::ostream& out, const Relation& of) { return out << of.name; }

class Relations : public testing::TestWithParam<Relation> {
 protected:
  /// Calls see(traces, random, turned) for several cases.
  void each(const std::function<void(const Related&, Random&, bool)>& see) const {
    for (int seed = 0; seed < fewer_if_sanitized(8, 2, "seeds"); ++seed) {
      Random random(static_cast<std::uint64_t>(seed));
      SCOPED_TRACE(seed);
      const Related of = GetParam().make(random);
      see(of, random, seed % 2 == 1);
    }
  }
  static Pair compared(const Related& of, const Dump& b, bool turned) {
    return turned ? pair_of(*of.run_b, b, *of.run_a, of.a, true, 0)
                  : pair_of(*of.run_a, of.a, *of.run_b, b, true, 0);
  }
};

TEST_P(Relations, Hold) {
  each([](const Related& of, Random&, bool turned) {
    const Pair pair = compared(of, of.b, turned);
    EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
    EXPECT_TRUE(pair.differences.empty());
    EXPECT_GT(pair.count(Likeness::rounding), 20);
  });
}

/// What plants a fault into a trace, and returns the value that it makes wrong.
using Plant = std::string (*)(Dump&, const ExactRun&, Random&);

TEST_P(Relations, NameAStaleSlotAShiftedPositionAnotherToken) {
  for (const Plant plant : {stale_slot, shifted_position, another_token})
    each([&](const Related& of, Random& random, bool turned) {
      Dump wrong = of.b;
      const std::string name = plant(wrong, *of.run_b, random);
      const Pair pair = compared(of, wrong, turned);
      EXPECT_EQ(pair.exit_code(), 1) << name;
      const Row* const row = pair.wrong(!turned);
      EXPECT_EQ(row == nullptr ? "" : row->title, name);
      EXPECT_EQ(pair.wrong(turned), nullptr) << name;
    });
}

/// A slot that was stale when it was read: all that follows is right, of what it held.
TEST(CacheHits, OfAStaleSlotAreWrongFromThere) {
  for (int seed = 0; seed < fewer_if_sanitized(6, 2, "seeds"); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string stale = "prefill.c0.layer" + std::to_string(below(random, 2)) +
                              (below(random, 2) == 0 ? ".k_cache" : ".v_cache");
    Related of = hit(random, [&](const std::string& name, Floats& cache) {
      // Slot 1 of the first row holds what slot 0 does: two heads of four.
      if (name == stale) std::copy_n(cache.begin(), 8, cache.begin() + 8);
    });
    const Pair known = pair_of(*of.run_a, of.a, *of.run_b, of.b, true, 0);
    ASSERT_NE(known.wrong(true), nullptr) << stale;
    EXPECT_EQ(known.wrong(true)->title, stale);
    EXPECT_EQ(known.wrong(false), nullptr) << stale;
    // Without the ids nothing says what was cached: the first whose bits differ is that cache.
    of.a = engine_values(*of.run_a);
    Dump handed = of.b;
    handed.values.erase("prefill.c0.ids"), std::erase(handed.order, "prefill.c0.ids");
    for (auto& [name, value] : handed.values)
      if (name.starts_with("prefill.c0.")) value.attributes["given"] = "true";
    const Pair open = pair_of(*of.run_a, of.a, *of.run_b, handed, true, 0);
    EXPECT_EQ(open.exit_code(), 1);
    EXPECT_EQ(open.first, std::nullopt) << open_rows(open);
    ASSERT_TRUE(open.first_open());
    EXPECT_EQ(open.rows[*open.first_open()].title, stale) << open_rows(open);
  }
}

/// Logits of a token that was rejected are of no other's.
TEST(Rejected, TokensHaveNoLogits) {
  for (int seed = 0; seed < 6; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const Related of = speculative(random);
    const StoredArray& map = of.b.values.find("prefill.c1.positions")->second.whole;
    std::size_t kept = 0;  // rows of which all is
    for (const std::size_t last : {2U, 5U, 8U}) kept += map.at(last) >= 0 ? 1U : 0U;
    const Pair pair = pair_of(*of.run_a, of.a, *of.run_b, of.b, true, 0);
    EXPECT_EQ(pair.logits.size(), 3 + kept) << seed;  // of the prompt's last tokens, too
    const PairRow& row = pair_row(pair, "decode.3.logits");
    EXPECT_EQ(row.apart.elements, static_cast<std::int64_t>(30 * kept)) << seed;
    for (const PositionOfLogits& one : pair.logits) EXPECT_LT(one.most, 1e-4) << seed;
  }
}

/// The same token everywhere: what a map says of positions, and of what is read before them, is
/// held against the cases.
TEST(Maps, ThatAreNotOfTheRunsAreSaid) {
  const ExactRun run(kPairModel + " batch=1 prompt=6 gen=1 seed=2");
  const Dump a = engine_values(run, {{"prefill.c0", Floats(6, 7.0F)}});
  const auto with_map = [&](Dump dump, const std::vector<double>& positions) {
    Value map;
    map.whole = stored({1, 6}, positions, NumberFormat::int32);
    ExactRun::insert(dump, "prefill.c0.positions", map);
    return dump;
  };
  EXPECT_EQ(pair_of(run, a, with_map(a, {0, 1, 2, 3, 4, -1}), true, 0).exit_code(), 0);
  const Pair shifted = pair_of(run, a, with_map(a, {1, 2, 3, 4, 5, -1}), true, 0);
  ASSERT_EQ(shifted.differences.size(), 1U);
  EXPECT_EQ(shifted.differences[0].of, "positions");
  EXPECT_EQ(shifted.differences[0].text, "row 0 position 1 is 1 of its run in A, 0 in B");
  EXPECT_EQ(pair_row(shifted, "prefill.c0.layer0.q_rot").likeness, Likeness::operands);
  EXPECT_EQ(shifted.exit_code(), 1);
  // Another token before those that are matched.
  const Dump other = engine_values(run, {{"prefill.c0", {8.0F, 7.0F, 7.0F, 7.0F, 7.0F, 7.0F}}});
  const Pair read = pair_of(run, a, with_map(other, {-1, 1, 2, 3, 4, 5}), true, 0);
  ASSERT_EQ(read.differences.size(), 1U);
  EXPECT_EQ(read.differences[0].of, "prompts");
  EXPECT_EQ(pair_row(read, "prefill.c0.layer0.attn").likeness, Likeness::operands);
  EXPECT_EQ(read.exit_code(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, Relations,
                         testing::Values(Relation{"Chunked", chunked}, Relation{"Alone", alone},
                                         Relation{"InAnotherOrder", in_another_order},
                                         Relation{"CacheHit", hit},
                                         Relation{"Speculative", speculative},
                                         Relation{"SpeculativeLater", speculative_later}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace shardproof::dump
