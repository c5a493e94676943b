// Each relation over several cases: a right pair, and in one trace a stale slot, a token at another
// position, a row of another token.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>

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

Dump engine_values(const ExactRun& run, const std::map<std::string, Floats>& prompt = {}) {
  Engine engine(run);
  engine.prompt = prompt;
  return engine.trace(kAllNames);
}

std::string line_of(Random& random, const std::string& keys) {
  return kPairModel + " batch=3 " + keys + " seed=" + std::to_string(below(random, 1000));
}

Related chunked(Random& random) {
  const std::string line = line_of(random, "prompt=6 gen=2");
  Related of(line, line + " chunk=" + std::to_string(2 + below(random, 4)));
  of.a = engine_values(*of.run_a), of.b = engine_values(*of.run_b);
  return of;
}

Related of_rows(Random& random, std::vector<std::int64_t> rows) {
  const std::string line = line_of(random, "prompt=4 gen=3");
  Related of(line, line);
  of.a = engine_values(*of.run_a);
  std::shuffle(rows.begin(), rows.end(), random);
  of.b = with_rows(of.a, rows);
  return of;
}
Related alone(Random& random) { return of_rows(random, {below(random, 3)}); }
Related in_another_order(Random& random) { return of_rows(random, {0, 1, 2}); }

/// A miss, and a hit whose trace has the ids of the tokens that were cached.
Related hit(Random& random) {
  const std::string line = line_of(random, "prompt=6 gen=2");
  Related of(line, line + " chunk=" + std::to_string(3 + below(random, 2)));
  of.a = engine_values(*of.run_a), of.b = engine_values(*of.run_b);
  const auto is_cached = [](const std::string& name) {
    const std::string word = last_word(name);
    return name.starts_with("prefill.c0.") && word != "ids" && word != "k_cache" &&
           word != "v_cache";
  };
  std::erase_if(of.b.values, [&](const auto& value) { return is_cached(value.first); });
  std::erase_if(of.b.order, is_cached);
  return of;
}

/// Plain decoding, and one pass that verifies drafts of which each row keeps some.
Related speculative(Random& random) {
  const std::string line = line_of(random, "");
  Related of(line + " prompt=4 gen=5", line + " prompt=7 chunk=4 gen=1");
  of.a = engine_values(*of.run_a);
  const auto numbers = [&](const std::string& name) {
    const StoredArray& array = of.a.values.find(name)->second.whole;
    Floats all;
    for (std::size_t i = 0; i < array.size(); ++i) all.push_back(static_cast<float>(array.at(i)));
    return all;
  };
  std::map<std::string, Floats> prompt{{"prefill.c0", numbers("prefill.c0.ids")},
                                       {"prefill.c1", {}}};
  std::vector<double> positions;
  for (std::size_t b = 0; b < 3; ++b) {
    const std::int64_t kept = 1 + below(random, 3);  // of the last token and two drafts
    for (std::int64_t l = 0; l < 3; ++l) {
      const float right = numbers("decode." + std::to_string(l + 1) + ".ids")[b];
      prompt["prefill.c1"].push_back(l < kept ? right : std::fmod(right + 1, 30.0F));
      positions.push_back(l < kept ? static_cast<double>(4 + l) : -1);
    }
  }
  of.b = engine_values(*of.run_b, prompt);
  Value map;
  map.whole = stored({3, 3}, positions, NumberFormat::int32);
  ExactRun::insert(of.b, "prefill.c1.positions", map);
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
  const Tensor &cosines = run.weights().at("rope_cos"), &sines = run.weights().at("rope_sin");
  const std::string raw = name.substr(0, name.size() - 4);  // without _rot
  const StoredArray& from = dump.values.find(raw)->second.whole;
  for (std::int64_t i = 0; i < heads * Q; ++i) {
    const std::int64_t at = (row * L + l) * heads * Q + i, q = i % Q;
    const auto table = static_cast<std::size_t>((start + l + 1) * J + q % J);
    const double x = from.at(static_cast<std::size_t>(at)),
                 other = q < J ? -from.at(static_cast<std::size_t>(at + J))
                               : from.at(static_cast<std::size_t>(at - J));
    poke(turned, static_cast<std::size_t>(at),
         f32(x * static_cast<double>(cosines.data[table]) +
             other * static_cast<double>(sines.data[table])));
  }
  return name;
}

/// Gives a token the row of another in the table; returns the value.
std::string another_token(Dump& dump, const ExactRun& run, Random& random) {
  const std::string name = one_of(names_of(dump, {"embed"}), random);
  StoredArray& embed = dump.values.find(name)->second.whole;
  const StoredArray& ids = dump.values.find(name.substr(0, name.size() - 5) + "ids")->second.whole;
  const Tensor& table = run.weights().at("embed");
  const std::int64_t token = below(random, static_cast<std::int64_t>(ids.size())),
                     E = embed.shape[2],
                     id = (static_cast<std::int64_t>(ids.at(static_cast<std::size_t>(token))) + 1 +
                           below(random, 28)) %
                          30;
  for (std::int64_t e = 0; e < E; ++e)
    poke(embed, static_cast<std::size_t>(token * E + e),
         static_cast<double>(table.data[static_cast<std::size_t>(id * E + e)]));
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
    EXPECT_GT(pair.count(Likeness::same) + pair.count(Likeness::rounding), 40);
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

INSTANTIATE_TEST_SUITE_P(All, Relations,
                         testing::Values(Relation{"Chunked", chunked}, Relation{"Alone", alone},
                                         Relation{"InAnotherOrder", in_another_order},
                                         Relation{"CacheHit", hit},
                                         Relation{"Speculative", speculative}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace shardproof::dump
