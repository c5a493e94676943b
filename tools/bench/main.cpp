// shardproof_bench: what simulating chips costs, as ratios measured in one run.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>

#include "engine/numeric/contract.h"
#include "engine/numeric/isa.h"
#include "engine/numeric/kernels.h"
#include "engine/transfer.h"
#include "golden/cases.h"
#include "golden/verify.h"
#include "tools/bench/contest.h"
#include "tools/bench/eigen_pair.h"
#include "tools/bench/ffn.h"

namespace shardproof::bench {
namespace {

constexpr std::int64_t kTokens[] = {1, 8, 64, 256};
constexpr int kChips[] = {8, 64, 256};

/// One line of the final table. `ratio` counter of a benchmark over its `target`.
struct Row {
  std::string what, unit;
  double ours, theirs, ratio;
  std::optional<double> at_most, at_least;
};

/// What the table is made of, in the order in which it was measured.
std::deque<Row>& rows() {
  static std::deque<Row> all;
  return all;
}

int rounds() { return 31; }

/// The unsharded pair of our own kernel in the f32 regime: x·W1, doubled, ·W2.
void own_f32(const Ffn& ffn, float* h, float* y, bool activation) {
  const std::int64_t T = ffn.tokens();
  chain(T, Ffn::F, {{ffn.x().data.data(), ffn.w1().data.data(), Ffn::E}}, h);
  if (activation)
    for (std::int64_t i = 0; i < T * Ffn::F; ++i) h[i] += h[i];
  chain(T, Ffn::E, {{h, ffn.w2().data.data(), Ffn::F}}, y);
}

/// The same through the f64 kernel alone, h rounded to f32 between: what the exact regime's
/// products cost without bounds and rounding test.
void own_f64(const Ffn& ffn, double* hd, float* h, double* y) {
  const std::int64_t T = ffn.tokens();
  const auto kernel = kernels_in_use().f64;
  kernel(T, Ffn::F, Ffn::E, ffn.x().data.data(), Ffn::E, ffn.w1().data.data(), Ffn::F, hd, Ffn::F,
         true);
  for (std::int64_t i = 0; i < T * Ffn::F; ++i) {
    const auto v = static_cast<float>(hd[i]);
    h[i] = v + v;
  }
  kernel(T, Ffn::E, Ffn::F, h, Ffn::F, ffn.w2().data.data(), Ffn::E, y, Ffn::E, true);
}

/// Everything that the FFN is held against, for one number of tokens.
struct Rivals {
  explicit Rivals(std::int64_t tokens)
      : ffn(tokens),
        h(static_cast<std::size_t>(tokens * Ffn::F)),
        y(static_cast<std::size_t>(tokens * Ffn::E)),
        hd(h.size()),
        yd(y.size()),
        xd(ffn.x().data.begin(), ffn.x().data.end()),
        w1d(ffn.w1().data.begin(), ffn.w1().data.end()),
        w2d(ffn.w2().data.begin(), ffn.w2().data.end()) {}

  Side eigen(bool activation = true) {
    return {"Eigen", [this, activation] {
              eigen_in_use().f32(ffn.tokens(), Ffn::E, Ffn::F, ffn.x().data.data(),
                                 ffn.w1().data.data(), ffn.w2().data.data(), h.data(), y.data(),
                                 activation);
            }};
  }
  Side eigen_f64() {
    return {"Eigen f64", [this] {
              eigen_in_use().f64(ffn.tokens(), Ffn::E, Ffn::F, xd.data(), w1d.data(), w2d.data(),
                                 hd.data(), yd.data(), true);
            }};
  }
  Side own() {
    return {"own", [this] { own_f32(ffn, h.data(), y.data(), true); }};
  }
  Side own64() {
    return {"own f64", [this] { own_f64(ffn, hd.data(), h.data(), yd.data()); }};
  }

