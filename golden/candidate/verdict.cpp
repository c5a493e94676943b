#include "golden/candidate/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "golden/bounds/tightness.h"
#include "golden/candidate/choice.h"
#include "golden/candidate/coarse.h"
#include "golden/candidate/each_number.h"
#include "golden/candidate/last_rows.h"
#include "golden/candidate/masked.h"
#include "golden/candidate/same_bits.h"
#include "golden/candidate/wrong_box.h"
#include "golden/compare/block_map.h"
#include "golden/compare/reach_meter.h"
#include "golden/row_padding.h"
#include "golden/sampling_value.h"
#include "oracle/sampling.h"
#include "weights/registry.h"
#include "weights/stable_sort.h"

namespace shardproof::candidate {
namespace {

using bounds::Carried;
using bounds::Format;
using bounds::Interval;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr const char* kNothing = "it holds no number of the model's";

/// What a value must be, by one of the two gates.
struct Expected {
  const Tensor* bits = nullptr;  ///< of the exact regime
  std::optional<Carried> bound;
  Format format = Format::f32;  ///< of values

  std::string why;  ///< there is none

  bool any() const { return bits != nullptr || bound.has_value(); }
};

class Judging {
 public:
  Judging(const Claim& claim, Reference& reference) : claim_(claim), reference_(reference) {}

  Row judge(const Held& held, std::size_t number) {
    Row row;
    row.name = held.name;
    row.title = held.subject.title();
    row.held = number;
    row.chips = held.torus.chips();
    const Meaning meaning = held.subject.meaning;
    row.of_run =
        meaning != Meaning::weight && meaning != Meaning::ids && meaning != Meaning::positions;
    row.incomplete = !held.complete();
    if (meaning == Meaning::ids) return ids(held, std::move(row));
    if (meaning == Meaning::token) keep_token(held);
    const bool random = claim_.given.sampling.sample == Sample::random;
    if (!claim_.exact && (meaning == Meaning::drawing || (meaning == Meaning::token && random)))
      return drawn(held, std::move(row));
    if (!claim_.exact && (meaning == Meaning::token || meaning == Meaning::indices))
      return chosen(held, std::move(row));
    const Expected expected = expectation(held);
    if (!expected.any()) {
      row.why = expected.why;
      return row;
    }
    hold(held, expected, row);
    if (row.fit == Fit::different && expected.bits != nullptr) {
      // By its own operands, too: then the fault is an earlier value's.
      if (const auto bound = bound_of(held.subject)) {
        Expected by_operands{nullptr, bound, format_of(held), ""};
        Row again;
        hold(held, by_operands, again);
        row.follows = again.fit != Fit::different;
      }
    } else if (row.fit != Fit::different) {
      row.drift = drift(held);
    }
    return row;
  }

 private:
  std::optional<Carried> bound_of(const Subject& s) {
    bounds::Replay& replay = reference_.replay();
    if (s.last) {
      // Of a value that the trace has whole they are these numbers.
      const bool moved = s.meaning == Meaning::checkpoint && reference_.has(s.id);
      const auto whole = moved ? std::optional(replay.value(s.id)) : bound_of(s.whole());
      if (!whole) return std::nullopt;
      return last_rows(*whole, replay.pass(s.pass));
    }
    switch (s.meaning) {
      case Meaning::checkpoint:
      case Meaning::unstored:
        return replay.expected(s.id);
      case Meaning::raw:
        return replay.expected_raw(s.id);
      case Meaning::scaled:
        return replay.expected_scaled(s.id);
      case Meaning::stat:
        return replay.expected_statistic({s.pass, s.layer, s.name});
      case Meaning::probs:
        return replay.expected_probs(s.pass, s.layer);
      case Meaning::candidates:
        return Choice(replay.value(s.pass + ".logits"), at(s.shape[1]), at(s.block)).largest();
      default:
        return std::nullopt;
    }
  }

  Format format_of(const Held& held) const {
    const bool rounded = !held.layout.is_partial() && held.summands == 1 && held.units.empty();
    return rounded ? format_of(held.subject) : Format::f64;
  }
  Format format_of(const Subject& s) const {
    const ValueRow* const row = value_row(s.name);
    // A cache is not stored: it is made of what is.
    const bool stored = s.meaning == Meaning::checkpoint ||
                        (s.meaning == Meaning::unstored && row != nullptr && row->cache);
    return stored ? reference_.replay().format_of(s.name) : claim_.declared.unstored();
  }

