#include "engine/program/detail/overflow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace shardproof {
namespace {

/// Returns a finding about the first element that is `wrong`, described by `text`.
template <class T, class Wrong, class Text>
std::optional<Finding> first_wrong(const std::string& label, const std::string& step,
                                   const std::string& role, const Sharded& value,
                                   const ChipArrays<T>& chips, Wrong&& wrong, Text&& text) {
  const Shape& local = value.local();
  for (std::size_t chip = 0; chip < chips.size(); ++chip)
    for (std::size_t i = 0; i < chips[chip].size(); ++i) {
      if (!wrong(chips[chip][i])) continue;
      Shape index(local.size());
      auto rest = static_cast<std::int64_t>(i);
      for (std::size_t d = local.size(); d-- > 0; rest /= local[d])
        index[d] = rest % local[d] + local[d] * value.torus().block(static_cast<int>(chip),
                                                                    value.layout().dims()[d].axes);
      Finding found{.detector = Detector::run, .label = label};
      found.step = step;
      found.chip = value.torus().name(static_cast<int>(chip));
      found.index = index;
      found.actual = text(chips[chip][i]);
      found.message = fmt::format("{} ({}) is {} at [{}], on chip {}", step, role, found.actual,
                                  fmt::join(index, ","), found.chip);
      return found;
    }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> overflow(const Scope& scope, const Program& program,
                                const ValueDecl& declared, const Sharded& value) {
  const Role& m = declared.role;
  const bool computed = m.kind == Role::Kind::checkpoint || m.kind == Role::Kind::raw ||
                        m.kind == Role::Kind::scaled || m.kind == Role::Kind::unstored ||
                        m.kind == Role::Kind::stat;
  if (declared.layout.is_partial() || !computed) return std::nullopt;
  if (const ValueRow* const row = value_row(m, program.rows.get()); row != nullptr && row->cache)
    return std::nullopt;
  const std::string step = scope.step(program, declared.name);
  if (const auto* numbers = std::get_if<FieldShards>(&value.data()))
    return first_wrong(
        "field_number", step, m.to_string(), value, numbers->values,
        [&](const FieldElement& v) { return !numbers->field->is_number(v); },
        [](const FieldElement& v) { return "no number (" + to_string(v) + ")"; });
  const auto* chips = std::get_if<ChipArrays<float>>(&value.data());
  if (chips == nullptr) return std::nullopt;
  bool finite = true;
  const void* seen = nullptr;  // neighbouring chips often hold one buffer
  for (std::size_t chip = 0; chip < chips->size() && finite; ++chip) {
    if (chip > 0 && chips->identity(chip) == seen) continue;
    seen = chips->identity(chip);
    finite = all_finite((*chips)[chip]);
  }
  if (finite) return std::nullopt;
  return first_wrong(
      "engine_finite", step, m.to_string(), value, *chips,
      [](float v) { return !std::isfinite(v); }, [](float v) { return fmt::format("{}", v); });
}

}  // namespace shardproof
