#include "golden/candidate/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "golden/candidate/coarse.h"
#include "golden/candidate/each_number.h"
#include "golden/candidate/last_rows.h"
#include "golden/case_padding.h"
#include "golden/expected.h"
#include "golden/row_padding.h"
#include "golden/sampling_value.h"
#include "weights/generator.h"
#include "weights/registry.h"
#include "weights/stable_sort.h"

namespace shardproof::candidate {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Whole numbers of a value, as ids are.
std::optional<IntTensor> integers(const Held& held, std::int64_t V) {
  const auto whole = assembled_value(held);
  if (!whole) return std::nullopt;
  IntTensor ids(whole->shape);
  for (std::size_t i = 0; i < ids.data.size(); ++i) {
    const double v = whole->center[i];
    if (!(v >= 0 && v < static_cast<double>(V)) || v != std::floor(v))
      throw Error("compare_ids", fmt::format("{} has {} at {}, no token id of {}", held.name, v,
                                             oracle::index_text(ids.shape, i), V));
    ids.data[i] = static_cast<std::int32_t>(v);
  }
  return ids;
}

const Held* find(const Values& values, Meaning meaning, const std::string& pass) {
  for (const Held& held : values.held)
    if (held.subject.meaning == meaning && held.subject.pass == pass) return &held;
  return nullptr;
}

/// Calls see(place in the ids [BL] of a pass, place in the prompt) for each token of a pass before
/// the decode, without padding: of a prefix's once for each row of the prompt that has it.
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

/// The ids of a pass before the decode, [BL], out of a prompt; 0 at padding.
IntTensor ids_of(const PassPlan& pass, const SharedPrefix& prefix, const IntTensor& prompt) {
  IntTensor ids(Shape{pass.batch(), pass.L});
  each_token(pass, prefix, prompt, [&](std::size_t place, std::size_t in_prompt) {
    ids.data[place] = prompt.data[in_prompt];
  });
  return ids;
}

/// Of how many numbers of the trace one number of the value is the sum.
std::int64_t parts_of(const Held& held) {
  return std::int64_t{held.summands} * held.torus.size(held.layout.partial());
}

/// The sum of their sizes, by element.
std::vector<double> sizes_of_parts(const Held& held) {
  std::vector<double> sizes(at(element_count(held.subject.shape)), 0.0);
  each_number(held, [&](double, const std::vector<int>&, std::int64_t place, double size) {
    sizes[at(place)] = std::max(sizes[at(place)], size * std::abs(held.unit(place)));
  });
  return sizes;
}

}  // namespace

std::optional<bounds::Carried> assembled_value(const Held& held) {
  if (!held.complete()) return std::nullopt;
  bounds::Carried whole(held.subject.shape);
  std::vector<bool> seen(whole.size(), false);
  each_number(held, [&](double number, const std::vector<int>&, std::int64_t place, double) {
    const double v = number * held.unit(place);
    double& center = whole.center[at(place)];
    double& radius = whole.radius[at(place)];
    if (!seen[at(place)])
      center = v;
    else if (v != center)  // NaN, too
      radius = std::isnan(v) ? v : std::max(radius, std::abs(v - center));
    seen[at(place)] = true;
    if (held.unit(place) != 1.0) radius = std::max(radius, 0x1p-52 * std::abs(center));
  });
  return whole;
}

Reference::Reference(const Values& values, const Claim& claim, Weights weights)
    : claim_(claim), passes_(claim.given.passes()), weights_(std::move(weights)) {
  prompt_ = generate_prompt(claim.given.model, claim.given.seed, passes_.batch(), passes_.prompt(),
                            passes_.prefix());
  find_ids(values);
  fill_dump(values);
  replay_ = std::make_unique<bounds::Replay>(weights_, passes_, ids_, dump_, claim_.declared);
  fill_last_rows(values);
}