  Expected expectation(const Held& held) {
    Expected e;
    const Subject& s = held.subject;
    e.format = format_of(held);
    if (s.meaning == Meaning::weight || s.meaning == Meaning::positions) {
      e.bits = reference_.exact(s);
    } else if (claim_.exact && !held.layout.is_partial() && held.summands == 1) {
      e.bits = reference_.exact(s);
      if (e.bits == nullptr) e.why = "the unsharded model has no such value";
    } else {
      e.bound = bound_of(s);
      if (!e.bound) e.why = "the model has no such value";
      // What is rounded to a format before it is brought to other units.
      if (e.bound && held.summands == 1 && !held.units.empty())
        e.bound = e.bound->rounded(format_of(s));
      // As the file has them, with fewer digits.
      if (e.bound && held.coarser_than(e.format)) {
        e.format = Format::f64;
        const Coarse coarse = coarse_of(held.encoding);
        for (std::size_t i = 0; i < e.bound->size(); ++i)
          e.bound->radius[i] +=
              coarse.unit * (std::abs(e.bound->center[i]) + e.bound->radius[i]) + coarse.least;
      }
    }
    return e;
  }

  void hold(const Held& held, const Expected& expected, Row& row) {
    const Masked masked(held, claim_, reference_);
    std::set<int> wrong;
    std::vector<bool> wrong_places(at(element_count(held.subject.shape)), false);
    bounds::Slack slack;
    double reach = 0.0, squares = 0.0, most = -1.0;
    std::int64_t numbers = 0;
    each_number(held, [&](double v, const std::vector<int>& chips, std::int64_t place,
                          double size) {
      if (masked(place)) return;
      row.elements += std::ssize(chips);
      ++numbers;
      double low = 0.0, high = 0.0;
      bool right = false;
      if (expected.bits != nullptr) {
        low = high = static_cast<double>(expected.bits->data[at(place)]);
        right = same_bits(v, low);
      } else {
        Interval number = expected.bound->at(at(place));
        const double unit = held.unit(place);
        if (unit != 1.0) number = in_units(number, unit);
        if (held.summands > 1) number = with_rounded_summands(held, number, size);
        const Interval ends = bounds::values(number, expected.format);
        low = ends.low;
        high = ends.high;
        right = bounds::holds(ends, expected.format, v);
        if (right) slack.see(number, expected.format, v);
        reach = std::max(reach, 0.5 * (number.high - number.low));
      }
      squares += v * v;
      if (right) return;
      row.wrong += std::ssize(chips);
      wrong.insert(chips.begin(), chips.end());
      wrong_places[at(place)] = true;
      const WrongElement element{chips[0], global_index(held.subject.shape, place), low, high, v};
      if (!row.first) row.first = element;
      double distance = std::max(low - v, v - high);
      if (!(distance >= 0)) distance = v == 0.0 && low == 0.0 ? 0.0 : HUGE_VAL;  // NaN
      if (distance > most) most = distance, row.worst = element;
    });
    row.wrong_chips = static_cast<int>(wrong.size());
    row.box = wrong_box(held.subject.shape, wrong_places, held.padding);
    row.slack = slack.slack();
    const double mean =
        std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(numbers, 1)));
    row.reach = reach > 0 ? reach / mean : 0.0;
    row.fit = row.wrong > 0                 ? Fit::different
              : expected.bits != nullptr    ? Fit::equal
              : bounds::narrow(reach, mean) ? Fit::within
                                            : Fit::loose;
    if (numbers == 0) {
      row.fit = Fit::not_judged;
      row.why = kNothing;
    }
    row.copies_differ = !held.layout.is_partial() && copies_differ(held);
  }

  /// A number of the model in the writer's units, whose one more operation is an error of its own.
  Interval in_units(const Interval& number, double unit) const {
    const double center = 0.5 * (number.low + number.high) / unit;
    const double radius = 0.5 * (number.high - number.low) / std::abs(unit) +
                          2 * (claim_.declared.operations.unit + 0x1p-51) * std::abs(center);
    return bounds::around(center, radius);
  }

  /// Each summand was rounded when it was stored, and may be larger than the sum.
  Interval with_rounded_summands(const Held& held, const Interval& number, double size) const {
    const Format format = format_of(held.subject);
    const double count = static_cast<double>(held.summands) *
                         static_cast<double>(held.torus.size(held.layout.partial()));
    const double radius = 0.5 * (number.high - number.low) + bounds::unit_of(format) * size +
                          count * bounds::least_of(format);
    return bounds::around(0.5 * (number.low + number.high), radius);
  }

