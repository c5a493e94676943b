#include "golden/trace/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "golden/bounds/number/emulation.h"
#include "golden/bounds/number/sum_bounds.h"
#include "golden/compare/block_map.h"
#include "golden/compare/reach_meter.h"
#include "golden/compare/row_padding.h"
#include "golden/judge/sampling_value.h"
#include "golden/trace/reference/masked.h"
#include "golden/trace/value/choice.h"
#include "golden/trace/value/coarse.h"
#include "golden/trace/value/detail/each_number.h"
#include "golden/trace/value/last_rows.h"
#include "golden/trace/verdict/alone.h"
#include "golden/trace/verdict/measure.h"
#include "golden/trace/verdict/not_shown.h"
#include "golden/trace/verdict/sign_tests.h"
#include "oracle/model/detail/sampling.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"
#include "weights/model/registry.h"

namespace shardproof::candidate {
namespace {

using bounds::Carried;
using bounds::Format;
using bounds::Number;

constexpr const char* kNothing = "it holds no number of the model's";

class Judging {
 public:
  Judging(const Claim& claim, Reference& reference) : claim_(claim), reference_(reference) {}

  Row judge(const DumpedValue& dumped, std::size_t number) {
    Row row;
    row.name = dumped.name;
    row.title = dumped.subject.title();
    row.dumped = number;
    row.chips = dumped.torus.chips();
    const Meaning meaning = dumped.subject.meaning;
    row.of_run =
        meaning != Meaning::weight && meaning != Meaning::ids && meaning != Meaning::positions;
    row.weight = meaning == Meaning::weight;
    row.incomplete = !dumped.complete();
    if (meaning == Meaning::token) keep_token(dumped);
    if (!dumped.why_not.empty()) {
      row.why = dumped.why_not;
      return row;
    }
    if (meaning == Meaning::ids) return ids(dumped, std::move(row));
    const bool random = claim_.given.sampling.sample == Sample::random;
    // Bits can be compared with the unsharded model's only if all tokens are known.
    const bool exact = dumped.exact && reference_.unknown(dumped.subject.pass).empty();
    if (!exact && (meaning == Meaning::drawing || (meaning == Meaning::token && random)))
      return drawn(dumped, std::move(row));
    if (!exact && (meaning == Meaning::token || meaning == Meaning::indices))
      return chosen(dumped, std::move(row));
    if (const auto parts = partial_sums(dumped)) return summands(dumped, *parts, std::move(row));
    const Expected expected = expectation(dumped);
    if (!expected.any()) {
      row.why = expected.why;
      return row;
    }
    const std::vector<Outlier> outliers = hold(dumped, expected, row);
    if (row.fit == Fit::different && expected.bits != nullptr) {
      // If the value follows from its own operands, the fault is in an earlier value.
      if (const auto bound = bound_of(dumped.subject)) {
        const Expected by_operands{.bound = bound, .format = format_of(dumped)};
        Row again;
        hold(dumped, by_operands, again);
        row.follows = again.fit != Fit::different;
      }
      return row;
    }
    if (row.fit != Fit::different) row.drift = drift(dumped);
    if (expected.bits == nullptr) explain(dumped, outliers, row);
    if (expected.bound && row.fit <= Fit::near) row.signs = signs_of(dumped, *expected.bound);
    return row;
  }

