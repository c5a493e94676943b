#include "golden/rerun/exact.h"

#include <algorithm>
#include <utility>

#include "oracle/graph/answer.h"
#include "weights/base/detail/index.h"

namespace shardproof::rerun {
namespace {

/// Copies the ids of a pass to their positions in the rows; a prefix's to all rows that share it.
void put(const PassPlan& pass, const IntTensor& ids, const SharedPrefix& prefix,
         IntTensor& prompt) {
  const std::int64_t B = prompt.shape[0];
  std::int64_t row = 0;
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++row)
      for (std::int64_t b = 0; b < B; ++b) {
        if ((pass.phase == Phase::prefix ? prefix.of_row(b, B) : b) != row) continue;
        for (std::int64_t l = 0; l < group.tokens; ++l)
          prompt.data[at(b * prompt.shape[1] + group.start + l)] = ids.data[at(row * pass.L + l)];
      }
}

}  // namespace

oracle::Answer exact_of(const Question& question, const Numerics& numerics, int threads) {
  std::vector<PassPlan> passes = runnable(question);
  if (passes.empty()) return {};
  std::int64_t length = question.passes.prompt();
  for (const PassPlan& pass : passes)
    for (const PassRows& group : pass.rows) length = std::max(length, group.end());
  oracle::Request request{.numerics = numerics,
                          .prompt = IntTensor({question.passes.batch(), length}),
                          .passes = {},
                          .threads = threads};
  request.numerics.regime = Regime::exact;
  request.numerics.schedule = Schedule::group;
  request.numerics.acc = NumberFormat::f32;
  for (PassPlan& pass : passes) {
    put(pass, question.ids.at(pass.name), question.passes.prefix(), request.prompt);
    if (pass.phase == Phase::decode) pass.phase = Phase::prefill;
  }
  request.passes = Passes(std::move(passes));
  return question.weights.config().rows != nullptr
             ? oracle::graph::answer(question.weights, request)
             : oracle::run_stored(question.weights, request);
}

}  // namespace shardproof::rerun
