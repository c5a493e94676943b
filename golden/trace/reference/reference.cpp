#include "golden/trace/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "golden/compare/case_padding.h"
#include "golden/compare/row_padding.h"
#include "golden/judge/expected.h"
#include "golden/judge/sampling_value.h"
#include "golden/trace/value/coarse.h"
#include "golden/trace/value/detail/each_number.h"
#include "golden/trace/value/last_rows.h"
#include "weights/base/detail/index.h"
#include "weights/base/detail/stable_sort.h"
#include "weights/model/registry.h"
#include "weights/storage/generator.h"

namespace shardproof::candidate {
namespace {

bool is_id(double v, std::int64_t V) {
  return v >= 0 && v < static_cast<double>(V) && v == std::floor(v);
}

/// Returns a value as token ids; kUnknownId for numbers that are not a valid id.
std::optional<IntTensor> integers(const DumpedValue& dumped, std::int64_t V) {
  const auto whole = assembled_value(dumped);
  if (!whole) return std::nullopt;
  IntTensor ids(whole->shape);
  for (std::size_t i = 0; i < ids.data.size(); ++i)
    ids.data[i] = is_id(whole->center[i], V) ? static_cast<std::int32_t>(whole->center[i])
                                             : bounds::Replay::kUnknownId;
  return ids;
}

bool has_unknown(const IntTensor& ids) {
  return std::find(ids.data.begin(), ids.data.end(), bounds::Replay::kUnknownId) != ids.data.end();
}

const DumpedValue* find(const Values& values, Meaning meaning, const std::string& pass) {
  for (const DumpedValue& dumped : values.dumped)
    if (dumped.subject.meaning == meaning && dumped.subject.pass == pass && !dumped.misfit)
      return &dumped;
  return nullptr;
}

/// Returns whether the file has values of the pass's layers, besides caches of later inputs.
bool has_layers(const Values& values, const std::string& pass) {
  return std::any_of(values.dumped.begin(), values.dumped.end(), [&](const DumpedValue& dumped) {
    const ValueRow* const row = value_row(dumped.subject.name);
    return dumped.subject.pass == pass && row != nullptr && row->per_layer &&
           dumped.name.starts_with(pass + ".");
  });
}

/// Calls see(place in the ids [BL] of a pass, place in the prompt) for each token of a pass before
/// the decode, without padding; a prefix's token once per row of the prompt that shares it.
template <class See>
void each_token(const PassPlan& pass, const SharedPrefix& prefix, const IntTensor& prompt,
                See&& see) {
  const std::int64_t B = prompt.shape[0];
  const bool shared = pass.phase == Phase::prefix;
  std::int64_t row = 0;
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++row)
      for (std::int64_t b = 0; b < B; ++b) {
        if ((shared ? prefix.of_row(b, B) : b) != row) continue;
        for (std::int64_t l = 0; l < group.tokens; ++l)
          see(at(row * pass.L + l), at(b * prompt.shape[1] + group.start + l));
      }
}

/// Returns the ids [BL] of a pass before the decode, taken from a prompt; 0 at padding.
IntTensor ids_of(const PassPlan& pass, const SharedPrefix& prefix, const IntTensor& prompt) {
  IntTensor ids(Shape{pass.batch(), pass.L});
  each_token(pass, prefix, prompt, [&](std::size_t place, std::size_t in_prompt) {
    ids.data[place] = prompt.data[in_prompt];
  });
  return ids;
}

/// Returns how many numbers of the trace add up to one number of the value.
std::int64_t parts_of(const DumpedValue& dumped) {
  return std::int64_t{dumped.summands} * dumped.torus.size(dumped.layout.partial());
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

std::optional<bounds::Carried> assembled_value(const DumpedValue& dumped) {
  if (!dumped.complete()) return std::nullopt;
  bounds::Carried whole(dumped.subject.shape);
  std::vector<bool> seen(whole.size(), false);
  each_number(dumped, [&](double number, const std::vector<int>&, std::int64_t place, double) {
    const double v = number * dumped.unit(place);
    double& center = whole.center[at(place)];
    double& radius = whole.radius[at(place)];
    if (!seen[at(place)])
      center = v;
    else if (v != center)  // also for NaN
      radius = std::isnan(v) ? v : std::max(radius, std::abs(v - center));
    seen[at(place)] = true;
    if (dumped.unit(place) != 1.0) radius = std::max(radius, 0x1p-52 * std::abs(center));
  });
  whole.likely = whole.radius;
  return whole;
}

Reference::Reference(const Values& values, const Claim& claim, Weights weights)
    : claim_(claim), passes_(claim.given.passes()), weights_(std::move(weights)) {
  prompt_ = generate_prompt(claim.given.model, claim.given.seed, passes_.batch(), passes_.prompt(),
                            passes_.prefix());
  find_ids(values);
  fill_dump(values);
  replay_ = std::make_unique<bounds::Replay>(weights_, passes_, ids_, dump_, claim_.declared);
  declare(values);
  lay_out(values);
  fill_last_rows(values);
}

/// First the prompt, from the passes before the decode; then the unsharded model, whose tokens are
/// the ids of decode steps that the trace lacks.
void Reference::find_ids(const Values& values) {
  find_prompt(values);
  Numerics numerics = claim_.given.numerics;
  numerics.regime = Regime::exact;
  numerics.schedule = Schedule::group;
  numerics.acc = FloatType::f32;
  answer_ = oracle::run(weights_, {numerics, prompt_, passes_, claim_.given.sampling,
                                   claim_.given.seed, claim_.rows});
  find_decoded(values);
}

/// If a trace has ids of any pass, its prompt is not the case's: ids that it lacks are unknown.
void Reference::find_prompt(const Values& values) {
  const bool any =
      !claim_.ids_are_given &&
      std::any_of(values.dumped.begin(), values.dumped.end(),
                  [](const DumpedValue& dumped) { return dumped.subject.meaning == Meaning::ids; });
  for (std::int64_t i = 0; i < passes_.size(); ++i) {
    const PassPlan pass = passes_.at(i);
    if (pass.phase == Phase::decode) break;
    case_ids_[pass.name] = ids_of(pass, passes_.prefix(), prompt_);
    std::optional<IntTensor> own;
    if (const DumpedValue* const dumped = find(values, Meaning::ids, pass.name)) {
      own = integers(*dumped, claim_.given.model.V);
      note_no_id(*dumped, pass);
    }
    std::vector<std::size_t> unknown;
    each_token(pass, passes_.prefix(), prompt_, [&](std::size_t place, std::size_t in_prompt) {
      const std::int32_t id = own   ? own->data[place]
                              : any ? bounds::Replay::kUnknownId
                                    : prompt_.data[in_prompt];
      if (id == bounds::Replay::kUnknownId)
        unknown.push_back(place);
      else
        prompt_.data[in_prompt] = id;
    });
    IntTensor& ids = ids_[pass.name] = ids_of(pass, passes_.prefix(), prompt_);
    for (const std::size_t place : unknown) ids.data[place] = bounds::Replay::kUnknownId;
  }
}

void Reference::find_decoded(const Values& values) {
  bool same = true, known = true;
  for (const DumpedValue& dumped : values.dumped)
    known = known && !dumped.given;  // given values may come from another model's tokens
  std::vector<std::string> sampled_in(
      at(passes_.batch()));  // per row: the last pass so far that sampled it
  for (std::int64_t i = 0; i < passes_.size(); ++i) {
    const PassPlan pass = passes_.at(i);
    if (pass.phase == Phase::decode) {
      ids_[pass.name] = decoded_ids(values, pass, sampled_in, known);
      if (const DumpedValue* const dumped = find(values, Meaning::ids, pass.name))
        note_no_id(*dumped, pass);
      same = same && ids_[pass.name].data == answer_.inputs.at(pass.name + ".ids").data;
    }
    known = known && !has_unknown(ids_[pass.name]);
    same = same && known;
    same_ids_[pass.name] = same;
    const RowsOfPass rows(pass);  // passes over prefixes have fewer rows, which sample nothing
    for (std::size_t row = 0; row < rows.samples.size(); ++row)
      if (rows.samples[row]) sampled_in[row] = pass.name;
  }
}

/// Returns the trace's own ids; else its tokens of the preceding passes; else, if everything before
/// is `known`, the unsharded model's tokens.
IntTensor Reference::decoded_ids(const Values& values, const PassPlan& pass,
                                 const std::vector<std::string>& sampled_in, bool known) const {
  const std::int64_t V = claim_.given.model.V;
  IntTensor ids = answer_.inputs.at(pass.name + ".ids");
  if (const DumpedValue* const dumped = find(values, Meaning::ids, pass.name))
    if (const auto own = integers(*dumped, V)) {
      ids.data = own->data;
      return ids;
    }
  std::map<std::string, std::optional<IntTensor>> tokens;
  for (std::size_t row = 0; row < sampled_in.size(); ++row) {
    const auto [of, is_new] = tokens.try_emplace(sampled_in[row]);
    if (const DumpedValue* const dumped = find(values, Meaning::token, of->first);
        is_new && dumped != nullptr)
      of->second = integers(*dumped, V);
    if (of->second)
      ids.data[row] = of->second->data[row];
    else if (!known)
      ids.data[row] = bounds::Replay::kUnknownId;
  }
  return ids;
}

/// Records a number that is not a valid token id; padding may hold anything.
void Reference::note_no_id(const DumpedValue& dumped, const PassPlan& pass) {
  each_number(dumped, [&](double v, const std::vector<int>&, std::int64_t, double) {
    if (!is_id(v, claim_.given.model.V)) no_ids_.emplace(pass.name, v);
  });
}

std::optional<double> Reference::no_id(const std::string& pass) const {
  const auto found = no_ids_.find(pass);
  return found == no_ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string Reference::unknown(const std::string& name) const {
  if (name.empty()) return "";  // a weight
  std::vector<std::string> without;
  std::string none;
  for (std::int64_t i = 0; i < passes_.size(); ++i) {
    const PassPlan pass = passes_.at(i);
    if (const auto bad = no_id(pass.name); bad && none.empty())
      none = fmt::format("{} of {}.ids is no token id", *bad, pass.name);
    else if (!bad && has_unknown(ids_.at(pass.name)))
      without.push_back(pass.name);
    if (pass.name == name) break;
  }
  if (without.empty()) return none;
  return fmt::format("the trace has no ids of {}{}", without.front(),
                     without.size() > 1 ? " to " + without.back() : "");
}

/// If a value has several arrays, the first stored one declares its arithmetic; if none does, the
/// first of its raw sums.
void Reference::declare(const Values& values) {
  // If ids are unknown, a trace that claims bits is judged by bounds: f32 values of the exact
  // regime lie within the bounds of f32 arithmetic.
  if (claim_.exact && !unknown(replay_->passes().back().name).empty()) {
    bounds::Declared f32 = claim_.declared;
    f32.sums = bounds::Format::f32;
    f32.operations = bounds::Arithmetic::of(bounds::Format::f32);
    replay_->assume(f32);
  }
  std::set<std::string> declared;
  for (const bool stored : {true, false})
    for (const DumpedValue& dumped : values.dumped)
      if (dumped.declared && stored == (dumped.subject.meaning == Meaning::checkpoint) &&
          dumped.subject.meaning != Meaning::weight && declared.insert(dumped.subject.id).second)
        replay_->declare(dumped.subject.id, *dumped.declared);
  for (const PassPlan& pass : replay_->passes()) {
    const std::vector<std::int32_t>& ids = ids_.at(pass.name).data;
    const bool none = std::all_of(ids.begin(), ids.end(),
                                  [](auto id) { return id == bounds::Replay::kUnknownId; });
    if (none && !has_layers(values, pass.name)) replay_->forget(pass.name);
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
    if (s.dims != value_row(s.name)->dims) continue;  // laid out by the prefixes' rows
    const Layout& first = layouts.emplace(s.id, laid.layout).first->second;
    const bool alike = std::all_of(s.dims.begin(), s.dims.end(), [&](char dim) {
      return first.axes(dim) == laid.layout.axes(dim);
    });
    if (!alike || !laid.plain) several.insert(s.id);
  }
  for (const std::string& id : several) layouts.erase(id);
  replay_->lay_out(layouts, claim_.given.torus);
}

/// Returns the value as later steps of the writer read it; nullopt if an element is missing.
std::optional<bounds::Carried> Reference::as_operand(const DumpedValue& dumped) const {
  auto whole = assembled_value(dumped);
  if (!whole) return std::nullopt;
  // Later steps read the writer's own number, not the one that the file rounds it to.
  if (dumped.coarser_than(bounds::format_of(dumped.subject.name, claim_.given.model,
                                            dumped.declared_or(claim_.declared)))) {
    const Coarse coarse = coarse_of(dumped.encoding);
    for (std::size_t i = 0; i < whole->size(); ++i)
      whole->widen(i, coarse.unit * 2 * std::abs(whole->center[i]) + 2 * coarse.least);
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
    return order_of(a->subject, claim_.given.model, passes_) <
           order_of(b->subject, claim_.given.model, passes_);
  });
  for (const DumpedValue* const dumped : last) {
    const std::string& id = dumped->subject.id;
    if (dump_.contains(id)) continue;
    const auto rows = as_operand(*dumped);
    if (!rows) continue;
    bounds::Carried all = replay_->value(id);
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
bounds::Carried Reference::added_up(const DumpedValue& dumped, bounds::Carried whole) const {
  const std::int64_t parts = parts_of(dumped);
  bounds::Declared declared = dumped.declared_or(claim_.declared);
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
  return whole.rounded(bounds::format_of(dumped.subject.name, claim_.given.model, declared));
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
  if (bounds::is_block_term(s.name, claim_.given.model)) return nullptr;
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
      return value_row(s.name)->contraction ? &answer_.raw_of(s.id) : nullptr;
    case Meaning::scaled:
      return answer_.scaled.contains(s.id) || answer_.with_scale.contains(s.id)
                 ? &answer_.scaled_of(s.id)
                 : nullptr;
    case Meaning::unstored:
      return &answer_.unstored_of(s.id);
    case Meaning::stat:
      return in(answer_.stats, s.id);
    case Meaning::weight:
      return &weights_.at(s.id);
    case Meaning::token:
      return answer_.tokens.contains(s.id) ? as_floats(answer_.tokens.at(s.id)) : nullptr;
    case Meaning::positions:
      return as_floats(answer_.inputs.at(s.id));
    case Meaning::drawing: {
      if (draws(s.pass) == nullptr || !has_drawing(*draws(s.pass), s.name)) return nullptr;
      const std::size_t C = s.dims.find('C');
      const bool of_blocks = C != s.dims.npos;
      const ExpectedBits drawn =
          sampling_value(s.name, answer_.checkpoints.at(s.pass + ".logits"), *draws(s.pass),
                         of_blocks ? s.shape[C] : 1, of_blocks ? s.shape[C] * s.block : 0);
      Tensor& t = made_[s.title()] = Tensor(s.shape);
      for (std::size_t i = 0; i < t.data.size(); ++i)
        t.data[i] =
            drawn.integer ? static_cast<float>(drawn.bits[i]) : std::bit_cast<float>(drawn.bits[i]);
      return &t;
    }
    case Meaning::candidates:
    case Meaning::indices: {
      const DimPadding padding = dim_padding(claim_.given);
      // Counts the blocks of padding, which the value lacks.
      const std::int64_t all = padding.placed('V', claim_.given.model.V) / s.block;
      const Expected blocks =
          expected_value(answer_, weights_, {s.pass, "", 0}, Role::parse("stat " + s.name),
                         {s.shape[0], all}, padding);
      Tensor& t = made_[s.title()] = Tensor(s.shape);
      for (std::size_t i = 0; i < t.data.size(); ++i) {
        const std::uint32_t bits = blocks.bits[i / at(s.shape[1]) * at(all) + i % at(s.shape[1])];
        t.data[i] = blocks.integer ? static_cast<float>(bits) : std::bit_cast<float>(bits);
      }
      return &t;
    }
    case Meaning::ids:
      return as_floats(ids_.at(s.pass));
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

}  // namespace shardproof::candidate