 private:
  std::optional<Carried> bound_of(const Subject& s) {
    bounds::Replay& replay = reference_.replay();
    if (s.last) {
      // If the trace has the whole value, its last positions must be these numbers.
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

  Format format_of(const DumpedValue& dumped) const {
    const bool rounded = !dumped.layout.is_partial() && dumped.summands == 1 &&
                         (dumped.units.empty() || without_gain(dumped));
    return rounded ? own_format(dumped) : Format::f64;
  }
  /// If the gain is folded into the next weight, the writer rounded x·r.
  bool without_gain(const DumpedValue& dumped) const {
    return claim_.gain_folded && bounds::formula_of(dumped.subject.name) == "norm" &&
           dumped.subject.meaning != Meaning::weight;
  }
  Format own_format(const DumpedValue& dumped) const {
    const Subject& s = dumped.subject;
    const bounds::Declared& declared = dumped.declared_or(claim_.declared);
    const ValueRow* const row = value_row(s.name);
    // An unstored cache is not rounded itself, but consists of stored values.
    const bool stored = s.meaning == Meaning::checkpoint ||
                        (s.meaning == Meaning::unstored && row != nullptr && row->cache);
    return stored ? bounds::format_of(s.name, claim_.given.model, declared) : declared.unstored();
  }

  Expected expectation(const DumpedValue& dumped) {
    Expected e;
    const Subject& s = dumped.subject;
    e.format = format_of(dumped);
    e.unknown = reference_.unknown(s.pass);
    if (s.meaning == Meaning::weight || s.meaning == Meaning::positions) {
      e.bits = reference_.exact(s);
    } else if (dumped.exact && !dumped.layout.is_partial() && dumped.summands == 1 &&
               e.unknown.empty()) {
      e.bits = reference_.exact(s);
      if (e.bits == nullptr) e.why = "the unsharded model has no such value";
    } else {
      e.bound = bound_of(s);
      if (!e.bound) e.why = "the model has no such value";
      if (e.bound && s.meaning != Meaning::candidates) {
        reference_.replay().make_exactly(true);
        e.exact = bound_of(s);
        reference_.replay().make_exactly(false);
      }
      // The writer rounds before converting to other units.
      if (e.bound && dumped.summands == 1 && !dumped.units.empty() && !without_gain(dumped))
        e.bound = e.bound->rounded(own_format(dumped));
      // Undeclared arithmetic: the weakest is assumed, so f64 numbers need only be near an f32.
      if (e.bound && !claim_.arithmetic_said && !dumped.declared && e.format == Format::f32 &&
          dumped.finer_than_f32()) {
        for (std::size_t i = 0; i < e.bound->size(); ++i)
          e.bound->widen(i, bounds::unit_of(Format::f32) *
                                    (std::abs(e.bound->center[i]) + e.bound->radius[i]) +
                                bounds::least_of(Format::f32));
        e.format = Format::f64;
      }
      if (e.bound) coarsen(dumped, *e.bound, e.format);
    }
    return e;
  }

  /// Widens a bound by the file's rounding, if its encoding has fewer digits.
  static void coarsen(const DumpedValue& dumped, Carried& bound, Format& format) {
    if (!dumped.coarser_than(format)) return;
    format = Format::f64;
    const Coarse coarse = coarse_of(dumped.encoding);
    for (std::size_t i = 0; i < bound.size(); ++i)
      bound.widen(i, coarse.unit * (std::abs(bound.center[i]) + bound.radius[i]) + coarse.least);
  }

  const bounds::Declared& declared(const Subject& s) {
    return reference_.replay().declared({s.pass, s.layer, s.name});
  }

  std::vector<Outlier> hold(const DumpedValue& dumped, const Expected& expected, Row& row) {
    const Masked masked(dumped, claim_, reference_);
    return measure(dumped, expected, masked, dumped.declared_or(claim_.declared),
                   own_format(dumped), row);
  }

  /// Adds to a row why the value is unlikely, its way of rounding, and which values would allow a
  /// better verdict.
  void explain(const DumpedValue& dumped, const std::vector<Outlier>& outliers, Row& row) {
    const Subject& s = dumped.subject;
    bounds::Replay& replay = reference_.replay();
    if (row.elements == 0) return;
    if (row.fit != Fit::different && !outliers.empty()) {
      row.extent.outside_likely = !explained(dumped, outliers, row);
      if (!row.extent.outside_likely)
        row.extent.likely = row.extent.worst;  // some exceed the likely bound
      row.fit = bounds::fit_of(row.extent);
      if (row.fit == Fit::unlikely) {
        const Outlier& o = outliers.front();
        const bounds::Interval in = o.allowed.likely_interval();
        row.first = row.worst =
            WrongElement{o.chip, global_index(s.shape, o.place), in.low, in.high, o.actual};
      }
    }
    if (s.meaning != Meaning::checkpoint || s.last) return;
    if (bounds::narrow_storage(declared(s).values) && row.fit != Fit::different) {
      const Masked masked(dumped, claim_, reference_);
      row.rounding = report_rounding(dumped, masked, format_of(dumped), replay.variants(s.id));
    }
    const bool wide = !(row.extent.worst < row.extent.scale) && row.extent.worst > 0;
    if (row.fit != Fit::not_judged && row.fit != Fit::loose && !(row.fit == Fit::near && wide))
      return;
    add_missing(s.id, row.needs);
    if (row.fit == Fit::not_judged)
      row.why = !row.needs.empty() ? "operands are missing"
                : std::isfinite(row.extent.worst)
                    ? "copies of an operand differ, or it is known too little"
                    : "an operand is not finite";
  }

  /// Runs the sign tests on f32 sums whose operands are all in the trace.
  std::vector<std::string> signs_of(const DumpedValue& dumped, const Carried& bound) {
    const Subject& s = dumped.subject;
    const ValueRow* const row = value_row(s.name);
    if (s.meaning != Meaning::checkpoint || s.last || row == nullptr || !row->acc ||
        !dumped.units.empty() || dumped.summands > 1 || dumped.layout.is_partial() ||
        format_of(dumped) != Format::f32)
      return {};
    for (const std::string& operand : reference_.replay().operands(s.id))
      if (!reference_.has(operand)) return {};
    const auto products = reference_.replay().products(s.id, 0);
    return products ? sign_tests(dumped, bound, products->size()) : std::vector<std::string>();
  }

  /// Adds the values that the trace lacks between this one and those that it has.
  void add_missing(const std::string& id, std::vector<std::string>& missing) {
    constexpr std::size_t kMost = 8;
    for (const std::string& operand : reference_.replay().operands(id)) {
      if (reference_.replay().dumped(operand) || missing.size() >= kMost) continue;
      if (std::find(missing.begin(), missing.end(), operand) != missing.end()) continue;
      missing.push_back(operand);
      add_missing(operand, missing);
    }
  }

  /// Returns whether elements that only the worst case allows are explained: by the residues of
  /// their rounded products (T5), or by an order of additions.
  bool explained(const DumpedValue& dumped, const std::vector<Outlier>& outliers, Row& row) {
    const Subject& s = dumped.subject;
    if (s.meaning != Meaning::checkpoint || s.last || declared(s).sums != Format::f32) return true;
    for (const Outlier& o : outliers) {
      const auto products = reference_.replay().products(s.id, at(o.place));
      // Only sums of known products can be unlikely.
      if (!products) return true;
      double value = 0.0, size = 0.0;
      for (const auto& [a, b] : *products) value += a * b, size += std::abs(a * b);
      const double audit =
          bounds::residue_audit(*products, 0.5 * (size + std::abs(value))) * (1 + 0x1p-20);
      Number allowed = o.allowed;
      allowed.likely = std::min(allowed.worst, allowed.likely + audit);
      const Format format = format_of(dumped);
      if (bounds::holds(bounds::values(allowed.likely_interval(), format), format, o.actual))
        continue;
      const auto way = bounds::explained_by(*products, o.actual - o.exact);
      if (!way) return false;
      if (!way->declaration.empty())
        row.why = "explained by " + way->words + ": declare " + way->declaration;
    }
    return true;
  }

  /// Returns what each chip's partial sum must be, if the trace has partial sums and the layouts of
  /// the operands determine each chip's products.
  std::optional<std::vector<Carried>> partial_sums(const DumpedValue& dumped) {
    const Subject& s = dumped.subject;
    if (dumped.exact || s.meaning != Meaning::raw || s.last || dumped.summands > 1)
      return std::nullopt;
    const Axes axes = significant(dumped.layout.partial(), dumped.torus);
    if (axes.empty() || !dumped.units.empty()) return std::nullopt;
    return reference_.replay().expected_partials(s.id, axes);
  }
  static Axes significant(const Axes& axes, const Torus& torus) {
    Axes of;
    for (const Axis a : axes)
      if (torus.size(a) > 1) of = of.with(a);
    return of.sorted();
  }

  /// Judges each partial sum by its own products.
  Row summands(const DumpedValue& dumped, const std::vector<Carried>& parts, Row row) {
    const Axes axes = significant(dumped.layout.partial(), dumped.torus);
    bool any = false;
    double squares = 0.0, numbers = 0.0;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      DumpedValue one = dumped;
      one.layout = dumped.layout.with_partial(Axes());
      for (int chip = 0; chip < dumped.torus.chips(); ++chip)
        if (dumped.torus.block(chip, axes) != static_cast<int>(part)) {
          one.shards[at(chip)].clear();
          one.places[at(chip)].clear();
        }
      Expected e;
      e.bound = parts[part];
      e.unknown = reference_.unknown(dumped.subject.pass);
      e.format = dumped.declared_or(claim_.declared).unstored();
      const bounds::Declared& by = declared(dumped.subject);
      if (bounds::narrow_storage(by.values)) may_round(*e.bound, by.values);
      if (by.wire_roundings > 0) may_round(*e.bound, by.wire);  // if sent to another chip
      coarsen(dumped, *e.bound, e.format);
      Row of = row;
      hold(one, e, of);
      if (of.elements == 0) continue;
      any = true;
      const auto count = static_cast<double>(of.elements);
      squares += of.extent.scale * of.extent.scale * count, numbers += count;
      add(of, row);
    }
    if (!any) {
      row.why = kNothing;
      return row;
    }
    row.extent.scale = std::sqrt(squares / numbers);
    row.fit = bounds::fit_of(row.extent);
    return row;
  }
  static void may_round(Carried& bound, Format format) {
    for (std::size_t i = 0; i < bound.size(); ++i)
      bound.set(i, bounds::rounded_if(bound.number(i), bounds::Rounds::some, format));
  }
  /// Merges the result of one partial sum into the row.
  static void add(const Row& part, Row& row) {
    bounds::Extent& e = row.extent;
    e.outside = e.outside || part.extent.outside;
    e.worst = bounds::farther(e.worst, part.extent.worst);
    e.likely = bounds::farther(e.likely, part.extent.likely);
    e.found = bounds::farther(e.found, part.extent.found);
    row.elements += part.elements;
    row.wrong += part.wrong;
    row.unequal += part.unequal;
    row.wrong_chips += part.wrong_chips;
    if (row.slack == 0 || (part.slack > 0 && part.slack < row.slack)) row.slack = part.slack;
    if (!row.first) row.first = part.first, row.worst = part.worst, row.box = part.box;
    row.copies_differ = row.copies_differ || part.copies_differ;
  }

  double drift(const DumpedValue& dumped) {
    const Subject& s = dumped.subject;
    if (s.meaning == Meaning::positions) return -1.0;
    if (s.meaning != Meaning::weight && !reference_.on_same_ids(s.pass)) return -1.0;
    const Tensor* const exact = reference_.exact(s);
    if (exact == nullptr) return -1.0;
    const Masked masked(dumped, claim_, reference_);
    double most = 0.0, squares = 0.0;
    each_number(dumped, [&](double v, const std::vector<int>&, std::int64_t place, double) {
      if (masked(place)) return;
      most = std::max(
          most, std::abs(v * dumped.unit(place) - static_cast<double>(exact->data[at(place)])));
    });
    double numbers = 0.0;
    for (std::size_t i = 0; i < exact->data.size(); ++i) {
      if (dumped.padded(static_cast<std::int64_t>(i))) continue;
      const auto v = static_cast<double>(exact->data[i]);
      squares += v * v;
      ++numbers;
    }
    const double mean = std::sqrt(squares / std::max(numbers, 1.0));
    return mean > 0 ? most / mean : 0.0;
  }

  /// The ids of a decode step must be the tokens of the preceding pass.
  Row ids(const DumpedValue& dumped, Row row) {
    const Subject& s = dumped.subject;
    const PassPlan& pass = reference_.replay().pass(s.pass);
    row.why = "an input";
    if (const auto bad = reference_.no_id(s.pass)) row.why = fmt::format("{} is no token id", *bad);
    if (pass.phase != Phase::decode && claim_.ids_are_given) {
      const IntTensor& given = reference_.case_ids(s.pass);
      Tensor expected(given.shape);
      std::copy(given.data.begin(), given.data.end(), expected.data.begin());
      row.why.clear();
      hold(dumped, {.bits = &expected}, row);
      return row;
    }
    if (pass.phase != Phase::decode) return row;
    std::string why;
    const Tensor expected = tokens_before(pass, why);
    if (why.empty() || !reference_.no_id(s.pass)) row.why = why;
    if (row.why.empty()) hold(dumped, {.bits = &expected}, row);
    return row;
  }

  /// Returns, for each row, the trace's token from the last preceding pass that sampled it; sets
  /// `why` if one is missing.
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
      // A later pass that samples all rows makes earlier tokens irrelevant.
      const bool all =
          std::find(rows.samples.begin(), rows.samples.end(), false) == rows.samples.end();
      if (all) why.clear();
      if (found == tokens_.end())
        why = fmt::format("an input: the trace has no {}.token", before.name);
    }
    return tokens;
  }

