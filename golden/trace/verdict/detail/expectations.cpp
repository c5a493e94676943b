#include "golden/trace/verdict/detail/expectations.h"

#include <cmath>

#include "golden/compare/joined.h"
#include "golden/trace/value/choice.h"
#include "golden/trace/value/coarse.h"
#include "golden/trace/value/last_rows.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::dump {

using bounds::IntervalTensor;

namespace {

void widen(IntervalTensor& bound, const Coarse& by) {
  for (std::size_t i = 0; i < bound.size(); ++i)
    bound.widen(i, by.unit * (std::abs(bound.center[i]) + bound.radius[i]) + by.least);
}

}  // namespace

std::optional<IntervalTensor> Expectations::bound_of(const Subject& s) {
  bounds::Derivation& replay = reference_.replay();
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
    case Meaning::joined: {
      const PassPlan* const filled = replay.prefix_of(replay.pass(s.pass));
      if (filled == nullptr) return std::nullopt;
      const IntervalTensor& own = replay.value(s.id);
      const IntervalTensor& prefixes = replay.value(filled->name + s.id.substr(s.pass.size()));
      IntervalTensor whole(s.shape);
      std::size_t i = 0;
      for (const JoinedElement& from : joined_elements(s.dims, prefixes.shape, own.shape))
        whole.set(i++, (from.of_prefix ? prefixes : own).number(from.place));
      return whole;
    }
    case Meaning::candidates:
      return Choice(reference_.sampled_logits(s.pass), at(s.shape[1]), at(s.block)).largest();
    default:
      return std::nullopt;
  }
}

NumberFormat Expectations::format_of(const DumpedValue& dumped) const {
  const bool rounded = !dumped.layout.is_partial() && dumped.terms == 1 &&
                       (dumped.units.empty() || without_gain(dumped));
  return rounded ? own_format(dumped) : NumberFormat::f64;
}

/// If the gain is folded into the next weight, the writer rounded x·r.
bool Expectations::without_gain(const DumpedValue& dumped) const {
  const WeightRow* const gain = weight_row(dumped.subject.name);  // a norm has its gain's name
  return claim_.gain_folded && gain != nullptr && gain->kind == WeightKind::gain &&
         dumped.subject.meaning != Meaning::weight;
}

NumberFormat Expectations::own_format(const DumpedValue& dumped) const {
  const Subject& s = dumped.subject;
  const bounds::DeclaredArithmetic& declared = dumped.declared_or(claim_.declared);
  const ValueRow* const row = value_row(s.name, claim_.source_case.model.rows.get());
  // An unstored cache is not rounded itself, but consists of stored values.
  const bool stored = s.meaning == Meaning::checkpoint || s.meaning == Meaning::joined ||
                      (s.meaning == Meaning::unstored && row != nullptr && row->cache);
  return stored ? bounds::format_of(s.name, claim_.source_case.model, declared)
                : declared.unstored();
}

bool Expectations::marks(const DumpedValue& dumped) const {
  const Subject& s = dumped.subject;
  return s.meaning == Meaning::checkpoint && dumped.units.empty() &&
         reference_.lines() != nullptr && reference_.lines()->marks(s.name);
}

Expected Expectations::of(const DumpedValue& dumped) {
  Expected e;
  const Subject& s = dumped.subject;
  e.format = format_of(dumped);
  e.unknown = reference_.unknown(s.pass);
  if (s.meaning == Meaning::weight || s.meaning == Meaning::positions) {
    e.bits = reference_.exact(s);
  } else if (dumped.exact && !dumped.layout.is_partial() && dumped.terms == 1 &&
             e.unknown.empty()) {
    e.bits = reference_.exact(s);
    if (e.bits == nullptr) e.why = "the unsharded model has no such value";
  } else {
    e.bound = bound_of(s);
    if (!e.bound) e.why = "the model has no such value";
    e.marks = marks(dumped);
    const bool of_product = s.meaning == Meaning::checkpoint || s.meaning == Meaning::raw ||
                            s.meaning == Meaning::scaled;
    if (e.bound && s.meaning != Meaning::candidates &&
        !(of_product && reference_.replay().has_exact_centers(s.id))) {
      reference_.replay().make_exactly(true);
      e.exact = bound_of(s);
      reference_.replay().make_exactly(false);
    }
    // The writer rounds before converting to other units.
    if (e.bound && dumped.terms == 1 && !dumped.units.empty() && !without_gain(dumped))
      e.bound = e.bound->rounded(own_format(dumped));
    if (e.bound) fit_to_file(dumped, *e.bound, e.format);
  }
  return e;
}

void Expectations::fit_to_file(const DumpedValue& dumped, IntervalTensor& bound,
                               NumberFormat& format) const {
  // Undeclared arithmetic: the weakest is assumed, so f64 numbers need only be near an f32.
  if (!claim_.arithmetic_said && !dumped.declared && format == NumberFormat::f32 &&
      dumped.finer_than_f32()) {
    widen(bound, coarse_of(NumberFormat::f32));
    format = NumberFormat::f64;
  }
  if (!dumped.coarser_than(format)) return;
  format = NumberFormat::f64;
  widen(bound, coarse_of(dumped.encoding));
}

const bounds::DeclaredArithmetic& Expectations::declared(const Subject& s) {
  return reference_.replay().declared({s.pass, s.layer, s.name});
}

std::vector<Outlier> Expectations::hold(const DumpedValue& dumped, const Expected& expected,
                                        Row& row) {
  const MaskedSlots masked(dumped, claim_, reference_);
  return measure(dumped, expected, masked, dumped.declared_or(claim_.declared), own_format(dumped),
                 row);
}

}  // namespace shardproof::dump
