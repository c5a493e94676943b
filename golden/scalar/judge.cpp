#include "golden/scalar/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <type_traits>

namespace shardproof {
namespace {

scalar::Place place_of(const Torus& torus, int chip) {
  const std::array<int, 3> at = judged_coordinates(torus, chip);
  return {{at[0], at[1], at[2]}};
}

/// One value of the engine beside the scalar model's: each chip's block by the declared layout, of
/// the tensor or, of a partial, of the part that the chip's place on the partial axes stands for.
template <class T>
class Sides {
 public:
  Sides(const Layout& layout, const Sharded& value, const ChipArrays<T>& chips,
        const scalar::Value& wanted)
      : layout_(layout),
        shape_(value.shape()),
        torus_(value.torus()),
        chips_(chips),
        wanted_(wanted),
        local_(judged_block(layout, value.shape(), value.torus())) {}

  /// Fills chip, index, both values and reach of the first difference; false if there is none.
  bool differ(Difference& found) const {
    for (int chip = 0; chip < torus_.chips(); ++chip) {
      const Buffer<T>& held = chips_[static_cast<std::size_t>(chip)];
      if (held.size() == static_cast<std::size_t>(element_count(local_))) continue;
      found.chip = torus_.name(chip);
      found.expected = fmt::format("{} elements on the chip", element_count(local_));
      found.actual = fmt::format("{}", held.size());
      return true;
    }
    bool differs = false;
    for (int chip = 0; chip < torus_.chips() && !differs; ++chip)
      each(chip, [&](const Shape& index, std::int64_t, std::uint32_t want, std::uint32_t got) {
        if (want == got) return false;
        differs = true;
        found.chip = torus_.name(chip);
        found.index = index;
        found.expected = element_text(want, integer());
        found.actual = element_text(got, integer());
        return true;
      });
    if (!differs) return false;
    const auto parts = integer() ? 1 : static_cast<std::int64_t>(wanted_.parts.size());
    ReachMeter meter(torus_, shape_, integer(), parts);
    for (int chip = 0; chip < torus_.chips(); ++chip)
      each(chip, [&](const Shape&, std::int64_t element, std::uint32_t want, std::uint32_t got) {
        meter.see({&chip, 1}, element, want, got);
        return false;
      });
    found.reach = meter.finish();
    return true;
  }

 private:
  static constexpr bool integer() { return std::is_same_v<T, std::int32_t>; }

  const std::vector<T>& global(std::size_t part) const {
    if constexpr (integer())
      return wanted_.ints;
    else
      return wanted_.parts.at(part);
  }

  /// Calls see(global index, element of all parts, wanted bits, held bits) for every element of a
  /// chip until it returns true.
  template <class See>
  void each(int chip, See&& see) const {
    const Buffer<T>& held = chips_[static_cast<std::size_t>(chip)];
    const std::size_t part =
        integer() ? 0 : scalar::part_of(layout_.partial(), torus_, place_of(torus_, chip));
    const std::vector<T>& want = global(part);
    const Shape begin = judged_offset(layout_, shape_, torus_, chip);
    Shape index = begin;
    for (std::size_t i = 0; i < held.size(); ++i) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < shape_.size(); ++d) at = at * shape_[d] + index[d];
      if (see(index, static_cast<std::int64_t>(part) * element_count(shape_) + at,
              std::bit_cast<std::uint32_t>(want[static_cast<std::size_t>(at)]),
              std::bit_cast<std::uint32_t>(held[i])))
        return;
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == begin[d] + local_[d];)
        index[d] = begin[d];
    }
  }

  const Layout& layout_;
  const Shape& shape_;
  const Torus& torus_;
  const ChipArrays<T>& chips_;
  const scalar::Value& wanted_;
  Shape local_;
};

}  // namespace

