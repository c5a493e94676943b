// Edits of positions: of what is rotated, and of the keys that a query sees.
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

const PassPlan& pass_of(const Question& q) { return q.replay().pass(q.place().pass); }

/// Returns the pass with its rows at other positions; nullopt if a row would begin before 0 or end
/// after `end`, or if nothing changes.
template <class To>
std::optional<PassPlan> moved(PassPlan pass, std::int64_t end, To&& to) {
  const PassPlan was = pass;
  for (PassRows& rows : pass.rows) {
    rows.start = to(rows.start);
    if (rows.start < 0 || rows.start + pass.L > end) return std::nullopt;
  }
  if (pass == was) return std::nullopt;
  return pass;
}

template <class To>
void try_positions(const Question& q, Search& search, Candidate c, To&& to) {
  const auto table =
      q.weight(q.step().weight_id(*q.step().weights(WeightKind::rope_table).front()));
  if (const auto other = moved(pass_of(q), table->shape[0], to))
    Trial(q, search).try_change(std::move(c), {.pass = other});
}

/// Returns the operand that the step turns; "" if it reads none.
std::string turned(const Question& q) {
  std::string id;
  q.step().calls([&](const Expression& e) {
    if (e.op == ModelOp::turn) id = q.step().operand(e.args[0].text).value_or("");
    return false;
  });
  return id.empty() && !q.operands().empty() ? q.operands()[0] : id;
}

/// Candidate offsets of positions: numbers up to 16, the lengths of pass and prefix, and the first
/// positions of this pass and of the decode.
std::set<std::int64_t> offsets(const Question& q) {
  const PassPlan& own = pass_of(q);
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

/// The keys that queries see, in values with rows, positions and slots.
class Sight {
 public:
  explicit Sight(const Question& q)
      : q_(q), pass_(pass_of(q)), letters_(q.step().lines().back().letters) {}

  std::size_t own_key(std::size_t b, std::size_t l) const {
    return at(q_.replay().position(pass_, b, l));
  }

  /// Returns whether the dump's exponentials agree with a mask: 0 where a query sees no key, and
  /// not all 0 where it sees a key that it should not.
  template <class Sees>
  bool agrees(Sees&& sees) const {
    const std::optional<bounds::Derivation::Place> of = dumped_exponentials(q_);
    if (!of || of->name == q_.name()) return true;
    const std::string id = q_.id_of(of->name);
    const IntervalTensor& e = q_.replay().value(id);
    const std::vector<bool> unspoken = q_.unspoken(*of, e.shape);
    const std::string& letters = q_.step().graph().lines().line_of(*of)->letters;
    bool more = false, there = false;
    for (std::size_t i = 0; i < e.size(); ++i) {
      if (!unspoken.empty() && unspoken[i]) continue;
      const std::size_t b = index_in(letters, e.shape, i, 'B'),
                        l = index_in(letters, e.shape, i, 'L'),
                        m = index_in(letters, e.shape, i, 'M');
      const bool right = m < bounds::Derivation::visible(pass_, b, l), now = sees(b, l, m);
      if (right && !now && e.center[i] != 0.0) return false;
      if (right || !now) continue;
      more = true;
      there = there || e.center[i] != 0.0;
    }
    return !more || there;
  }

  /// Returns the expected value in which what a query does not see is 0, or a score far below all
  /// that are right if the value holds one, and with `one` what it sees alone is 1.
  template <class Sees>
  IntervalTensor hidden(Sees&& sees, bool one) const {
    IntervalTensor y = q_.expected();
    const double masked = masked_number();
    for (std::size_t i = 0; i < y.size(); ++i)
      if (!sees(index_in(letters_, y.shape, i, 'B'), index_in(letters_, y.shape, i, 'L'),
                index_in(letters_, y.shape, i, 'M')))
        y.set(i, bounds::FunctionValue{masked, 0.0, 0.0});
      else if (one)
        y.set(i, bounds::FunctionValue{1.0, 0.0, 0.0});
    return y;
  }
  bool of_keys() const {
    for (const char dim : {'B', 'L', 'M'})
      if (letters_.find(dim) == letters_.npos) return false;
    return true;
  }

  /// Returns whether the value holds what stands for a masked score.
  bool shows_mask() const { return masked_number() != 0.0; }

 private:
  /// Returns the lowest number of the value if it is below all right ones, otherwise 0.
  double masked_number() const {
    double lowest = 0.0, right = 0.0;
    for (int chip = 0; chip < q_.chips(); ++chip)
      for (const double v : q_.shard(chip)) lowest = std::min(lowest, v);
    for (std::size_t i = 0; i < q_.expected().size(); ++i)
      if (const double v = q_.expected().center[i] - q_.expected().radius[i]; std::isfinite(v))
        right = std::min(right, v);
    return lowest < right ? lowest : 0.0;
  }

  const Question& q_;
  const PassPlan& pass_;
  const std::string letters_;
};

}  // namespace

