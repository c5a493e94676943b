// Faults of arithmetic, planted in what the judge of the f32 regime is shown: a value is recomputed
// from the chips' own operands by the faulty rule before the judge sees it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/collectives/moves.h"
#include "engine/layout/detail/box.h"
#include "golden/verify/verify.h"
#include "tests/engine/numbers.h"
#include "tests/golden/judged_run.h"

namespace shardproof::faulty {

using Args = std::vector<Sharded>;
/// Of an op's results the one that is being shown, by its place.
using Results = std::map<std::size_t, Sharded>;
/// Changes a value as it is shown; false if the fault has no place there.
using Fault = std::function<bool(const Op& op, const Args& args, Results& results)>;

class Faulty : public Observer {
 public:
  Faulty(Observer& judge, Fault fault) : judge_(judge), fault_(std::move(fault)) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    seen_.insert_or_assign(scope.step(program, declared.name), value);
    Sharded shown = value;
    if (op != nullptr) {
      Args args;
      for (const std::string& arg : op->args) args.push_back(seen_.at(scope.step(program, arg)));
      for (std::size_t r = 0; r < op->results.size(); ++r)
        if (op->results[r] == declared) {
          Results results{{r, value}};
          if (fault_(*op, args, results)) ++planted;
          shown = results.at(r);
        }
    }
    judge_.observe(scope, program, op, declared, shown);
  }

  int planted = 0;

 private:
  Observer& judge_;
  Fault fault_;
  std::map<std::string, Sharded> seen_;
};

/// Axes of 5 and 3 show what 2 cannot.
inline Case f32_case(Schedule schedule) {
  Case c = parse_case(
      "torus=5x1x3 model=palm-tiny,layers=1,E=60,F=120,H=15,Q=4,V=60 prefill=ws2d:heads "
      "decode=wg-xyz:batch regime=f32 prompt=3 chunk=2 gen=3 seed=5");
  c.numerics.schedule = schedule;
  return c;
}

inline Case rounding_case(Schedule schedule, NumberFormat acc, NumberFormat wire) {
  Case c = f32_case(schedule);
  c.numerics.acc = acc;
  c.numerics.wire = wire;
  return c;
}

inline Judgement judged(const Case& c, const Fault& fault, int* planted = nullptr) {
  JudgedRun<ScalarJudge> run(c);
  Faulty faulty(run.judge, fault);
  run.run(faulty);
  if (planted != nullptr) *planted = faulty.planted;
  return run.judge.finish();
}

inline void expect_caught(const Case& c, const Fault& fault) {
  int planted = 0;
  const Judgement j = judged(c, fault, &planted);
  EXPECT_GT(planted, 0) << "the fault had no place";
  EXPECT_EQ(j.verdict, Verdict::different) << j.explanation();
}
inline void expect_caught(Schedule schedule, const Fault& fault) {
  expect_caught(f32_case(schedule), fault);
}
inline void expect_equal(const Case& c, const Fault& rule) {
  int planted = 0;
  const Judgement j = judged(c, rule, &planted);
  EXPECT_GT(planted, 0) << "the rule had no place";
  EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
}

/// The factors of one element of a product, by k.
using Factors = std::function<float(std::int64_t)>;

/// Recomputes a plain product BLE,EF->BLF by `sum(K, a, b)`.
inline Fault product(float (*sum)(std::int64_t, const Factors&, const Factors&)) {
  return [sum](const Op& op, const Args& args, Results& results) {
    if (op.kind != OpKind::einsum || op.spec.to_string() != "BLE,EF->BLF") return false;
    const std::int64_t K = args[1].local()[0];
    const std::int64_t N = args[1].local()[1];
    const auto chips = numbers_of(results.at(0));
    for (std::size_t c = 0; c < chips.size(); ++c)
      for (std::size_t i = 0; i < chips[c].size(); ++i) {
        const auto m = static_cast<std::int64_t>(i) / N;
        const auto n = static_cast<std::int64_t>(i) % N;
        chips[c][i] = sum(
            K,
            [&](std::int64_t k) { return args[0].f32()[c][static_cast<std::size_t>(m * K + k)]; },
            [&](std::int64_t k) { return args[1].f32()[c][static_cast<std::size_t>(k * N + n)]; });
      }
    return true;
  };
}

/// What is added up by a reduction, and where the sum goes: a place among those of a chunk whose
/// halves go different ways round a ring.
struct Summed {
  std::vector<float> terms;  ///< in group order
  std::size_t chunk = 0;
  std::int64_t place = 0, places = 1;
  Loop loop = Loop::none;  ///< of the op

  bool second_half() const { return place >= (places + 1) / 2; }
};

/// Of element `at` of a chip's buffer.
inline Summed summed_at(const Op& op, const Torus& torus, const Shape& local, int chip,
                        std::size_t at, std::size_t dim) {
  const auto i = static_cast<std::int64_t>(at);
  if (op.kind == OpKind::reduce_scatter) {
    std::int64_t inner = 1;
    for (std::size_t d = dim + 1; d < local.size(); ++d) inner *= local[d];
    return {{},
            static_cast<std::size_t>(torus.block(chip, op.axes)),
            i / inner % local[dim],
            local[dim],
            op.loop};
  }
  const std::int64_t K = torus.size(op.axes), n = element_count(local);
  std::int64_t before = 0, alike = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    before += j * K / n < i * K / n;
    alike += j * K / n == i * K / n;
  }
  return {{}, static_cast<std::size_t>(i * K / n), i - before, alike, op.loop};
}

/// Recomputes reductions of K chips by `sum`.
inline Fault reduction_by(const std::function<float(const Summed&)>& sum, OpKind kind,
                          std::size_t least = 2) {
  return [=](const Op& op, const Args& args, Results& results) {
    const Torus& torus = args[0].torus();
    if (op.kind != kind || static_cast<std::size_t>(torus.size(op.axes)) < least) return false;
    const bool scatter = kind == OpKind::reduce_scatter;
    const std::size_t dim = scatter ? *args[0].layout().find(op.dim) : 0;
    const Moves moves = scatter ? reduce_scatter_moves(torus, args[0].local(), dim, op.axes)
                                : all_reduce_moves(torus, args[0].local(), op.axes);
    const auto chips = numbers_of(results.at(0));
    for (int chip = 0; chip < torus.chips(); ++chip) {
      const auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
      auto& buffer = chips[static_cast<std::size_t>(chip)];
      const Shape zero(moves.block.size(), 0);
      for_each_run(moves.block, moves.from_local, zero, moves.to_local, zero,
                   [&](std::int64_t a, std::int64_t b, std::int64_t n) {
                     for (std::int64_t i = 0; i < n; ++i) {
                       const auto at = static_cast<std::size_t>(pieces[0].to + b + i);
                       Summed s = summed_at(op, torus, moves.to_local, chip, at, dim);
                       for (const Piece& piece : pieces)
                         s.terms.push_back(args[0].f32()[static_cast<std::size_t>(
                             piece.from_chip)][static_cast<std::size_t>(pieces[0].from + a + i)]);
                       buffer[at] = sum(s);
                     }
                   });
    }
    return true;
  };
}
/// The same by `sum(terms, chunk)`.
inline Fault reduction(const std::function<float(const std::vector<float>&, std::size_t)>& sum,
                       OpKind kind, std::size_t least = 2) {
  return reduction_by([sum](const Summed& s) { return sum(s.terms, s.chunk); }, kind, least);
}

}  // namespace shardproof::faulty
