#include "golden/faults/smallest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>

#include "engine/numeric/threads.h"
#include "golden/faults/detail/edits.h"
#include "weights/base/bf16.h"

namespace shardproof::faults {
namespace {

/// Changes one float by a size; `bits` are those below the format's last one: 0 of f32, 16 of bf16.
using OfSize = std::function<float(float v, int size, unsigned bits)>;

struct Effect {
  std::string_view what;
  bool one_element;
  std::vector<int> sizes;  ///< the smallest first
  std::vector<int> sizes_in_bf16;
  OfSize change;
  std::string (*name)(int size);
};

std::vector<int> numbers(int first, int last) {
  std::vector<int> all;
  for (int i = first; i != last + (first < last ? 1 : -1); i += first < last ? 1 : -1)
    all.push_back(i);
  return all;
}

float stored(float v, unsigned bits) { return bits == 16 ? round_to_bf16(v) : v; }

/// Rounds to fewer bits after the binary point, to nearest, ties away from zero.
float to_bits(float v, int kept) {
  if (!std::isfinite(v)) return v;
  const auto gone = static_cast<unsigned>(23 - kept);
  const std::uint32_t half = std::uint32_t{1} << (gone - 1);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(v) + half) >> gone << gone);
}

const std::vector<Effect>& effects() {
  static const std::vector<Effect> all{
      {"one element off by n units in the last place", true, numbers(0, 20), numbers(0, 4),
       [](float v, int size, unsigned bits) {
         return std::bit_cast<float>(
             std::bit_cast<std::uint32_t>(v) +
             (std::uint32_t{1} << (static_cast<unsigned>(size) % 23) << bits));
       },
       [](int size) { return fmt::format("2^{}", size); }},
      {"a value scaled by 1 + d", false, numbers(24, 1), numbers(9, 1),
       [](float v, int size, unsigned bits) {
         return stored(static_cast<float>(static_cast<double>(v) * (1 + std::ldexp(1.0, -size))),
                       bits);
       },
       [](int size) { return fmt::format("2^-{}", size); }},
      {"one rounding more, to so many bits", false, numbers(22, 3), numbers(6, 3),
       [](float v, int size, unsigned) { return to_bits(v, size); },
       [](int size) { return fmt::format("{}", size); }}};
  return all;
}

/// Whether a chip holds the first block of every dim.
bool holds_first(const Sharded& value, int chip) {
  for (const Layout::Dim& dim : value.layout().dims())
    if (value.torus().block(chip, dim.axes) != 0) return false;
  return true;
}

/// Changes what a chip has: its first element, or all.
template <class Numbers>
void change_all(const Effect& effect, int size, unsigned bits, Numbers numbers) {
  for (auto& v : numbers) {
    v = effect.change(static_cast<float>(v), size, bits);
    if (effect.one_element) return;
  }
}

Operator operator_of(const Effect& effect, int size, unsigned bits) {
  Operator how{.name = "smallest", .fault_class = "M4", .what = effect.what};
  how.parameters = [](const Place&) { return std::vector<std::string>{"-"}; };
  how.result = [&effect, size, bits]() -> ResultEdit {
    return [&effect, size, bits](const Here&, Sharded& value) {
      for (int chip = 0; chip < value.torus().chips(); ++chip) {
        if (effect.one_element && !holds_first(value, chip)) continue;
        if (value.holds_partial())
          change_all(effect, size, bits, value.partial_values_of(chip));
        else
          change_all(effect, size, bits, value.f32_of(chip));
      }
    };
  };
  return how;
}

/// Whether a step returns floats of its own, which in bf16 are stored so.
bool has_size(const Place& place, NumberFormat format) {
  if (place.is_weight() || place.site.phase != "prefill" || !place.program.of_layer()) return false;
  const ValueDecl& made = place.op().results[0];
  if (place.type_of(made.name).integer || place.op().results.size() > 1 ||
      place.op().kind == OpKind::append || made.role.kind == Role::Kind::weight)
    return false;
  if (format == NumberFormat::f32) return true;
  const ValueRow* const row = value_row(made.role, place.source_case().model.rows.get());
  return row != nullptr && row->stored && made.role.kind == Role::Kind::checkpoint &&
         !made.layout.is_partial();
}