/// The prompt first, from the passes before the decode; then the unsharded model, whose tokens are
/// the ids of a decode step that the trace says nothing of.
void Reference::find_ids(const Values& values) {
  for (std::int64_t i = 0; i < passes_.size(); ++i) {
    const PassPlan pass = passes_.at(i);
    if (pass.phase == Phase::decode) break;
    case_ids_[pass.name] = ids_of(pass, passes_.prefix(), prompt_);
    if (const Held* const held = find(values, Meaning::ids, pass.name))
      if (const auto own = integers(*held, claim_.given.model.V))
        each_token(pass, passes_.prefix(), prompt_, [&](std::size_t place, std::size_t in_prompt) {
          prompt_.data[in_prompt] = own->data[place];
        });
    ids_[pass.name] = ids_of(pass, passes_.prefix(), prompt_);
  }
  Numerics numerics = claim_.given.numerics;
  numerics.regime = Regime::exact;
  numerics.schedule = Schedule::group;
  numerics.acc = FloatType::f32;
  answer_ = oracle::run(weights_, {numerics, prompt_, passes_, claim_.given.sampling,
                                   claim_.given.seed, claim_.rows});
  bool same = true;
  std::vector<std::string> sampled_in(at(passes_.batch()));  // of each row, the last pass so far
  for (std::int64_t i = 0; i < passes_.size(); ++i) {
    const PassPlan pass = passes_.at(i);
    if (pass.phase == Phase::decode) {
      std::optional<IntTensor> own;
      if (const Held* const held = find(values, Meaning::ids, pass.name))
        own = integers(*held, claim_.given.model.V);
      const IntTensor& expected = answer_.inputs.at(pass.name + ".ids");
      IntTensor& ids = ids_[pass.name];
      ids = own ? *own : expected;
      ids.shape = expected.shape;
      std::map<std::string, std::optional<IntTensor>> tokens;
      for (std::size_t row = 0; row < sampled_in.size() && !own; ++row) {
        const auto [of, is_new] = tokens.try_emplace(sampled_in[row]);
        if (const Held* const held = find(values, Meaning::token, of->first);
            is_new && held != nullptr)
          of->second = integers(*held, claim_.given.model.V);
        if (of->second) ids.data[row] = of->second->data[row];
      }
      for (std::size_t k = 0; k < ids.data.size(); ++k)
        if (ids.data[k] < 0 || ids.data[k] >= claim_.given.model.V)
          throw Error("compare_ids", fmt::format("{} has token {} in row {}, of {}", pass.name,
                                                 ids.data[k], k, claim_.given.model.V));
      same = same && ids.data == expected.data;
    }
    same_ids_[pass.name] = same;
    const RowsOfPass rows(pass);  // of prefixes fewer, which sample nothing
    for (std::size_t row = 0; row < rows.samples.size(); ++row)
      if (rows.samples[row]) sampled_in[row] = pass.name;
  }
}

/// As the writer's next steps had it; nothing where an element is missing.
std::optional<bounds::Carried> Reference::as_operand(const Held& held) const {
  auto whole = assembled_value(held);
  if (!whole) return std::nullopt;
  // They had the writer's own number, not the one that the file rounds it to.
  if (held.coarser_than(
          bounds::format_of(held.subject.name, claim_.given.model, claim_.declared))) {
    const Coarse coarse = coarse_of(held.encoding);
    for (std::size_t i = 0; i < whole->size(); ++i)
      whole->radius[i] += coarse.unit * 2 * std::abs(whole->center[i]) + 2 * coarse.least;
  }
  return parts_of(held) > 1 ? added_up(held, std::move(*whole)) : whole;
}

/// Of several arrays of one value it is the first, as it is made and not as it is moved later; what
/// is still to be added up, only where nothing else is there.
void Reference::fill_dump(const Values& values) {
  for (const bool sums : {false, true})
    for (const Held& held : values.held) {
      const Subject& s = held.subject;
      if ((s.meaning != Meaning::checkpoint && s.meaning != Meaning::probs) || s.last) continue;
      if (sums != (parts_of(held) > 1) || dump_.contains(s.id)) continue;
      if (auto whole = as_operand(held)) dump_.emplace(s.id, std::move(*whole));
    }
}

/// Where the trace has a value's last positions and not all of it, what is made of it is made of
/// these, and of what follows for the others.
void Reference::fill_last_rows(const Values& values) {
  std::vector<const Held*> last;
  for (const Held& held : values.held)
    if (held.subject.last && held.subject.meaning == Meaning::checkpoint) last.push_back(&held);
  stable_sort(last, [&](const Held* a, const Held* b) {
    return order_of(a->subject, claim_.given.model, passes_) <
           order_of(b->subject, claim_.given.model, passes_);
  });
  for (const Held* const held : last) {
    const std::string& id = held->subject.id;
    if (dump_.contains(id)) continue;
    const auto rows = as_operand(*held);
    if (!rows) continue;
    bounds::Carried all = replay_->value(id);
    std::size_t i = 0;
    for (const std::size_t element : last_elements(all.shape, replay_->pass(held->subject.pass))) {
      all.center[element] = rows->center[i];
      all.radius[element] = rows->radius[i++];
    }
    replay_->assume(id, all);
    dump_.emplace(id, std::move(all));
    in_part_.insert(id);
  }
}

/// A value that the trace has in parts, as the writer has it once they are added, in some order.
bounds::Carried Reference::added_up(const Held& held, bounds::Carried whole) const {
  const std::int64_t parts = parts_of(held);
  const double growth = claim_.declared.growth(parts - 1);
  const std::vector<double> sizes = sizes_of_parts(held);
  for (std::size_t i = 0; i < whole.size(); ++i)
    whole.radius[i] +=
        growth * sizes[i] + static_cast<double>(parts) * bounds::least_of(claim_.declared.sums);
  return whole.rounded(bounds::format_of(held.subject.name, claim_.given.model, claim_.declared));
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
      // With those of padding, which the value is without.
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