  /// Judges whether each token may be the largest logit, the first of equals; indices likewise,
  /// within their block.
  Row chosen(const DumpedValue& dumped, Row row) {
    const Subject& s = dumped.subject;
    const std::size_t blocks = s.meaning == Meaning::token ? 1 : at(s.shape[1]);
    const Choice choice(reference_.replay().value(s.pass + ".logits"), blocks, at(s.block));
    std::set<int> wrong;
    row.fit = Fit::not_judged;
    row.why = kNothing;
    each_number(dumped, [&](double v, const std::vector<int>& chips, std::int64_t place, double) {
      row.elements += std::ssize(chips);
      if (row.fit == Fit::not_judged) row.fit = Fit::within;
      row.why.clear();
      switch (choice.of(at(place), v)) {
        case ArgmaxFit::certain:
          return;
        case ArgmaxFit::ambiguous:  // several candidates: weak evidence
          row.fit = Fit::loose;
          return;
        case ArgmaxFit::impossible:
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
  /// Random sampling determines tokens from f32 logits, bit for bit; logits known less exactly
  /// determine nothing.
  Row drawn(const DumpedValue& dumped, Row row) {
    const Subject& s = dumped.subject;
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
    hold(dumped, {.bits = &expected}, row);
    return row;
  }
  void keep_token(const DumpedValue& dumped) {
    const auto whole = assembled_value(dumped);
    if (!whole) return;
    Tensor& kept = tokens_[dumped.subject.pass] = Tensor(whole->shape);
    for (std::size_t i = 0; i < kept.data.size(); ++i)
      kept.data[i] = static_cast<float>(whole->center[i]);
  }

  const Claim& claim_;
  Reference& reference_;
  std::map<std::string, Tensor> tokens_;  // tokens of the trace, by pass
};

}  // namespace

std::int64_t Verdict::count(Fit fit) const {
  return std::count_if(rows.begin(), rows.end(), [&](const Row& row) { return row.fit == fit; });
}

bool Verdict::proves() const {
  // A trace of weights alone is judged by its weights.
  const bool of_run = std::any_of(rows.begin(), rows.end(), [](const Row& r) { return r.of_run; });
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return (of_run ? row.of_run : row.weight) && !row.incomplete && row.fit <= Fit::near;
  });
}

std::optional<std::size_t> Verdict::first_from(Fit fit) const {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].fit >= fit && rows[i].fit != Fit::not_judged) return i;
  return std::nullopt;
}