  static bool copies_differ(const Held& held) {
    std::vector<double> first(at(element_count(held.subject.shape)));
    std::vector<bool> seen(first.size(), false);
    for (std::size_t chip = 0; chip < held.shards.size(); ++chip)
      for (std::size_t i = 0; i < held.shards[chip].size(); ++i) {
        const std::int64_t place = held.places[chip][i];
        if (place == Held::kNone) continue;
        if (seen[at(place)] && !same_bits(first[at(place)], held.shards[chip][i])) return true;
        first[at(place)] = held.shards[chip][i];
        seen[at(place)] = true;
      }
    return false;
  }

  double drift(const Held& held) {
    const Subject& s = held.subject;
    if (s.meaning == Meaning::positions) return -1.0;
    if (s.meaning != Meaning::weight && !reference_.on_same_ids(s.pass)) return -1.0;
    const Tensor* const exact = reference_.exact(s);
    if (exact == nullptr) return -1.0;
    const Masked masked(held, claim_, reference_);
    double most = 0.0, squares = 0.0;
    each_number(held, [&](double v, const std::vector<int>&, std::int64_t place, double) {
      if (masked(place)) return;
      most = std::max(most,
                      std::abs(v * held.unit(place) - static_cast<double>(exact->data[at(place)])));
    });
    double numbers = 0.0;
    for (std::size_t i = 0; i < exact->data.size(); ++i) {
      if (held.padded(static_cast<std::int64_t>(i))) continue;
      const auto v = static_cast<double>(exact->data[i]);
      squares += v * v;
      ++numbers;
    }
    const double mean = std::sqrt(squares / std::max(numbers, 1.0));
    return mean > 0 ? most / mean : 0.0;
  }

  /// The ids of a decode step are the tokens of the pass before it.
  Row ids(const Held& held, Row row) {
    const Subject& s = held.subject;
    const PassPlan& pass = reference_.replay().pass(s.pass);
    row.why = "an input";
    if (pass.phase != Phase::decode && claim_.ids_are_given) {
      const IntTensor& given = reference_.case_ids(s.pass);
      Tensor expected(given.shape);
      std::copy(given.data.begin(), given.data.end(), expected.data.begin());
      row.why.clear();
      hold(held, {&expected, std::nullopt, Format::f32, ""}, row);
      return row;
    }
    if (pass.phase != Phase::decode) return row;
    const Tensor expected = tokens_before(pass, row.why);
    if (row.why.empty()) hold(held, {&expected, std::nullopt, Format::f32, ""}, row);
    return row;
  }

  /// Of each row the token that the trace has of the last pass before that sampled it; or why there
  /// is none.
  Tensor tokens_before(const PassPlan& pass, std::string& why) const {
    Tensor tokens(Shape{pass.batch(), pass.L});
    why.clear();
    for (const PassPlan& before : reference_.replay().passes()) {
      if (before.name == pass.name) break;
      if (!before.sample) continue;
      const auto found = tokens_.find(before.name);
      const RowsOfPass rows(before);
      for (std::size_t b = 0; b < rows.samples.size(); ++b)
        if (rows.samples[b] && found != tokens_.end()) tokens.data[b] = found->second.data[b];
      // A later pass that samples all of these rows makes up for it.
      const bool all =
          std::find(rows.samples.begin(), rows.samples.end(), false) == rows.samples.end();
      if (all) why.clear();
      if (found == tokens_.end())
        why = fmt::format("an input: the trace has no {}.token", before.name);
    }
    return tokens;
  }

