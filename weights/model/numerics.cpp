#include "weights/model/numerics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <type_traits>
#include <utility>

#include "weights/base/detail/word_table.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

template <class Enum, std::size_t N>
using Words = std::array<std::pair<std::string_view, Enum>, N>;

constexpr Words<WeightType, 3> kWeightTypes{
    {{"f32", WeightType::f32}, {"bf16", WeightType::bf16}, {"int8", WeightType::int8}}};
constexpr Words<ActType, 2> kActTypes{{{"f32", ActType::f32}, {"bf16", ActType::bf16}}};
constexpr Words<Regime, 3> kRegimes{
    {{"exact", Regime::exact}, {"f32", Regime::f32}, {"field", Regime::field}}};
constexpr Words<Schedule, 4> kSchedules{{{"group", Schedule::group},
                                         {"ring", Schedule::ring},
                                         {"tree", Schedule::tree},
                                         {"biring", Schedule::biring}}};
constexpr Words<Loop, 4> kLoops{{{"none", Loop::none},
                                 {"one-way", Loop::one_way},
                                 {"both-full", Loop::both_full},
                                 {"both-half", Loop::both_half}}};
constexpr Words<FloatType, 2> kFloatTypes{{{"f32", FloatType::f32}, {"bf16", FloatType::bf16}}};

constexpr const auto& words_of(WeightType) { return kWeightTypes; }
constexpr const auto& words_of(ActType) { return kActTypes; }
constexpr const auto& words_of(Regime) { return kRegimes; }
constexpr const auto& words_of(Schedule) { return kSchedules; }
constexpr const auto& words_of(Loop) { return kLoops; }
constexpr const auto& words_of(FloatType) { return kFloatTypes; }

template <class Enum>
std::string_view word_for(Enum value) {
  return word_in(words_of(value), value);
}

/// Returns the words of an enum: "group, ring, tree".
template <class Enum>
std::string_view joined() {
  static const std::string text = fmt::format("{}", fmt::join(words_in(words_of(Enum{})), ", "));
  return text;
}

template <class Enum>
Enum read(std::string_view key, std::string_view word) {
  if (const std::optional<Enum> value = value_in(words_of(Enum{}), word)) return *value;
  throw Error("case_numerics", fmt::format("{}={:?}; legal: {}", key, word, joined<Enum>()));
}

template <auto Field>
NumericsKey key(std::string_view name) {
  using Enum = std::remove_cvref_t<decltype(Numerics{}.*Field)>;
  return {name, joined<Enum>(), [](const Numerics& numerics) { return word_for(numerics.*Field); },
          [](std::string_view key, Numerics& numerics, std::string_view word) {
            numerics.*Field = read<Enum>(key, word);
          }};
}

}  // namespace

std::span<const NumericsKey> numerics_keys() {
  static const std::array keys{
      key<&Numerics::weights>("weights"), key<&Numerics::act>("act"),
      key<&Numerics::regime>("regime"),   key<&Numerics::schedule>("schedule"),
      key<&Numerics::loop>("loop"),       key<&Numerics::acc>("acc"),
      key<&Numerics::wire>("wire")};
  return keys;
}

void validate(const Numerics& numerics) {
  if (numerics.regime == Regime::f32) return;
  if (numerics.schedule != Schedule::group)
    throw Error("case_numerics",
                fmt::format("schedule={} needs regime=f32: {} sums have no order; legal: "
                            "schedule=group, or regime=f32",
                            to_string(numerics.schedule), to_string(numerics.regime)));
  if (numerics.acc != FloatType::f32)
    throw Error("case_numerics",
                fmt::format("acc={} needs regime=f32: {}; legal: acc=f32, or regime=f32",
                            to_string(numerics.acc),
                            numerics.regime == Regime::field
                                ? "sums of the field are never rounded"
                                : "an exact sum is rounded once, when it is complete"));
  if (numerics.regime == Regime::field && numerics.wire != FloatType::f32)
    throw Error("case_numerics",
                fmt::format("wire={} with regime=field: its sums are never rounded; legal: "
                            "wire=f32, or regime=exact, f32",
                            to_string(numerics.wire)));
}

std::string_view to_string(WeightType type) { return word_for(type); }
std::string_view to_string(ActType type) { return word_for(type); }
std::string_view to_string(Regime regime) { return word_for(regime); }
std::string_view to_string(Schedule schedule) { return word_for(schedule); }
std::string_view to_string(Loop loop) { return word_for(loop); }
std::string_view to_string(FloatType type) { return word_for(type); }

WeightType parse_weight_type(std::string_view word) { return read<WeightType>("weights", word); }
ActType parse_act_type(std::string_view word) { return read<ActType>("act", word); }
Regime parse_regime(std::string_view word) { return read<Regime>("regime", word); }
Schedule parse_schedule(std::string_view word) { return read<Schedule>("schedule", word); }
Loop parse_loop(std::string_view word) { return read<Loop>("loop", word); }

}  // namespace shardproof