bool Verdict::lacks_operands() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.fit == Fit::not_judged && !row.needs.empty() &&
           (row.evidence || row.title.ends_with(".out"));
  });
}

int Verdict::exit_code(Fit fail_on) const {
  return proves() && misfits == 0 && !lacks_operands() && !first_from(fail_on) ? 0 : 1;
}

namespace {

bool diverges(const Row& row) { return row.fit == Fit::different || row.fit == Fit::unlikely; }

}  // namespace

Verdict judge(const Values& values, const Claim& claim, Reference& reference) {
  const Passes passes = claim.given.passes();
  std::vector<std::size_t> order(values.dumped.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::int64_t> place;
  for (const DumpedValue& dumped : values.dumped)
    place.push_back(order_of(dumped.subject, claim.given.model, passes));
  stable_sort(order, [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  Verdict verdict;
  verdict.unknown = values.unknown;
  verdict.copies = values.copies;
  Judging judging(claim, reference);
  for (const std::size_t i : order) verdict.rows.push_back(judging.judge(values.dumped[i], i));
  weigh_alone(values, claim, reference, verdict.rows);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < verdict.rows.size(); ++i) {
    const Row& row = verdict.rows[i];
    const DumpedValue& dumped = values.dumped[row.dumped];
    const Meaning meaning = dumped.subject.meaning;
    const bool checkpoint = (meaning == Meaning::checkpoint &&
                             !bounds::is_block_term(dumped.subject.name, claim.given.model)) ||
                            meaning == Meaning::token;
    // For final_norm the last positions are all that the model has.
    const bool all =
        (!dumped.subject.last || value_row(dumped.subject.name)->last_rows) && row.unknown == 0;
    const bool of_no_ids = meaning == Meaning::ids && row.fit == Fit::not_judged &&
                           reference.no_id(dumped.subject.pass).has_value();
    verdict.misfits += dumped.misfit || of_no_ids ? 1 : 0;
    if (row.fit != Fit::not_judged && checkpoint && all && dumped.complete())
      seen.insert(dumped.subject.id);
    if (diverges(row) && !row.follows && !verdict.first) verdict.first = i;
  }
  for (std::size_t i = 0; i < verdict.rows.size() && !verdict.first; ++i)
    if (diverges(verdict.rows[i])) verdict.first = i;
  verdict.compared = std::ssize(seen);
  verdict.whole = count_checkpoints(claim.given.model, passes);
  verdict.not_shown = not_shown(claim, values, reference.weights());
  return verdict;
}

}  // namespace shardproof::candidate