Edit positions_as(std::int64_t (*to)(std::int64_t, const PassPlan&)) {
  return [=](const Question& q, Search& search, const Row& row) {
    try_positions(q, search, candidate(row),
                  [&](std::int64_t start) { return to(start, pass_of(q)); });
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
    const PassPlan& pass = pass_of(q);
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
    const std::string id = turned(q);
    if (!id.empty() && q.value(id).shape == q.shape())
      Trial(q, search).try_value(candidate(row), q.value(id));
  };
}

Edit done_twice() {
  return [](const Question& q, Search& search, const Row& row) {
    const std::string id = turned(q);
    if (!id.empty() && q.value(id).shape == q.shape())
      Trial(q, search).try_change(candidate(row), {.values = {{id, q.expected()}}});
  };
}

Edit sight_as(std::int64_t (*to)(std::int64_t, const PassPlan&)) {
  return [=](const Question& q, Search& search, const Row& row) {
    const PassPlan& pass = pass_of(q);
    const Step unmasked(q.replay(), q.id(), q.raw(), true);
    if (unmasked.reads_positions()) return;
    const std::int64_t M = pass.prefix.length + pass.cached + pass.L;
    const auto other = moved(pass, 2 * M + 2, [&](std::int64_t start) { return to(start, pass); });
    const Sight sight(q);
    const auto sees = [&](std::size_t b, std::size_t l, std::size_t m) {
      return m < bounds::Derivation::visible(*other, b, l);
    };
    if (!other || !sight.agrees(sees)) return;
    // What is hidden stands in scores as a number far below them.
    if (sight.of_keys() && !exponentiates(q) && sight.shows_mask())
      Trial(q, search).try_value(candidate(row), sight.hidden(sees, false));
    Trial(q, search).try_change(candidate(row), unmasked, {.pass = other});
  };
}

Edit keys_hidden(bool (*hides)(std::size_t own, std::size_t key), bool (*where)(const PassPlan&),
                 bool one_is_left) {
  return [=](const Question& q, Search& search, const Row& row) {
    const Sight sight(q);
    const PassPlan& pass = pass_of(q);
    if (!sight.of_keys() || !where(pass)) return;
    const auto sees = [&](std::size_t b, std::size_t l, std::size_t m) {
      return m < bounds::Derivation::visible(pass, b, l) && !hides(sight.own_key(b, l), m);
    };
    if (!sight.agrees(sees)) return;
    // A score that stands alone is the maximum, so its exponential is 1.
    const bool one = one_is_left && exponentiates(q) && !q.step().calls([&](const Expression& e) {
      const auto most = e.op == ModelOp::sub ? q.step().operand(e.args[1].text) : std::nullopt;
      return most && q.replay().dumped(*most);
    });
    Trial(q, search).try_value(candidate(row), sight.hidden(sees, one));
  };
}

/// Without exponentials that contradict it, a mask explains the same numbers.
Edit cache_before_the_pass() {
  return [](const Question& q, Search& search, const Row& row) {
    const Sight sight(q);
    const PassPlan& pass = pass_of(q);
    if (sight.agrees(
            [&](std::size_t b, std::size_t, std::size_t m) { return m < sight.own_key(b, 0); }))
      return;
    for (const std::string& id : q.operands()) {
      const bounds::Derivation::Place place = q.replay().place_of(id);
      const TextLine* const line = q.step().graph().lines().line_of(place);
      if (place.pass != pass.name || line == nullptr || !line->letters.starts_with("BM") ||
          !is_call(line->expression, ModelOp::append))
        continue;
      IntervalTensor before = q.value(id);
      for (std::size_t i = 0; i < before.size(); ++i)
        if (index_in("BM", before.shape, i, 'M') + at(pass.prefix.length) >=
            sight.own_key(index_in("BM", before.shape, i, 'B'), 0))
          before.set(i, bounds::FunctionValue{});
      Trial(q, search).try_change(candidate(row, id), {.values = {{id, std::move(before)}}});
    }
  };
}

}  // namespace shardproof::diagnosis