  Ffn ffn;
  std::vector<float> h, y;
  std::vector<double> hd, yd, xd, w1d, w2d;
};

Side simulated(const SimulatedFfn& ffn) {
  return {"simulated", [&ffn] { benchmark::DoNotOptimize(ffn.run()); }};
}

void add_row(benchmark::State& state, const std::string& what, double ours, double theirs,
             std::optional<double> at_most = {}) {
  rows().push_back({what, "us", ours * 1e6, theirs * 1e6, ours / theirs, at_most, {}});
  state.counters["ratio"] = ours / theirs;
}

/// Simulated FFN in the f32 regime against the unsharded Eigen pair and our own kernel pair.
void simulate(benchmark::State& state, int chips, std::int64_t tokens) {
  Rivals rivals(tokens);
  Threads one(1);
  const SimulatedFfn ours(rivals.ffn, torus_of(chips), Regime::f32, true, one);
  for (auto _ : state) {
    const auto t =
        contest({simulated(ours), rivals.eigen(), rivals.own()}, Clock::thread, rounds());
    state.SetIterationTime(t[0]);
    const std::string what = fmt::format("f32 {:3} chips {:3} tokens", chips, tokens);
    const bool promised = chips == 64 && tokens == 64;
    add_row(state, what + " / Eigen pair", t[0], t[1],
            promised ? std::optional(1.3) : std::nullopt);
    add_row(state, what + " / own pair", t[0], t[2]);
  }
}

/// The same on 64 chips without the stand-in for an activation, on both sides.
void simulate_products(benchmark::State& state) {
  Rivals rivals(64);
  Threads one(1);
  const SimulatedFfn ours(rivals.ffn, torus_of(64), Regime::f32, false, one);
  for (auto _ : state) {
    const auto t = contest({simulated(ours), rivals.eigen(false)}, Clock::thread, rounds());
    state.SetIterationTime(t[0]);
    add_row(state, "f32  64 chips  64 tokens, products only / Eigen", t[0], t[1]);
  }
}

/// The exact regime against the f32 regime on the same chips, and against f64 products.
void exact(benchmark::State& state, int chips, std::int64_t tokens) {
  Rivals rivals(tokens);
  Threads one(1);
  const SimulatedFfn ours(rivals.ffn, torus_of(chips), Regime::exact, true, one);
  const SimulatedFfn f32(rivals.ffn, torus_of(chips), Regime::f32, true, one);
  for (auto _ : state) {
    const auto t = contest({simulated(ours), simulated(f32), rivals.own64(), rivals.eigen_f64()},
                           Clock::thread, rounds());
    state.SetIterationTime(t[0]);
    const std::string what = fmt::format("exact {:3} chips {:3} tokens", chips, tokens);
    add_row(state, what + " / f32 regime", t[0], t[1],
            tokens == 64 && (chips == 64 || chips == 1) ? std::optional(2.5) : std::nullopt);
    add_row(state, what + " / own f64 pair", t[0], t[2]);
    add_row(state, what + " / Eigen f64 pair", t[0], t[3]);
  }
}

/// All threads of the machine, by the wall clock, against one.
void threaded(benchmark::State& state, Regime regime) {
  const int count = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  Rivals rivals(256);
  Threads one(1);
  Threads all(count);
  const SimulatedFfn single(rivals.ffn, torus_of(64), regime, true, one);
  const SimulatedFfn many(rivals.ffn, torus_of(64), regime, true, all);
  for (auto _ : state) {
    const auto t = contest({simulated(many), simulated(single)}, Clock::wall, rounds());
    state.SetIterationTime(t[0]);
    add_row(state,
            fmt::format("{} 64 chips 256 tokens, {} threads / 1",
                        regime == Regime::f32 ? "f32" : "exact", count),
            t[0], t[1]);
  }
}

/// Collectives on 64 chips, f32 shards, against one memcpy of the bytes that they write.
void collective(benchmark::State& state, const char* name, const Moves& moves, const Sharded& value,
                const Layout& layout, bool reduces) {
  Threads one(1);
  const auto count = static_cast<std::size_t>(element_count(moves.to_local)) *
                     static_cast<std::size_t>(value.torus().chips()) *
                     (reduces ? moves.pieces[0].size() : 1);
  std::vector<float> from(count, 1.0F), to(count);
  const Side ours{
      name, [&] {
        benchmark::DoNotOptimize(reduces ? reduce(value, moves, layout, value.shape(), one)
                                         : transfer(value, moves, layout, value.shape(), one));
      }};
  const Side copy{"memcpy", [&] {
                    std::memcpy(to.data(), from.data(), count * sizeof(float));
                    benchmark::ClobberMemory();
                  }};
  for (auto _ : state) {
    const auto t = contest({ours, copy}, Clock::thread, rounds());
    state.SetIterationTime(t[0]);
    add_row(state, fmt::format("{}, {:.1f} MB / memcpy", name, 4e-6 * static_cast<double>(count)),
            t[0], t[1]);
  }
}

void collectives(benchmark::State& state, int which) {
  const Torus torus = torus_of(64);
  Tensor tensor({256, 1, Ffn::F}, 1.0F);
  const auto value = [&](const char* layout) {
    return shard(tensor, Layout::parse(layout), torus);
  };
  const Axes x = Axes::parse("x");
  const Axes zyx = Axes::parse("zyx");
  if (which == 0) {
    const Sharded t = value("BLF_zyx");
    collective(state, "all_gather(F, x)", all_gather_moves(torus, t.local(), 2, x), t,
               Layout::parse("BLF_zy"), false);
  } else if (which == 1) {
    const Sharded t = value("BLF_zyx");
    collective(state, "all_to_all(F->B, zyx)", all_to_all_moves(torus, t.local(), 2, 0, zyx, zyx),
               t, Layout::parse("B_zyxLF"), false);
  } else {
    Sharded t = value("BLF_zy");
    collective(state, "reduce_scatter(F, x), f32", reduce_scatter_moves(torus, t.local(), 2, x), t,
               Layout::parse("BLF_zyx"), true);
  }
}

/// Bytes that the system gave for shards, at most, against the bytes of the shards alive at most.
void memory(benchmark::State& state, Regime regime) {
  for (auto _ : state) {
    chip_memory::reset_peaks();
    const std::int64_t before = chip_memory::usage().live;
    const Ffn ffn(64);
    Threads one(1);
    const SimulatedFfn simulation(ffn, torus_of(64), regime, true, one);
    const double start = seconds(Clock::thread);
    for (int i = 0; i < 5; ++i) simulation.run();
    state.SetIterationTime(seconds(Clock::thread) - start);
    const auto held = static_cast<double>(chip_memory::usage().peak_held - before);
    const auto live = static_cast<double>(simulation.peak_bytes());
    state.counters["ratio"] = held / live;
    rows().push_back({fmt::format("{} 64 chips 64 tokens: memory / live shards",
                                  regime == Regime::f32 ? "f32" : "exact"),
                      "MB",
                      held * 1e-6,
                      live * 1e-6,
                      held / live,
                      1.2,
                      {}});
  }
}

/// Random cases of the property, drawn, run and judged, with the hazards on as in tests, on two
/// threads.
void property_cases(benchmark::State& state, bool hostile) {
  constexpr std::int64_t kCases = 300;
  for (auto _ : state) {
    OracleMemo memo;
    Threads two(2);
    std::atomic<std::int64_t> equal{0};
    const double start = seconds(Clock::wall);
    two.for_each(kCases, [&](std::int64_t i) {
      VerifyOptions options;
      options.at_once = 2;
      if (!hostile) options.hazards = {};
      const Case c = cases::draw(1, static_cast<std::uint64_t>(i));
      equal += verify_case(c, memo, options).verdict == Verdict::equal ? 1 : 0;
    });
    const double took = seconds(Clock::wall) - start;
    state.SetIterationTime(took);
    if (equal != kCases) state.SkipWithError("a case is not equal");
    const double per_minute = 60.0 * static_cast<double>(kCases) / took;
    state.counters["per_minute"] = per_minute;
    rows().push_back(
        {fmt::format("random cases a minute, 2 threads, hazards {}", hostile ? "on" : "off"),
         "",
         per_minute,
         0.0,
         per_minute,
         {},
         1000.0});
  }
}

std::string figure(double v) {
  return v >= 1000 ? fmt::format("{:.0f}", v) : fmt::format("{:.3g}", v);
}

void print_table() {
  fmt::print("\n{:<48}{:2}{:>9}{:>9}{:>7}\n", "ours / theirs", "", "ours", "theirs", "ratio");
  for (const Row& row : rows()) {
    std::string verdict;
    if (row.at_most) verdict = row.ratio <= *row.at_most ? "met" : "NOT";
    if (row.at_least) verdict = row.ratio >= *row.at_least ? "met" : "NOT";
    const bool ratio = row.theirs > 0;
    fmt::print("{:<48}{:2}{:>9}{:>9}{:>7}{}\n", row.what, row.unit, figure(row.ours),
               ratio ? figure(row.theirs) : "", ratio ? fmt::format("{:.2f}", row.ratio) : "",
               verdict.empty() ? "" : " " + verdict);
  }
  fmt::print("targets: FFN <= 1.3, exact <= 2.5, memory <= 1.2, cases >= 1000 a minute\n");
}

void register_all() {
  const auto add = [](const std::string& name, auto&& body) {
    benchmark::RegisterBenchmark(name.c_str(), body)
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (int chips : kChips)
    for (std::int64_t tokens : kTokens)
      add(fmt::format("ffn/f32/{}/{}", chips, tokens),
          [=](benchmark::State& s) { simulate(s, chips, tokens); });
  add("ffn/products", simulate_products);
  for (const auto& size : {std::pair{1, 64}, {64, 1}, {64, 8}, {64, 64}, {64, 256}})
    add(fmt::format("ffn/exact/{}/{}", size.first, size.second),
        [=](benchmark::State& s) { exact(s, size.first, size.second); });
  for (Regime regime : {Regime::f32, Regime::exact})
    add(regime == Regime::f32 ? "threads/f32" : "threads/exact",
        [=](benchmark::State& s) { threaded(s, regime); });
  for (int which : {0, 1, 2})
    add(fmt::format("collective/{}", which), [=](benchmark::State& s) { collectives(s, which); });
  for (Regime regime : {Regime::f32, Regime::exact})
    add(regime == Regime::f32 ? "memory/f32" : "memory/exact",
        [=](benchmark::State& s) { memory(s, regime); });
  for (bool hostile : {false, true})
    add(hostile ? "cases/hazards" : "cases/plain",
        [=](benchmark::State& s) { property_cases(s, hostile); });
}

/// Says on stderr what was measured; the table at the end is what counts.
class Progress : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      fmt::print(stderr, "{}{}\n", run.run_name.function_name,
                 run.error_occurred ? ": " + run.error_message : "");
      failed = failed || run.error_occurred;
    }
  }
  bool failed = false;
};

}  // namespace
}  // namespace shardproof::bench

int main(int argc, char** argv) {
  using namespace shardproof::bench;
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  fmt::print("simulated FFN: E={} F={}, 2D weight-stationary, through the executor\n", Ffn::E,
             Ffn::F);
  fmt::print("ours: {}\nEigen: {}\n", to_string(shardproof::isa_in_use()), eigen_in_use().isa());
  fmt::print("medians of {} rounds, sides in turn; processor time of one thread\n", rounds());
  Progress progress;
  benchmark::RunSpecifiedBenchmarks(&progress);
  print_table();
  return progress.failed ? 1 : 0;
}