void add(SizeSeen& to, const Sights& sights) {
  ++to.sites;
  to.exact += sights.own[static_cast<std::size_t>(Seer::exact)] == Sight::seen ? 1 : 0;
  to.bounds += sights.own[static_cast<std::size_t>(Seer::bounds)] == Sight::seen ? 1 : 0;
  for (std::size_t i = 0; i < kOtherChecks; ++i) {
    to.end_to_end[i] += sights.others.end_to_end[i] ? 1 : 0;
    to.per_value[i] += sights.others.per_value[i] ? 1 : 0;
  }
}

/// The right run, for what is seen without a fault.
const Operator& no_fault() {
  static const Operator none{
      .name = "none", .fault_class = "M4", .what = "", .parameters = [](const Place&) {
        return std::vector<std::string>{"-"};
      }};
  return none;
}

std::vector<TypedPlan> typed_in(const std::vector<FaultCase>& cases, NumberFormat format) {
  std::vector<TypedPlan> all;
  for (const FaultCase& one : cases) {
    Case c = one.source_case;
    c.numerics.act = format;
    all.push_back(make_typed_plan(c));
    if (!all.back().types) throw FindingsError(all.back().findings);
  }
  return all;
}

SizeCurve curve_of(const Effect& effect, NumberFormat format, const std::vector<TypedPlan>& typed,
                   OracleMemo& memo, Threads& pool) {
  const unsigned bits = format == NumberFormat::bf16 ? 16 : 0;
  const std::vector<int>& sizes = bits == 0 ? effect.sizes : effect.sizes_in_bf16;
  const std::vector<SizeSite> sites = sites_of_sizes(typed, format);
  std::vector<Operator> operators{no_fault()};
  SizeCurve curve{std::string(effect.what), std::string(to_string(format)), {{"none"}}};
  for (const int size : sizes) {
    operators.push_back(operator_of(effect, size, bits));
    curve.sizes.push_back({effect.name(size)});
  }
  const auto of_size = std::ssize(sites);
  std::mutex mutex;
  pool.for_each(std::ssize(operators) * of_size, [&](std::int64_t i) {
    const auto size = static_cast<std::size_t>(i / of_size);
    const SizeSite& at = sites[static_cast<std::size_t>(i % of_size)];
    const Sights sights =
        detect_in_floats(typed[at.of_case], {&operators[size], at.site, "-"}, memo);
    const std::lock_guard lock(mutex);
    add(curve.sizes[size], sights);
  });
  return curve;
}

}  // namespace

std::vector<SizeSite> sites_of_sizes(const std::vector<TypedPlan>& cases, NumberFormat format) {
  std::vector<SizeSite> all;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<Site> own;
    for (const Place& place : places_of(cases[i]))
      if (has_size(place, format)) own.push_back(place.site);
    const std::size_t n = own.size(), wanted = cases.size() == 1 ? n : std::min<std::size_t>(2, n);
    for (std::size_t k = 0; k < wanted; ++k) all.push_back({i, own[(i + k * ((n + 1) / 2)) % n]});
  }
  return all;
}

std::vector<SizeCurve> smallest_effects(const std::vector<FaultCase>& cases, OracleMemo& memo,
                                        int threads) {
  std::vector<SizeCurve> curves;
  Threads pool(threads);
  std::map<NumberFormat, std::vector<TypedPlan>> typed;
  for (const NumberFormat format : {NumberFormat::f32, NumberFormat::bf16})
    typed.emplace(format, typed_in(cases, format));
  for (const Effect& effect : effects())
    for (const auto& [format, plans] : typed)
      curves.push_back(curve_of(effect, format, plans, memo, pool));
  return curves;
}

}  // namespace shardproof::faults