ScalarJudge::ScalarJudge(const Inference& inference, const InferencePrograms& programs,
                         const Weights& weights, const IntTensor& prompt,
                         const oracle::Answer& exact)
    : model_(inference, programs, weights, prompt), meter_(exact) {}

void ScalarJudge::next_pass() {
  for (const auto& [key, made] : model_.values())
    if (!met_.contains(key) && judgement_.reason.empty())
      judgement_.reason = fmt::format("the run never showed {} of {}", key, model_.pass());
  met_.clear();
  if (model_.next_pass()) meter_.measure(model_);
}

void ScalarJudge::observe(const Scope& scope, const Program& program, const Op* op,
                          const Result& declared, const Sharded& value) {
  if (scope.pass != model_.pass()) next_pass();
  const std::string key = ScalarModel::key(program, scope.layer, declared.name);
  Difference found;
  found.pass = scope.pass;
  found.step = scope.step(program, declared.name);
  found.where = program.where(declared.line);
  found.checkpoint = "the scalar model's " + declared.meaning.to_string();
  found.op = op != nullptr ? op->to_string() : "input";
  const auto stop = [&] {
    judgement_.verdict = Verdict::different;
    judgement_.difference = found;
    throw Judge::Stop{};
  };
  const auto at = model_.values().find(key);
  if (scope.pass != model_.pass() || at == model_.values().end()) {
    found.expected = "no such value in " + model_.pass();
    found.actual = "a value";
    stop();
  }
  const scalar::Value& wanted = at->second.value;
  const auto* ints = std::get_if<ChipArrays<std::int32_t>>(&value.data());
  const auto* floats = std::get_if<ChipArrays<float>>(&value.data());
  if (value.shape() != wanted.shape || (wanted.integer() ? ints == nullptr : floats == nullptr)) {
    found.expected = fmt::format("{} of shape [{}]", wanted.integer() ? "int32" : "f32",
                                 fmt::join(wanted.shape, ","));
    found.actual = fmt::format("{} of shape [{}]",
                               ints != nullptr     ? "int32"
                               : floats != nullptr ? "f32"
                                                   : "exact sums",
                               fmt::join(value.shape(), ","));
    stop();
  }
  const bool apart = ints != nullptr ? Sides(declared.layout, value, *ints, wanted).differ(found)
                                     : Sides(declared.layout, value, *floats, wanted).differ(found);
  if (apart) stop();
  judgement_.elements += element_count(value.local()) * value.torus().chips();
  if (element_count(value.shape()) > 0) ++judgement_.tensors;
  met_.insert(key);
}

void ScalarJudge::observe_generated(const IntTensor& generated) {
  const std::int64_t gen = generated.shape[1];
  if (static_cast<std::int64_t>(model_.tokens().size()) != gen) {
    judgement_.reason = fmt::format("{} tokens generated, {} wanted", gen, model_.tokens().size());
    return;
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(generated.data.size()); ++i) {
    const std::int32_t got = generated.data[static_cast<std::size_t>(i)];
    const std::int32_t want =
        model_.tokens()[static_cast<std::size_t>(i % gen)][static_cast<std::size_t>(i / gen)];
    if (got == want) continue;
    judgement_.verdict = Verdict::different;
    judgement_.difference = Difference{
        model_.pass(),      "the scalar model's token", "generated",           "output", "(all)",
        {i / gen, i % gen}, fmt::format("{}", want),    fmt::format("{}", got)};
    return;
  }
}

Judgement ScalarJudge::finish() {
  if (!judgement_.difference) {
    next_pass();  // checks the last one; there must be none left
    if (!model_.values().empty())
      judgement_.reason = fmt::format("the run ended before {}", model_.pass());
    if (judgement_.tensors == 0) judgement_.reason = "nothing was compared";
    judgement_.verdict = judgement_.reason.empty() ? Verdict::equal : Verdict::not_judged;
  }
  judgement_.drift = meter_.drift();
  return judgement_;
}

}  // namespace shardproof
