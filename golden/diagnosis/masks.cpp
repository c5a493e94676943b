// Edits of masks, of the keys that a query sees.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;

/// Returns the step with the lines that masks hide; those that a dump may hold anything in are made
/// anew.
Step unmasked_step(const Question& q) {
  return {q.replay(), q.id(), q.raw(),
          q.masked_any() ? Step::Unmasked::all : Step::Unmasked::missing};
}

/// The keys that queries see, in values with rows, positions and slots.
class Sight {
 public:
  explicit Sight(const Question& q)
      : q_(q), pass_(q.pass()), letters_(q.step().lines().back().letters) {}

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

  /// Returns the expected value, or another one, in which what a query does not see is 0, or a
  /// score far below all that are right if the value holds one, and with `one` what it sees alone
  /// is 1.
  template <class Sees>
  IntervalTensor hidden(Sees&& sees, bool one) const {
    return hidden(q_.expected(), sees, one);
  }
  template <class Sees>
  IntervalTensor hidden(IntervalTensor y, Sees&& sees, bool one) const {
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

/// Whether a query sees a key of those that lie in blocks of one width, as those of chips do;
/// `right`: whether it is to see it.
using SeesOfBlocks = bool (*)(std::size_t own, std::size_t key, std::size_t width, bool right);

bool later_too(std::size_t own, std::size_t key, std::size_t width, bool right) {
  return right || key / width > own / width;
}
bool block_too(std::size_t own, std::size_t key, std::size_t width, bool right) {
  return right || key / width == own / width;
}
bool block_alone(std::size_t own, std::size_t key, std::size_t width, bool right) {
  return right && key / width == own / width;
}
bool later_for_earlier(std::size_t own, std::size_t key, std::size_t width, bool right) {
  return key / width == own / width ? right : key / width > own / width;
}
bool up_to_place(std::size_t own, std::size_t key, std::size_t width, bool) {
  return key % width <= own % width;
}

constexpr struct {
  const char* words;
  SeesOfBlocks sees;
} kMasksOfBlocks[] = {
    {"also sees those of later blocks", later_too},
    {"also sees those behind its own of its block", block_too},
    {"sees those of its own block alone", block_alone},
    {"sees those of later blocks, not of earlier ones", later_for_earlier},
    {"sees those of every block up to its place in its own", up_to_place},
};
/// As many blocks of keys as are tried, and the most products of all candidates.
constexpr std::size_t kMostBlocks = 16;
constexpr double kProducts = 0x1p28;

}  // namespace

Edit sight_as(std::int64_t (*to)(std::int64_t, const PassPlan&)) {
  return [=](const Question& q, Search& search, const Row& row) {
    const PassPlan& pass = q.pass();
    const Step unmasked = unmasked_step(q);
    if (unmasked.reads_positions()) return;
    const std::int64_t M = pass.prefix.length + pass.cached + pass.L;
    const auto other = moved(q, 2 * M + 2, [&](std::int64_t start) { return to(start, pass); });
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
    const PassPlan& pass = q.pass();
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

Edit sight_of_blocks() {
  return [](const Question& q, Search& search, const Row& row) {
    const Step unmasked = unmasked_step(q);
    const Sight sight(q);
    const std::size_t M = at(q.step().extent('M'));
    double products = 0.0, left = kProducts;
    for (const std::string& id : unmasked.operands())
      products = std::max(products, static_cast<double>(q.value(id).size() * M));
    if (unmasked.reads_positions()) return;
    for (std::size_t n = 2; n <= std::min(kMostBlocks, M / 2); ++n)
      for (const auto& mask : kMasksOfBlocks) {
        const std::size_t width = M / n;
        if (width * n != M) break;
        const auto sees = [&](std::size_t b, std::size_t l, std::size_t m) {
          return mask.sees(sight.own_key(b, l), m, width,
                           m < bounds::Derivation::visible(q.pass(), b, l));
        };
        const Step::Change change{
            .sees = [&](std::size_t b, std::size_t l, std::size_t m, bool right) {
              return mask.sees(sight.own_key(b, l), m, width, right);
            }};
        Candidate c = candidate(row, n, width, mask.words);
        c.parameters += static_cast<int>(n);
        if (!search.wants(c) || !sight.agrees(sees)) continue;
        if ((left -= products) < 0) return;
        // What is hidden stands in scores as a number far below them.
        if (sight.of_keys() && !exponentiates(q) && sight.shows_mask())
          if (auto value = Trial(q, search).value_under(unmasked, change))
            Trial(q, search).try_value(c, sight.hidden(std::move(*value), sees, false));
        Trial(q, search).try_change(std::move(c), unmasked, change);
      }
  };
}

/// Without exponentials that contradict it, a mask explains the same numbers.
Edit cache_before_the_pass() {
  return [](const Question& q, Search& search, const Row& row) {
    const Sight sight(q);
    const PassPlan& pass = q.pass();
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
