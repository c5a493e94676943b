#include "golden/trace/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "golden/bounds/number/emulation.h"
#include "golden/bounds/number/sum_bounds.h"
#include "golden/compare/case_padding.h"
#include "golden/compare/reach_meter.h"
#include "golden/trace/reference/masked_slots.h"
#include "golden/trace/value/detail/each_number.h"
#include "golden/trace/verdict/alone.h"
#include "golden/trace/verdict/detail/tokens_of_trace.h"
#include "golden/trace/verdict/not_shown.h"
#include "golden/trace/verdict/sign_tests.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"
#include "weights/model/registry.h"
#include "weights/text/block_terms.h"

namespace shardproof::dump {
namespace {

using bounds::IntervalTensor;
using bounds::Number;

class Judging {
 public:
  Judging(const Claim& claim, Reference& reference)
      : claim_(claim),
        reference_(reference),
        expectations_(claim, reference),
        tokens_(claim, reference, expectations_) {}

  Row judge(const DumpedValue& dumped, std::size_t number) {
    Row row;
    row.name = dumped.name;
    row.title = dumped.subject.title();
    row.dumped = number;
    row.chips = dumped.torus.chips();
    const Meaning meaning = dumped.subject.meaning;
    reference_.return_weight();  // that of an earlier row, before this one asks for another
    row.of_run =
        meaning != Meaning::weight && meaning != Meaning::ids && meaning != Meaning::positions;
    row.weight = meaning == Meaning::weight;
    row.incomplete = !dumped.complete();
    if (meaning == Meaning::token) tokens_.keep(dumped);
    if (!dumped.why_not.empty()) {
      row.why = dumped.why_not;
      return row;
    }
    if (meaning == Meaning::ids) return tokens_.ids(dumped, std::move(row));
    const bool random = claim_.source_case.sampling.sample == Sample::random;
    // Bits can be compared with the unsharded model's only if all tokens are known.
    const bool exact = dumped.exact && reference_.unknown(dumped.subject.pass).empty();
    if (!exact && (meaning == Meaning::drawing || (meaning == Meaning::token && random)))
      return tokens_.drawn(dumped, std::move(row));
    if (!exact && (meaning == Meaning::token || meaning == Meaning::indices))
      return tokens_.chosen(dumped, std::move(row));
    if (const auto parts = partial_sums(dumped)) {
      row = row_of_partial_sums(dumped, *parts, std::move(row));
      if (row.fit < Fit::different) row.drift = drift(dumped);
      return row;
    }
    const Expected expected = expectations_.of(dumped);
    if (!expected.any()) {
      row.why = expected.why;
      return row;
    }
    if (meaning == Meaning::weight && expected.bits != nullptr &&
        has_all_bits(dumped, *expected.bits, row)) {
      row.drift = 0.0;
      return row;
    }
    const std::vector<Outlier> outliers = expectations_.hold(dumped, expected, row);
    if (row.fit == Fit::different && expected.bits != nullptr) {
      // If the value follows from its own operands, the fault is in an earlier value.
      if (const auto bound = expectations_.bound_of(dumped.subject)) {
        const Expected by_operands{.bound = bound,
                                   .format = expectations_.format_of(dumped),
                                   .marks = expectations_.marks(dumped)};
        Row again;
        expectations_.hold(dumped, by_operands, again);
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
  /// Adds to a row why the value is unlikely, its way of rounding, and which values would allow a
  /// better verdict.
  void explain(const DumpedValue& dumped, const std::vector<Outlier>& outliers, Row& row) {
    const Subject& s = dumped.subject;
    bounds::Derivation& replay = reference_.replay();
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
        for (const Outlier& each : outliers) {
          const bounds::Interval likely = each.allowed.likely_interval();
          row.add_part(each.chip, std::max(likely.low - each.actual, each.actual - likely.high));
        }
      }
    }
    const bool of_text = claim_.source_case.model.rows != nullptr;
    if (s.meaning != Meaning::checkpoint || (s.last && !of_text)) return;
    if (!s.last && bounds::narrow_storage(expectations_.declared(s).values) &&
        row.fit != Fit::different) {
      const MaskedSlots masked(dumped, claim_, reference_);
      row.rounding =
          report_rounding(dumped, masked, expectations_.format_of(dumped), replay.variants(s.id));
    }
    const bool wide = !(row.extent.worst < row.extent.scale) && row.extent.worst > 0;
    if (row.fit != Fit::not_judged && row.fit != Fit::loose && !(row.fit == Fit::near && wide))
      return;
    add_missing(s.id, row.needs);
    row.unweighed = of_text && row.fit == Fit::not_judged && !row.needs.empty();
    if (row.fit == Fit::not_judged)
      row.why = !row.needs.empty() ? "operands are missing"
                : std::isfinite(row.extent.worst)
                    ? "copies of an operand differ, or it is known too little"
                    : "an operand is not finite";
  }

  /// Runs the sign tests on f32 sums whose operands are all in the trace.
  std::vector<std::string> signs_of(const DumpedValue& dumped, const IntervalTensor& bound) {
    const Subject& s = dumped.subject;
    const ValueRow* const row = value_row(s.name, claim_.source_case.model.rows.get());
    if (s.meaning != Meaning::checkpoint || s.last || row == nullptr || !row->acc ||
        !dumped.units.empty() || dumped.terms > 1 || dumped.layout.is_partial() ||
        expectations_.format_of(dumped) != NumberFormat::f32)
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
    if (s.meaning != Meaning::checkpoint || s.last ||
        expectations_.declared(s).sums != NumberFormat::f32)
      return true;
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
      const NumberFormat format = expectations_.format_of(dumped);
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
  std::optional<std::vector<IntervalTensor>> partial_sums(const DumpedValue& dumped) {
    const Subject& s = dumped.subject;
    const bool of_text = claim_.source_case.model.rows != nullptr;
    const bool raw = s.meaning == Meaning::raw && !of_text;
    if (!raw && s.meaning != Meaning::checkpoint) return std::nullopt;
    if (of_text && !dim_padding(claim_.source_case).none()) return std::nullopt;
    if (s.last || dumped.terms > 1) return std::nullopt;
    const Axes axes = significant(dumped.layout.partial(), dumped.torus);
    if (axes.empty() || !dumped.units.empty()) return std::nullopt;
    return reference_.replay().expected_partials(s.id, axes, raw);
  }
  static Axes significant(const Axes& axes, const Torus& torus) {
    Axes of;
    for (const Axis a : axes)
      if (torus.size(a) > 1) of = of.with(a);
    return of.sorted();
  }

  /// Judges each partial sum by its own products.
  Row row_of_partial_sums(const DumpedValue& dumped, const std::vector<IntervalTensor>& parts,
                          Row row) {
    const Axes axes = significant(dumped.layout.partial(), dumped.torus);
    bool any = false;
    double squares = 0.0, numbers = 0.0;
    const Row none = row;
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
      // The exact regime keeps partial sums in f64.
      e.format = dumped.exact ? NumberFormat::f64 : dumped.declared_or(claim_.declared).unstored();
      const bounds::DeclaredArithmetic& by = expectations_.declared(dumped.subject);
      if (!dumped.exact && bounds::narrow_storage(by.values)) may_round(*e.bound, by.values);
      if (by.wire_roundings > 0) may_round(*e.bound, by.wire);  // if sent to another chip
      expectations_.fit_to_file(dumped, *e.bound, e.format);
      Row of = none;
      expectations_.hold(one, e, of);
      if (of.elements == 0) continue;
      any = true;
      const auto count = static_cast<double>(of.elements);
      squares += of.extent.scale * of.extent.scale * count, numbers += count;
      add(of, row);
    }
    if (!any) {
      row.why = kNoNumbers;
      return row;
    }
    row.extent.scale = std::sqrt(squares / numbers);
    row.fit = bounds::fit_of(row.extent);
    return row;
  }
  static void may_round(IntervalTensor& bound, NumberFormat format) {
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
    row.wrong_parts.insert(part.wrong_parts.begin(), part.wrong_parts.end());
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
    const MaskedSlots masked(dumped, claim_, reference_);
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

  const Claim& claim_;
  Reference& reference_;
  Expectations expectations_;
  TokensOfTrace tokens_;
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
           (row.evidence || row.unweighed || row.title.ends_with(".out"));
  });
}

int Verdict::exit_code(Fit fail_on) const {
  return proves() && misfits == 0 && !lacks_operands() && !first_from(fail_on) ? 0 : 1;
}

namespace {

bool diverges(const Row& row) { return row.fit == Fit::different || row.fit == Fit::unlikely; }

}  // namespace

Verdict judge(const Values& values, const Claim& claim, Reference& reference) {
  const Passes passes = claim.source_case.passes();
  std::vector<std::size_t> order(values.dumped.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::int64_t> place;
  for (const DumpedValue& dumped : values.dumped)
    place.push_back(order_of(dumped.subject, claim.source_case.model, passes));
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
                             !is_block_term(dumped.subject.name, claim.source_case.model)) ||
                            meaning == Meaning::token;
    // For final_norm the last positions are all that the model has.
    const bool all =
        (!dumped.subject.last ||
         value_row(dumped.subject.name, claim.source_case.model.rows.get())->last_rows) &&
        row.unknown == 0;
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
  verdict.whole = count_checkpoints(claim.source_case.model, passes);
  verdict.not_shown = not_shown(claim, values, reference.weights(), reference.threads());
  return verdict;
}

}  // namespace shardproof::dump
