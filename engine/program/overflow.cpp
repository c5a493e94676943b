#include "engine/program/overflow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace shardproof {
namespace {

/// By the exponents' bits, all elements together: an f32 is finite iff they are not all set.
bool all_finite(const Buffer<float>& values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t unfinite = 0;
  for (const float v : values)
    unfinite |= (std::bit_cast<std::uint32_t>(v) & kExponent) == kExponent ? 1U : 0U;
  return unfinite == 0;
}

}  // namespace

std::optional<Finding> overflow(const Scope& scope, const Program& program,
                                const ValueDecl& declared, const Sharded& value) {
  const Role& m = declared.role;
  const auto* chips = std::get_if<ChipArrays<float>>(&value.data());
  const bool computed = m.kind == Role::Kind::checkpoint || m.kind == Role::Kind::raw ||
                        m.kind == Role::Kind::scaled || m.kind == Role::Kind::unstored ||
                        m.kind == Role::Kind::stat;
  if (chips == nullptr || declared.layout.is_partial() || !computed) return std::nullopt;
  if (const ValueRow* const row = value_row(m); row != nullptr && row->cache) return std::nullopt;
  const Shape& local = value.local();
  for (std::size_t chip = 0; chip < chips->size(); ++chip) {
    if (all_finite((*chips)[chip])) continue;
    for (std::size_t i = 0; i < (*chips)[chip].size(); ++i) {
      if (std::isfinite((*chips)[chip][i])) continue;
      Shape index(local.size());
      auto rest = static_cast<std::int64_t>(i);
      for (std::size_t d = local.size(); d-- > 0; rest /= local[d])
        index[d] = rest % local[d] + local[d] * value.torus().block(static_cast<int>(chip),
                                                                    value.layout().dims()[d].axes);
      Finding found{.detector = Detector::run, .label = "engine_finite"};
      found.step = scope.step(program, declared.name);
      found.chip = value.torus().name(static_cast<int>(chip));
      found.index = index;
      found.actual = fmt::format("{}", (*chips)[chip][i]);
      found.message = fmt::format("{} ({}) is {} at [{}], on chip {}", found.step, m.to_string(),
                                  found.actual, fmt::join(index, ","), found.chip);
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace shardproof
