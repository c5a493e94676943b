// Whole processes of the program, as a user starts them: on all processors, reading no files.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "golden/cases/cases.h"
#include "tools/bench/child.h"
#include "tools/bench/row.h"

namespace shardproof::bench {
namespace {

using Words = std::vector<std::string>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Words verb(const char* name, const std::string& line) { return {name, "--case", line}; }

std::string mini(const char* more) {
  return std::string(
             "torus=4x4x4 model=palm-mini prefill=wg-xyz:batch decode=ws2d:batch "
             "batch=64 prompt=3 gen=5 seed=11") +
         more;
}

std::string wide_2d(const char* torus, int batch) {
  return fmt::format(
      "torus={} model=palm-wide prefill=ws2d:batch decode=ws2d:batch batch={} "
      "prompt=4 gen=2",
      torus, batch);
}

/// Returns the start function of a row that runs two processes in turn.
std::function<std::function<Sample()>()> processes_of(const std::string& program, Words ours,
                                                      Words theirs) {
  return [=] {
    return [=] {
      const Cost first = run_child(program, ours).cost;
      return Sample::ratio(first, run_child(program, theirs).cost);
    };
  };
}

double peak_of(const Child& child) {
  if (!child.peak_bytes)
    throw std::runtime_error("the child's memory cannot be told from this process's own");
  return static_cast<double>(*child.peak_bytes);
}

/// Runs a process at its first use; several rows show its cost.
class Once {
 public:
  Once(std::string program, Words words) : program_(std::move(program)), words_(std::move(words)) {}
  const Child& child() {
    if (!child_) child_ = run_child(program_, words_);
    return *child_;
  }

 private:
  std::string program_;
  Words words_;
  std::optional<Child> child_;
};

Row seconds_row(const std::string& id, const std::string& group, std::shared_ptr<Once> once,
                std::optional<Target> target) {
  return {.id = id,
          .group = group,
          .what = "time",
          .target = target,
          .unit = Unit::seconds,
          .decides = Decides::wall,
          .once = true,
          .apart = true,
          .start = [=] {
            return [=] { return Sample{once->child().cost, {}, once->child().cost}; };
          }};
}

Row memory_row(const std::string& id, const std::string& group, std::shared_ptr<Once> once,
               Target target, bool apart) {
  return {.id = id,
          .group = group,
          .what = "memory, at most",
          .target = target,
          .unit = Unit::bytes,
          .decides = Decides::neither,
          .once = true,
          .apart = apart,
          .start = [=] {
            return [=] {
              const Child& child = once->child();
              return Sample{child.cost, {}, {peak_of(child), kNone}};
            };
          }};
}

/// Returns the row of the whole standard matrix, per case: cases share oracles, so that a subset
/// would cost more per case.
Row matrix_row(const std::string& program) {
  return {.id = "matrix",
          .group = "the standard matrix, a case",
          .what = "verify",
          .target = Target{0.04},
          .unit = Unit::seconds,
          .once = true,
          .start = [=] {
            return [=] {
              const auto count = static_cast<double>(cases::standard_matrix().size());
              const Cost cost = run_child(program, {"verify", "--all", "--quiet"}).cost;
              return Sample{cost, {}, {cost.processor / count, cost.wall / count}};
            };
          }};
}

}  // namespace

std::vector<Row> process_rows(const std::string& program) {
  std::vector<Row> rows;
  for (const bool f32 : {false, true}) {
    const std::string line = mini(f32 ? " regime=f32" : "");
    rows.push_back({.id = std::string("verify/") + (f32 ? "f32" : "exact"),
                    .group = "verify / run, palm-mini on 64 chips",
                    .what = f32 ? "f32" : "exact",
                    .target = Target{f32 ? 6.0 : 1.8},
                    .decides = Decides::both,
                    .start = processes_of(program, verb("verify", line), verb("run", line))});
  }
  const auto on_512 = std::make_shared<Once>(program, verb("run", wide_2d("8x8x8", 512)));
  rows.push_back({.id = "run/512/time",
                  .group = "run, palm-wide, ws2d:batch, 512 chips and rows / 256",
                  .what = "time",
                  .target = Target{2.2},
                  .decides = Decides::both,
                  .start = processes_of(program, verb("run", wide_2d("8x8x8", 512)),
                                        verb("run", wide_2d("8x8x4", 256)))});
  rows.push_back(memory_row("run/512/memory", "run, palm-wide, ws2d:batch, 512 chips and rows",
                            on_512, Target{0.4e9}, false));
  rows.push_back(matrix_row(program));

  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  const auto cube =
      std::make_shared<Once>(program, verb("verify",
                                           "torus=8x8x8 model=palm-wide prefill=wg-xyz:batch "
                                           "decode=ws2d:batch batch=512 prompt=2 gen=2"));
  const auto pod = std::make_shared<Once>(
      program, verb("verify",
                    "torus=16x16x16 model=palm-wide,V=4096 prefill=wg-xyz:batch "
                    "decode=wg-xyz:batch batch=4096 prompt=1 gen=2"));
  const std::string of_cube = "verify, palm-wide, wg-xyz:batch to ws2d:batch, 512 chips";
  const std::string of_pod = "verify, palm-wide,V=4096, wg-xyz:batch, 4096 chips";
  rows.push_back(seconds_row("large/512/time", of_cube, cube, Target{60.0}));
  rows.push_back(memory_row("large/512/memory", of_cube, cube, Target{4.0 * kGiB}, true));
  rows.push_back(seconds_row("large/4096/time", of_pod, pod, {}));
  rows.push_back(memory_row("large/4096/memory", of_pod, pod, Target{16.0 * kGiB}, true));
  return rows;
}

}  // namespace shardproof::bench
