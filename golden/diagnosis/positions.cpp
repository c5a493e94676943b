// Edits of positions, of what is rotated.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;

template <class To>
void try_positions(const Question& q, Search& search, Candidate c, To&& to) {
  const auto table =
      q.weight(q.step().weight_id(*q.step().weights(WeightKind::rope_table).front()));
  if (const auto other = moved(q, table->shape[0], to))
    Trial(q, search).try_change(std::move(c), {.pass = other});
}

/// Candidate offsets of positions: numbers up to 16, the lengths of pass and prefix, and the first
/// positions of this pass and of the decode.
std::set<std::int64_t> offsets(const Question& q) {
  const PassPlan& own = q.pass();
  std::set<std::int64_t> all{own.L, own.prefix.length, own.rows[0].start};
  for (std::int64_t k = 1; k <= 16; ++k) all.insert(k);
  for (const PassPlan& pass : q.replay().passes())
    if (pass.phase == Phase::decode) {
      all.insert(pass.rows[0].start);
      break;
    }
  all.erase(0);
  return all;
}

}  // namespace

Edit positions_as(std::int64_t (*to)(std::int64_t, const PassPlan&)) {
  return [=](const Question& q, Search& search, const Row& row) {
    try_positions(q, search, candidate(row),
                  [&](std::int64_t start) { return to(start, q.pass()); });
  };
}

Edit positions_off() {
  return [](const Question& q, Search& search, const Row& row) {
    for (const std::int64_t k : offsets(q))
      for (const std::int64_t by : {k, -k}) {
        Candidate c = candidate(row, by);
        c.parameters = static_cast<int>(10 * k) + (by < 0 ? 1 : 0);
        try_positions(q, search, std::move(c), [by](std::int64_t start) { return start + by; });
      }
  };
}

Edit tables_as(bool of_row_0, float sign) {
  return [=](const Question& q, Search& search, const Row& row) {
    Step::Change change;
    for (const TextWeight* const weight : q.step().weights(WeightKind::rope_table)) {
      const std::string id = q.step().weight_id(*weight);
      Tensor table = *q.weight(id);
      const auto J = at(table.shape[1]);
      for (std::size_t i = 0; i < table.data.size(); ++i) {
        if (of_row_0) table.data[i] = table.data[i % J];
        if (weight->kind == TextWeightKind::sines) table.data[i] *= sign;
      }
      change.weights.emplace(id, std::move(table));
    }
    Trial(q, search).try_change(candidate(row), change);
  };
}

Edit positions_dealt() {
  return [](const Question& q, Search& search, const Row& row) {
    const PassPlan& pass = q.pass();
    if (pass.rows.size() != 1) return;
    const std::int64_t L = pass.L, start = pass.rows[0].start;
    // The position of token l of the pass, less the first one's.
    const auto tried = [&](const std::string& words, const Axes& axes, int parameters,
                           auto&& at_l) {
      Step::Change change;
      bool other = false;
      for (const TextWeight* const weight : q.step().weights(WeightKind::rope_table)) {
        const std::string id = q.step().weight_id(*weight);
        const std::shared_ptr<const Tensor> own = q.weight(id);
        Tensor table = *own;
        const std::int64_t J = table.shape[1];
        for (std::int64_t l = 0; l < L && start + l < table.shape[0]; ++l)
          for (std::int64_t j = 0; j < J; ++j)
            table.data[at((start + l) * J + j)] = own->data[at((start + at_l(l)) * J + j)];
        other = other || table.data != own->data;
        change.weights.emplace(id, std::move(table));
      }
      if (!other) return;
      Candidate c = candidate(row, words);
      c.axes = axes.to_string();
      c.parameters += parameters;
      Trial(q, search).try_change(std::move(c), change);
    };
    constexpr std::int64_t kMostChips = 16;
    for (std::int64_t n = 2; n <= std::min(kMostChips, L / 2); ++n) {
      const std::int64_t w = L / n, chunk = L / (2 * n);
      if (w * n != L) continue;
      Axes set;
      for (const Axes& one : q.sets())
        if (set.empty() && q.torus().size(one) == n) set = one;
      tried(fmt::format("tokens of {} chips are each at 0 to {}", n, w - 1), set, 0,
            [w](std::int64_t l) { return l % w; });
      tried(fmt::format("token l is at (l mod {})·{} + ⌊l/{}⌋", n, w, n), set, 1,
            [=](std::int64_t l) { return l % n * w + l / n; });
      tried(fmt::format("token l is at (l mod {})·{} + ⌊l/{}⌋", w, n, w), set, 2,
            [=](std::int64_t l) { return l % w * n + l / w; });
      if (chunk * 2 * n != L) continue;
      // Each chip has a chunk from the front and one from the back.
      std::vector<std::int64_t> order, place(at(2 * n));
      for (std::int64_t chip = 0; chip < n; ++chip)
        order.insert(order.end(), {chip, 2 * n - 1 - chip});
      for (std::size_t k = 0; k < order.size(); ++k)
        place[at(order[k])] = static_cast<std::int64_t>(k);
      for (const auto& chunks : {order, place})
        tried(fmt::format("chunks of {} tokens are at those of {}", chunk, fmt::join(chunks, ",")),
              set, 3, [&](std::int64_t l) { return chunks[at(l / chunk)] * chunk + l % chunk; });
    }
  };
}

Edit other_pairs() {
  return [](const Question& q, Search& search, const Row& row) {
    std::string words;
    Step::Change change{.other_pairs = true};
    change.formulas = q.step().changed([&](Expression& e) {
      if (e.op != ModelOp::turn) return false;
      e.parameters[1] = words = e.parameters[1] == "half" ? "interleaved" : "half";
      return true;
    });
    Trial(q, search).try_change(candidate(row, words), change);
  };
}

Edit operand_itself() {
  return [](const Question& q, Search& search, const Row& row) {
    const std::string id = turned_operand(q);
    if (!id.empty() && q.value(id).shape == q.shape())
      Trial(q, search).try_value(candidate(row), q.value(id));
  };
}

Edit done_twice() {
  return [](const Question& q, Search& search, const Row& row) {
    const std::string id = turned_operand(q);
    if (!id.empty() && q.value(id).shape == q.shape())
      Trial(q, search).try_change(candidate(row), {.values = {{id, q.expected()}}});
  };
}

}  // namespace shardproof::diagnosis
