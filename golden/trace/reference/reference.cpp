#include "golden/trace/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "golden/bounds/text/text_replay.h"
#include "golden/compare/case_padding.h"
#include "golden/judge/expected.h"
#include "golden/judge/sampling_value.h"
#include "golden/trace/value/coarse.h"
#include "golden/trace/value/detail/each_number.h"
#include "golden/trace/value/last_rows.h"
#include "oracle/graph/answer.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"
#include "weights/model/registry.h"
#include "weights/text/block_terms.h"

namespace shardproof::dump {
namespace {

/// Returns whether the file has values of the pass's layers, besides caches of later inputs.
bool has_layers(const Values& values, const std::string& pass, const ModelRows* rows) {
  return std::any_of(values.dumped.begin(), values.dumped.end(), [&](const DumpedValue& dumped) {
    const ValueRow* const row = value_row(dumped.subject.name, rows);
    return dumped.subject.pass == pass && row != nullptr && row->per_layer &&
           dumped.name.starts_with(pass + ".");
  });
}

float as_float(std::uint32_t bits, bool integer) {
  return integer ? static_cast<float>(bits) : std::bit_cast<float>(bits);
}

/// Returns how many numbers of the trace add up to one number of the value.
std::int64_t parts_of(const DumpedValue& dumped) {
  return std::int64_t{dumped.terms} * dumped.torus.size(dumped.layout.partial());
}

/// Returns the sum of the parts' magnitudes, by element.
std::vector<double> sizes_of_parts(const DumpedValue& dumped) {
  std::vector<double> sizes(at(element_count(dumped.subject.shape)), 0.0);
  each_number(dumped, [&](double, const std::vector<int>&, std::int64_t place, double size) {
    sizes[at(place)] = std::max(sizes[at(place)], size * std::abs(dumped.unit(place)));
  });
  return sizes;
}

}  // namespace

Tensor drawing(const Subject& s, const Tensor& logits, const Draws& draws) {
  const std::int64_t blocks = s.of_blocks() ? s.shape[s.dims.find('C')] : 1;
  const ExpectedBits drawn =
      sampling_value(s.name, logits, draws, blocks, s.of_blocks() ? blocks * s.block : 0);
  Tensor value(s.shape);
  for (std::size_t i = 0; i < value.data.size(); ++i)
    value.data[i] = as_float(drawn.bits[i], drawn.integer);
  return value;
}

Reference::Reference(const Values& values, const Claim& claim, Weights weights)
    : claim_(claim),
      passes_(claim.source_case.passes()),
      weights_(std::move(weights)),
      ids_(values, claim, passes_) {
  Numerics numerics = claim_.source_case.numerics;
  numerics.regime = Regime::exact;
  numerics.schedule = Schedule::group;
  numerics.acc = NumberFormat::f32;
  const bool of_keys = claim_.source_case.model.rows == nullptr;
  answer_ = (of_keys ? oracle::run : oracle::graph::answer)(
      weights_, {numerics, ids_.prompt(), passes_, claim_.source_case.sampling,
                 claim_.source_case.seed, claim_.rows, machine_threads()});
  ids_.decode(values, answer_);
  if (!of_keys) lines_ = std::make_unique<const bounds::TextLines>(claim_.source_case.model);
  fill_dump(values);
  if (of_keys)
    replay_ =
        std::make_unique<bounds::Replay>(weights_, passes_, ids_.all(), dump_, claim_.declared);
  else
    replay_ =
        std::make_unique<bounds::TextReplay>(weights_, passes_, ids_.all(), dump_, claim_.declared);
  replay_->use(threads_);
  declare(values);
  lay_out(values);
  fill_last_rows(values);
}

/// If a value has several arrays, the first stored one declares its arithmetic; if none does, the
/// first of its raw sums.
void Reference::declare(const Values& values) {
  // If ids are unknown, a trace that claims bits is judged by bounds: f32 values of the exact
  // regime lie within the bounds of f32 arithmetic.
  if (claim_.exact && !unknown(replay_->passes().back().name).empty()) {
    bounds::DeclaredArithmetic f32 = claim_.declared;
    f32.sums = NumberFormat::f32;
    f32.operations = bounds::Arithmetic::of(NumberFormat::f32);
    replay_->assume(f32);
  }
  std::set<std::string> declared;
  for (const bool stored : {true, false})
    for (const DumpedValue& dumped : values.dumped)
      if (dumped.declared && stored == (dumped.subject.meaning == Meaning::checkpoint) &&
          dumped.subject.meaning != Meaning::weight && declared.insert(dumped.subject.id).second)
        replay_->declare(dumped.subject.id, *dumped.declared);
  for (const PassPlan& pass : replay_->passes()) {
    const std::vector<std::int32_t>& own = ids(pass.name).data;
    const bool none = std::all_of(own.begin(), own.end(),
                                  [](auto id) { return id == bounds::Replay::kUnknownId; });
    if (none && !has_layers(values, pass.name, claim_.source_case.model.rows.get()))
      replay_->forget(pass.name);
  }
}

/// Declares nothing for a value whose arrays have different layouts, or whose chips do not hold
/// blocks of the model's value: the next step may read any of them.
void Reference::lay_out(const Values& values) {
  std::map<std::string, Layout> layouts;
  std::set<std::string> several;
  for (const Values::Laid& laid : values.laid) {
    const Subject& s = laid.subject;
    if (s.meaning != Meaning::checkpoint || s.last || laid.layout.is_partial()) continue;
    if (s.dims != value_row(s.name, claim_.source_case.model.rows.get())->dims)
      continue;  // laid out by the prefixes' rows
    Layout& first = layouts.emplace(s.id, laid.layout).first->second;
    // Of a text, which asks for owners of blocks alone, the layout before axes are gathered has
    // them all.
    const auto gathered = [&](const Layout& some, const Layout& all) {
      return std::all_of(s.dims.begin(), s.dims.end(), [&](char dim) {
        return all.axes(dim) == some.axes(dim) ||
               (lines_ != nullptr && all.axes(dim).starts_with(some.axes(dim)));
      });
    };
    if (gathered(first, laid.layout)) first = laid.layout;
    const bool alike = gathered(laid.layout, first);
    if (!alike || !laid.plain) several.insert(s.id);
  }
  for (const std::string& id : several) layouts.erase(id);
  replay_->lay_out(layouts, claim_.source_case.torus);
}

/// Returns the value as later steps of the writer read it; nullopt if an element is missing.
std::optional<bounds::IntervalTensor> Reference::as_operand(const DumpedValue& dumped) const {
  auto whole = assembled_value(dumped);
  if (!whole) return std::nullopt;
  // Later steps read the writer's own number, not the one that the file rounds it to.
  if (dumped.coarser_than(bounds::format_of(dumped.subject.name, claim_.source_case.model,
                                            dumped.declared_or(claim_.declared)))) {
    const Coarse coarse = coarse_of(dumped.encoding);
    const std::string& name = dumped.subject.name;
    const bool whole_numbers = lines_ != nullptr && (lines_->marks(name) || lines_->integral(name));
    for (std::size_t i = 0; i < whole->size(); ++i) {
      const double by = coarse.unit * 2 * std::abs(whole->center[i]) + 2 * coarse.least;
      // Of whole numbers, one alone is less than 1 away.
      if (!whole_numbers || by >= 1) whole->widen(i, by);
    }
  }
  return parts_of(dumped) > 1 ? added_up(dumped, std::move(*whole)) : whole;
}

/// Chooses among several arrays of one value: a given one; else the first, before it is moved;
/// partial sums only if there is nothing else.
void Reference::fill_dump(const Values& values) {
  const auto turn = [](const DumpedValue& dumped) {
    return dumped.given ? 0 : parts_of(dumped) > 1 ? 2 : 1;
  };
  for (const int now : {0, 1, 2})
    for (const DumpedValue& dumped : values.dumped) {
      const Subject& s = dumped.subject;
      if ((s.meaning != Meaning::checkpoint && s.meaning != Meaning::probs) || s.last) continue;
      if (turn(dumped) != now || dump_.contains(s.id)) continue;
      if (auto whole = as_operand(dumped)) dump_.emplace(s.id, std::move(*whole));
    }
}

/// If the trace has only the last positions of a value, later values are derived from these, and
/// from derived numbers at the other positions.
void Reference::fill_last_rows(const Values& values) {
  std::vector<const DumpedValue*> last;
  for (const DumpedValue& dumped : values.dumped)
    if (dumped.subject.last && dumped.subject.meaning == Meaning::checkpoint)
      last.push_back(&dumped);
  stable_sort(last, [&](const DumpedValue* a, const DumpedValue* b) {
    return order_of(a->subject, claim_.source_case.model, passes_) <
           order_of(b->subject, claim_.source_case.model, passes_);
  });
  for (const DumpedValue* const dumped : last) {
    const std::string& id = dumped->subject.id;
    if (dump_.contains(id)) continue;
    const auto rows = as_operand(*dumped);
    if (!rows) continue;
    bounds::IntervalTensor all = replay_->value(id);
    std::size_t i = 0;
    for (const std::size_t element :
         last_elements(all.shape, replay_->pass(dumped->subject.pass))) {
      all.set(element, rows->number(i++));
    }
    replay_->assume(id, all);
    dump_.emplace(id, std::move(all));
    in_part_.insert(id);
  }
}

/// Returns the sum of a value's parts as the writer has it, in any order of additions.
bounds::IntervalTensor Reference::added_up(const DumpedValue& dumped,
                                           bounds::IntervalTensor whole) const {
  const std::int64_t parts = parts_of(dumped);
  bounds::DeclaredArithmetic declared = dumped.declared_or(claim_.declared);
  if (bounds::is_matrix_product(dumped.subject.name)) declared = declared.of_matrix_product();
  // 16-bit values are sent as such, whether declared or not.
  if (declared.wire_roundings == 0 && bounds::narrow_storage(declared.values)) {
    declared.wire = declared.values;
    declared.wire_roundings = static_cast<int>(parts);
  }
  const double growth = declared.growth(parts - 1);
  const std::vector<double> sizes = sizes_of_parts(dumped);
  for (std::size_t i = 0; i < whole.size(); ++i)
    whole.widen(i,
                growth * sizes[i] + static_cast<double>(parts) * bounds::least_of(declared.sums));
  return whole.rounded(bounds::format_of(dumped.subject.name, claim_.source_case.model, declared));
}

/// Of a text's model those of each row's last token.
bounds::IntervalTensor Reference::sampled_logits(const std::string& pass) {
  const bounds::IntervalTensor& logits = replay_->value(pass + ".logits");
  return logits.shape.size() == 2 ? logits : last_rows(logits, replay_->pass(pass));
}

const Draws* Reference::draws(const std::string& pass) const {
  const auto at = answer_.draws.find(pass);
  return at == answer_.draws.end() ? nullptr : &at->second;
}

const Tensor* Reference::exact(const Subject& s) {
  if (!s.last) return whole_exact(s);
  const Tensor* const whole = whole_exact(s.whole());
  if (whole == nullptr) return nullptr;
  return &(made_[s.title()] = last_rows(*whole, replay_->pass(s.pass)));
}

const Tensor* Reference::whole_exact(const Subject& s) {
  if (is_block_term(s.name, claim_.source_case.model)) return nullptr;
  const auto in = [](const auto& map, const std::string& id) -> const Tensor* {
    const auto at = map.find(id);
    return at == map.end() ? nullptr : &at->second;
  };
  const auto as_floats = [&](const IntTensor& of) {
    Tensor& t = made_[s.id] = Tensor(of.shape);
    for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<float>(of.data[i]);
    return &t;
  };
  switch (s.meaning) {
    case Meaning::checkpoint:
      return in(answer_.checkpoints, s.id);
    case Meaning::raw:
      return value_row(s.name, claim_.source_case.model.rows.get())->contraction
                 ? &answer_.raw_of(s.id)
                 : nullptr;
    case Meaning::scaled:
      return answer_.scaled.contains(s.id) || answer_.with_scale.contains(s.id)
                 ? &answer_.scaled_of(s.id)
                 : nullptr;
    case Meaning::unstored:
      return &answer_.unstored_of(s.id);
    case Meaning::stat:
      return in(answer_.stats, s.id);
    case Meaning::weight:
      return (lent_ = weights_.at(s.id)).get();
    case Meaning::token:
      return answer_.tokens.contains(s.id) ? as_floats(answer_.tokens.at(s.id)) : nullptr;
    case Meaning::positions:
      return as_floats(answer_.inputs.at(s.id));
    case Meaning::drawing: {
      const Draws* const of = draws(s.pass);
      if (of == nullptr || !has_drawing(*of, s.name)) return nullptr;
      const Tensor& logits = answer_.checkpoints.at(s.pass + ".logits");
      return &(made_[s.title()] = drawing(
                   s, logits.shape.size() == 2 ? logits : last_rows(logits, replay_->pass(s.pass)),
                   *of));
    }
    case Meaning::candidates:
    case Meaning::indices: {
      const DimPadding padding = dim_padding(claim_.source_case);
      // Counts the blocks of padding, which the value lacks.
      const std::int64_t all = padding.placed('V', claim_.source_case.model.V) / s.block;
      const Expected blocks =
          expected_value(answer_, weights_, {s.pass, "", 0, claim_.source_case.model.rows.get()},
                         Role::parse("stat " + s.name), {s.shape[0], all}, padding);
      Tensor& t = made_[s.title()] = Tensor(s.shape);
      for (std::size_t i = 0; i < t.data.size(); ++i) {
        const std::uint32_t bits = blocks.bits[i / at(s.shape[1]) * at(all) + i % at(s.shape[1])];
        t.data[i] = as_float(bits, blocks.integer);
      }
      return &t;
    }
    case Meaning::joined: {
      const Expected whole = expected_value(
          answer_, weights_,
          {s.pass, "", static_cast<int>(s.layer), claim_.source_case.model.rows.get()},
          Role::parse("joined " + s.name), s.shape);
      Tensor& t = made_[s.title()] = Tensor(s.shape);
      for (std::size_t i = 0; i < t.data.size(); ++i)
        t.data[i] = as_float(whole.bits[i], whole.integer);
      return &t;
    }
    case Meaning::ids:
      return as_floats(ids(s.pass));
    case Meaning::probs:
      break;
  }
  const std::string before = s.id.substr(0, s.id.rfind('.') + 1);
  const Tensor* const e = in(answer_.checkpoints, before + "exp");
  const Tensor* const Z = in(answer_.checkpoints, before + "denom");
  if (e == nullptr || Z == nullptr) return nullptr;
  Tensor& t = made_[s.id] = Tensor(e->shape);
  const std::size_t M = t.data.size() / std::max<std::size_t>(Z->data.size(), 1);
  for (std::size_t i = 0; i < t.data.size(); ++i)
    t.data[i] =
        static_cast<float>(static_cast<double>(e->data[i]) / static_cast<double>(Z->data[i / M]));
  return &t;
}

}  // namespace shardproof::dump