  /// Whether each token may be the largest logit, the first of equals; of indices likewise in their
  /// block.
  Row chosen(const Held& held, Row row) {
    const Subject& s = held.subject;
    const std::size_t blocks = s.meaning == Meaning::token ? 1 : at(s.shape[1]);
    const Choice choice(reference_.replay().value(s.pass + ".logits"), blocks, at(s.block));
    std::set<int> wrong;
    row.fit = Fit::not_judged;
    row.why = kNothing;
    each_number(held, [&](double v, const std::vector<int>& chips, std::int64_t place, double) {
      row.elements += std::ssize(chips);
      if (row.fit == Fit::not_judged) row.fit = Fit::within;
      row.why.clear();
      switch (choice.of(at(place), v)) {
        case Choice::May::alone:
          return;
        case Choice::May::among_others:  // what lies inside proves little
          row.fit = Fit::loose;
          return;
        case Choice::May::not_be:
          break;
      }
      row.wrong += std::ssize(chips);
      wrong.insert(chips.begin(), chips.end());
      const auto best = static_cast<double>(choice.best(at(place)));
      const WrongElement e{chips[0], global_index(s.shape, place), best, best, v};
      if (!row.first) row.first = row.worst = e;
    });
    if (row.wrong > 0) row.fit = Fit::different;
    row.wrong_chips = static_cast<int>(wrong.size());
    return row;
  }
  /// Random sampling says of the f32 logits which token there is, bit for bit. Logits that are
  /// known less well than that say nothing.
  Row drawn(const Held& held, Row row) {
    const Subject& s = held.subject;
    const Draws* const draws = reference_.draws(s.pass);
    const bool token = s.meaning == Meaning::token;
    if (draws == nullptr || (!token && !has_drawing(*draws, s.name))) {
      row.why = "the model has no such value";
      return row;
    }
    const std::string id = s.pass + ".logits";
    const Carried& carried = reference_.replay().value(id);
    Tensor logits(carried.shape);
    for (std::size_t i = 0; i < carried.size(); ++i) {
      logits.data[i] = static_cast<float>(carried.center[i]);
      if (carried.radius[i] == 0 && static_cast<double>(logits.data[i]) == carried.center[i])
        continue;
      row.why = fmt::format("random sampling is of f32 logits, and {}",
                            reference_.has(id) ? "the trace has others" : "the trace has none");
      return row;
    }
    Tensor expected(s.shape);
    if (token) {
      const IntTensor tokens = oracle::sampled(logits, *draws);
      std::copy(tokens.data.begin(), tokens.data.end(), expected.data.begin());
    } else {
      const std::size_t C = s.dims.find('C');
      const ExpectedBits bits =
          sampling_value(s.name, logits, *draws, C == s.dims.npos ? 1 : s.shape[C],
                         C == s.dims.npos ? 0 : s.shape[C] * s.block);
      for (std::size_t i = 0; i < expected.data.size(); ++i)
        expected.data[i] =
            bits.integer ? static_cast<float>(bits.bits[i]) : std::bit_cast<float>(bits.bits[i]);
    }
    hold(held, {&expected, std::nullopt, Format::f32, ""}, row);
    return row;
  }
  void keep_token(const Held& held) {
    const auto whole = assembled_value(held);
    if (!whole) return;
    Tensor& kept = tokens_[held.subject.pass] = Tensor(whole->shape);
    for (std::size_t i = 0; i < kept.data.size(); ++i)
      kept.data[i] = static_cast<float>(whole->center[i]);
  }

  const Claim& claim_;
  Reference& reference_;
  std::map<std::string, Tensor> tokens_;  // of the trace, by pass
};

}  // namespace

std::string_view to_string(Fit fit) {
  switch (fit) {
    case Fit::equal:
      return "equal";
    case Fit::within:
      return "within";
    case Fit::loose:
      return "loose";
    case Fit::different:
      return "different";
    case Fit::not_judged:
      break;
  }
  return "not judged";
}

std::int64_t Verdict::count(Fit fit) const {
  return std::count_if(rows.begin(), rows.end(), [&](const Row& row) { return row.fit == fit; });
}

bool Verdict::proves() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.of_run && !row.incomplete && (row.fit == Fit::equal || row.fit == Fit::within);
  });
}

int Verdict::exit_code() const { return proves() && count(Fit::different) == 0 ? 0 : 1; }

Verdict judge(const Values& values, const Claim& claim, Reference& reference) {
  const Passes passes = claim.given.passes();
  std::vector<std::size_t> order(values.held.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::int64_t> place;
  for (const Held& held : values.held)
    place.push_back(order_of(held.subject, claim.given.model, passes));
  stable_sort(order, [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  Verdict verdict;
  verdict.unknown = values.unknown;
  verdict.copies = values.copies;
  Judging judging(claim, reference);
  std::set<std::string> seen;
  for (const std::size_t i : order) {
    const Held& held = values.held[i];
    verdict.rows.push_back(judging.judge(held, i));
    const Row& row = verdict.rows.back();
    const Meaning meaning = held.subject.meaning;
    const bool checkpoint = meaning == Meaning::checkpoint || meaning == Meaning::token;
    // Of final_norm a layer needs no other positions.
    const bool all = !held.subject.last || value_row(held.subject.name)->last_rows;
    if (row.fit != Fit::not_judged && checkpoint && all && held.complete())
      seen.insert(held.subject.id);
    if (row.fit == Fit::different && !row.follows && !verdict.first)
      verdict.first = verdict.rows.size() - 1;
  }
  for (std::size_t i = 0; i < verdict.rows.size() && !verdict.first; ++i)
    if (verdict.rows[i].fit == Fit::different) verdict.first = i;
  verdict.compared = std::ssize(seen);
  verdict.whole = count_checkpoints(claim.given.model, passes);
  return verdict;
}

}  // namespace shardproof::candidate
