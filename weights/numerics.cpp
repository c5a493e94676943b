#include "weights/numerics.h"

#include <fmt/format.h>

#include "weights/error.h"

namespace shardproof {
namespace {

[[noreturn]] void refuse(std::string_view key, std::string_view word, std::string_view legal) {
  throw Error("case_numerics", fmt::format("{}={:?}; legal: {}", key, word, legal));
}

}  // namespace

std::string_view to_string(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return "f32";
    case WeightType::bf16:
      return "bf16";
    case WeightType::int8:
      return "int8";
  }
  return "";
}

std::string_view to_string(ActType type) { return type == ActType::f32 ? "f32" : "bf16"; }

std::string_view to_string(Regime regime) { return regime == Regime::exact ? "exact" : "f32"; }

std::string_view to_string(Schedule schedule) {
  switch (schedule) {
    case Schedule::group:
      return "group";
    case Schedule::ring:
      return "ring";
    case Schedule::tree:
      return "tree";
    case Schedule::biring:
      return "biring";
  }
  return "";
}

std::string_view to_string(Loop loop) {
  switch (loop) {
    case Loop::none:
      return "none";
    case Loop::one_way:
      return "one-way";
    case Loop::both_full:
      return "both-full";
    case Loop::both_half:
      return "both-half";
  }
  return "";
}

WeightType parse_weight_type(std::string_view word) {
  for (WeightType type : {WeightType::f32, WeightType::bf16, WeightType::int8}) {
    if (word == to_string(type)) return type;
  }
  refuse("weights", word, "f32, bf16, int8");
}

ActType parse_act_type(std::string_view word) {
  for (ActType type : {ActType::f32, ActType::bf16}) {
    if (word == to_string(type)) return type;
  }
  refuse("act", word, "f32, bf16");
}

Regime parse_regime(std::string_view word) {
  for (Regime regime : {Regime::exact, Regime::f32}) {
    if (word == to_string(regime)) return regime;
  }
  refuse("regime", word, "exact, f32");
}

Schedule parse_schedule(std::string_view word) {
  for (Schedule schedule : {Schedule::group, Schedule::ring, Schedule::tree, Schedule::biring}) {
    if (word == to_string(schedule)) return schedule;
  }
  refuse("schedule", word, "group, ring, tree, biring");
}

Loop parse_loop(std::string_view word) {
  for (Loop loop : {Loop::none, Loop::one_way, Loop::both_full, Loop::both_half}) {
    if (word == to_string(loop)) return loop;
  }
  refuse("loop", word, "none, one-way, both-full, both-half");
}

}  // namespace shardproof
