// The FFN on simulated chips: compared with Eigen, with itself in another regime, and on several
// threads.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "tools/bench/contest.h"
#include "tools/bench/rivals.h"
#include "tools/bench/row.h"

namespace shardproof::bench {
namespace {

/// State of a measurement, alive while it is repeated. The simulations point into it.
struct Setting {
  Setting(std::int64_t tokens, int threads) : rivals(tokens), one(1), many(threads) {}

  void add(int chips, Regime regime, bool doubled, Threads& threads) {
    simulations.push_back(
        std::make_unique<SimulatedFfn>(rivals.ffn(), torus_of(chips), regime, doubled, threads));
  }
  void run(std::size_t which) const { simulations[which]->run(); }

  Rivals rivals;
  Threads one, many;
  std::vector<std::unique_ptr<SimulatedFfn>> simulations;
};

using Setup = std::function<void(Setting&)>;
using Side = std::function<void(Setting&)>;

/// Returns the start function of a row that compares two sides in one setting.
std::function<std::function<Sample()>()> contest_of(std::int64_t tokens, int threads, Whose whose,
                                                    Setup set_up, Side ours, Side theirs) {
  return [=]() -> std::function<Sample()> {
    auto setting = std::make_shared<Setting>(tokens, threads);
    set_up(*setting);
    return [=] {
      const auto costs = contest({[&] { ours(*setting); }, [&] { theirs(*setting); }}, whose);
      return Sample::ratio(costs[0], costs[1]);
    };
  };
}

Side simulation(std::size_t which) {
  return [=](Setting& setting) { setting.run(which); };
}

std::string chips_and_tokens(int chips, std::int64_t tokens) {
  return fmt::format("{} chip{}, {} token{}", chips, chips == 1 ? "" : "s", tokens,
                     tokens == 1 ? "" : "s");
}

/// Returns a row: f32 on chips over the unsharded `theirs`.
Row f32_row(const std::string& id, const std::string& group, int chips, std::int64_t tokens,
            bool doubled, Side theirs, std::optional<Target> target) {
  const Setup set_up = [=](Setting& setting) {
    setting.add(chips, Regime::f32, doubled, setting.one);
  };
  return {.id = fmt::format("{}/{}/{}", id, chips, tokens),
          .group = group,
          .what = chips_and_tokens(chips, tokens),
          .target = target,
          .start = contest_of(tokens, 1, Whose::thread, set_up, simulation(0), std::move(theirs))};
}

}  // namespace

std::vector<Row> ffn_rows() {
  struct Aim {
    int chips;
    std::int64_t tokens;
    std::optional<Target> target;
  };
  const Aim aims[] = {{64, 1, Target{1.2}},   {64, 8, Target{0.7}},    {64, 64, Target{0.95}},
                      {64, 256, Target{1.1}}, {256, 1, Target{1.8}},   {256, 8, Target{1.0}},
                      {256, 64, Target{1.2}}, {256, 256, Target{1.3}}, {8, 64, {}}};
  std::vector<Row> rows;
  for (const Aim& aim : aims)
    rows.push_back(f32_row(
        "ffn", "FFN on chips, f32 / Eigen pair, one thread", aim.chips, aim.tokens, true,
        [](Setting& s) { s.rivals.eigen_f32(); }, aim.target));
  rows.push_back(f32_row("products", "the same without doubling / Eigen pair", 64, 64, false,
                         [](Setting& s) { s.rivals.eigen_f32(false); }, {}));
  rows.push_back(f32_row("own", "FFN on chips, f32 / our kernel unsharded", 64, 64, true,
                         [](Setting& s) { s.rivals.own_f32(); }, {}));
  return rows;
}

std::vector<Row> exact_rows() {
  std::vector<Row> rows;
  const auto add = [&](const char* id, const char* group, int chips, std::int64_t tokens,
                       Side theirs, std::optional<Target> target) {
    const Setup set_up = [=](Setting& setting) {
      setting.add(chips, Regime::exact, true, setting.one);
      setting.add(chips, Regime::f32, true, setting.one);
    };
    rows.push_back(
        {.id = fmt::format("{}/{}/{}", id, chips, tokens),
         .group = group,
         .what = chips_and_tokens(chips, tokens),
         .target = target,
         .start = contest_of(tokens, 1, Whose::thread, set_up, simulation(0), std::move(theirs))});
  };
  const char* regimes = "FFN on chips, exact / f32 regime, one thread";
  add("exact", regimes, 64, 64, simulation(1), Target{2.0});
  add("exact", regimes, 64, 256, simulation(1), Target{2.0});
  add("exact", regimes, 1, 64, simulation(1), Target{2.0});
  add("exact", regimes, 64, 1, simulation(1), {});
  add("exact", regimes, 64, 8, simulation(1), {});
  add("exact-own", "FFN on chips, exact / our f64 kernel unsharded", 64, 64,
      [](Setting& s) { s.rivals.own_f64(); }, {});
  add("exact-eigen", "FFN on chips, exact / Eigen pair in f64", 64, 64,
      [](Setting& s) { s.rivals.eigen_f64(); }, {});
  return rows;
}

std::vector<Row> thread_rows() {
  const auto count = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::vector<Row> rows;
  for (const Regime regime : {Regime::f32, Regime::exact}) {
    const Setup set_up = [=](Setting& setting) {
      setting.add(64, regime, true, setting.many);
      setting.add(64, regime, true, setting.one);
    };
    const std::string name = regime == Regime::f32 ? "f32" : "exact";
    rows.push_back(
        {.id = "threads/" + name,
         .group = fmt::format("FFN on 64 chips, 256 tokens, {} threads / one", count),
         .what = name,
         .decides = Decides::wall,
         .start = contest_of(256, count, Whose::process, set_up, simulation(0), simulation(1))});
  }
  return rows;
}

}  // namespace shardproof::bench
