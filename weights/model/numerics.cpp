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

template <std::size_t N>
constexpr Words<NumberFormat, N> words_of_formats(const std::array<NumberFormat, N>& formats) {
  Words<NumberFormat, N> words;
  for (std::size_t i = 0; i < N; ++i) words[i] = {to_string(formats[i]), formats[i]};
  return words;
}
constexpr auto kWeightWords = words_of_formats(kWeightFormats);
constexpr auto kFloatWords = words_of_formats(kFloatFormats);
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

/// Returns the words of a field's values.
template <auto Field>
constexpr const auto& words_of() {
  using Value = std::remove_cvref_t<decltype(Numerics{}.*Field)>;
  if constexpr (std::is_same_v<Value, Regime>)
    return kRegimes;
  else if constexpr (std::is_same_v<Value, Schedule>)
    return kSchedules;
  else if constexpr (std::is_same_v<Value, Loop>)
    return kLoops;
  else if constexpr (Field == &Numerics::weights)
    return kWeightWords;
  else
    return kFloatWords;
}

/// Returns the words in one text: "group, ring, tree".
template <auto Field>
std::string_view joined() {
  static const std::string text = fmt::format("{}", fmt::join(words_in(words_of<Field>()), ", "));
  return text;
}

template <auto Field>
auto read(std::string_view key, std::string_view word) {
  if (const auto value = value_in(words_of<Field>(), word)) return *value;
  throw Error("case_numerics", fmt::format("{}={:?}; legal: {}", key, word, joined<Field>()));
}

template <auto Field>
NumericsKey key(std::string_view name) {
  return {name, joined<Field>(),
          [](const Numerics& numerics) { return word_in(words_of<Field>(), numerics.*Field); },
          [](std::string_view key, Numerics& numerics, std::string_view word) {
            numerics.*Field = read<Field>(key, word);
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
  for (const NumericsKey& key : numerics_keys())
    if (key.get(numerics).empty())
      throw Error("case_numerics",
                  fmt::format("{} has another format; legal: {}", key.name, key.words));
  if (numerics.regime == Regime::f32) return;
  if (numerics.schedule != Schedule::group)
    throw Error("case_numerics",
                fmt::format("schedule={} needs regime=f32: {} sums have no order; legal: "
                            "schedule=group, or regime=f32",
                            to_string(numerics.schedule), to_string(numerics.regime)));
  if (numerics.acc != NumberFormat::f32)
    throw Error("case_numerics",
                fmt::format("acc={} needs regime=f32: {}; legal: acc=f32, or regime=f32",
                            to_string(numerics.acc),
                            numerics.regime == Regime::field
                                ? "sums of the field are never rounded"
                                : "an exact sum is rounded once, when it is complete"));
  if (numerics.regime == Regime::field && numerics.wire != NumberFormat::f32)
    throw Error("case_numerics",
                fmt::format("wire={} with regime=field: its sums are never rounded; legal: "
                            "wire=f32, or regime=exact, f32",
                            to_string(numerics.wire)));
}

std::string_view to_string(Regime regime) { return word_in(kRegimes, regime); }
std::string_view to_string(Schedule schedule) { return word_in(kSchedules, schedule); }
std::string_view to_string(Loop loop) { return word_in(kLoops, loop); }

NumberFormat parse_weight_format(std::string_view word) {
  return read<&Numerics::weights>("weights", word);
}
NumberFormat parse_act_format(std::string_view word) { return read<&Numerics::act>("act", word); }
Regime parse_regime(std::string_view word) { return read<&Numerics::regime>("regime", word); }
Schedule parse_schedule(std::string_view word) {
  return read<&Numerics::schedule>("schedule", word);
}
Loop parse_loop(std::string_view word) { return read<&Numerics::loop>("loop", word); }

}  // namespace shardproof
