#include "golden/scalar_judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

namespace shardproof {
namespace {

std::string show(float v) {
  return fmt::format("{:.9g} (0x{:08x})", v, std::bit_cast<std::uint32_t>(v));
}
std::string show(std::int32_t v) { return fmt::format("{}", v); }

/// By the judge's own reading of a chip's number: (x·Y + y)·Z + z.
scalar::Place place_of(const Torus& torus, int chip) {
  const int Y = torus.size(Axis::y);
  const int Z = torus.size(Axis::z);
  return {{chip / (Y * Z), chip / Z % Y, chip % Z}};
}

/// Holds a chip's shard against its block of a global tensor; fills chip, index and both values of
/// the first difference.
template <class T>
bool differs(const Layout& layout, const Shape& shape, const Torus& torus, int chip,
             const Buffer<T>& held, const std::vector<T>& global, Difference& found) {
  Shape local = shape;
  for (std::size_t d = 0; d < shape.size(); ++d)
    for (Axis a : layout.dims()[d].axes) local[d] /= torus.size(a);
  found.chip = torus.name(chip);
  if (held.size() != static_cast<std::size_t>(element_count(local))) {
    found.expected = fmt::format("{} elements on the chip", element_count(local));
    found.actual = fmt::format("{}", held.size());
    return true;
  }
  Shape index = judged_offset(layout, shape, torus, chip);
  const Shape begin = index;
  for (std::size_t i = 0; i < held.size(); ++i) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
    const T want = global[static_cast<std::size_t>(at)];
    if (std::bit_cast<std::uint32_t>(held[i]) != std::bit_cast<std::uint32_t>(want)) {
      found.index = index;
      found.expected = show(want);
      found.actual = show(held[i]);
      return true;
    }
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == begin[d] + local[d];)
      index[d] = begin[d];
  }
  return false;
}

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
  const auto* ints = std::get_if<ChipArrays<std::int32_t>>(&value.data);
  const auto* floats = std::get_if<ChipArrays<float>>(&value.data);
  if (value.shape != wanted.shape || (wanted.integer() ? ints == nullptr : floats == nullptr)) {
    found.expected = fmt::format("{} of shape [{}]", wanted.integer() ? "int32" : "f32",
                                 fmt::join(wanted.shape, ","));
    found.actual = fmt::format("{} of shape [{}]",
                               ints != nullptr     ? "int32"
                               : floats != nullptr ? "f32"
                                                   : "exact sums",
                               fmt::join(value.shape, ","));
    stop();
  }
  const Torus& torus = value.torus;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const auto c = static_cast<std::size_t>(chip);
    const std::size_t part =
        scalar::part_of(declared.layout.partial(), torus, place_of(torus, chip));
    const bool apart = wanted.integer() ? differs(declared.layout, value.shape, torus, chip,
                                                  (*ints)[c], wanted.ints, found)
                                        : differs(declared.layout, value.shape, torus, chip,
                                                  (*floats)[c], wanted.parts.at(part), found);
    if (apart) stop();
    judgement_.elements += element_count(value.local());
  }
  if (element_count(value.shape) > 0) ++judgement_.tensors;
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
    judgement_.difference =
        Difference{model_.pass(), "the scalar model's token", "generated", "output",
                   "(all)",       {i / gen, i % gen},         show(want),  show(got)};
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
