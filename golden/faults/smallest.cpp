#include "golden/faults/smallest.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <mutex>

#include "engine/numeric/threads.h"
#include "golden/faults/cases.h"
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

/// Every step of the prefill's layer that makes floats, other than weights and caches, and has one
/// result; in bf16 those that are stored so.
std::vector<Site> sites_of(const TypedPlan& typed, NumberFormat format) {
  std::vector<Site> all;
  for (const Place& place : places_of(typed)) {
    if (place.is_weight() || place.site.phase != "prefill" || !place.program.of_layer()) continue;
    const Role& role = place.op().results[0].role;
    if (place.type_of(place.op().results[0].name).integer || place.op().results.size() > 1 ||
        place.op().kind == OpKind::append || role.kind == Role::Kind::weight)
      continue;
    const ValueRow* const row = value_row(role);
    const bool stored = row != nullptr && row->stored && role.kind == Role::Kind::checkpoint &&
                        !place.op().results[0].layout.is_partial();
    if (format == NumberFormat::f32 || stored) all.push_back(place.site);
  }
  return all;
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

}  // namespace

std::vector<SizeCurve> smallest_effects(OracleMemo& memo, int threads) {
  const std::vector<FaultCase> cases = cases_of(Strategy::parse("ws2d:batch"));
  std::vector<SizeCurve> curves;
  Threads pool(threads);
  for (const Effect& effect : effects())
    for (const NumberFormat format : {NumberFormat::f32, NumberFormat::bf16}) {
      Case c = cases.at(0).source_case;
      c.numerics.act = format;
      const unsigned bits = format == NumberFormat::bf16 ? 16 : 0;
      const TypedPlan typed = make_typed_plan(c);
      const std::vector<Site> sites = sites_of(typed, format);
      const std::vector<int>& sizes = bits == 0 ? effect.sizes : effect.sizes_in_bf16;
      SizeCurve curve{std::string(effect.what), std::string(to_string(format)), {}};
      curve.sizes.push_back({"none"});
      for (const int size : sizes) curve.sizes.push_back({effect.name(size)});
      const auto of_size = std::ssize(sites);
      std::mutex mutex;
      pool.for_each(std::ssize(sizes) * of_size + 1, [&](std::int64_t i) {
        const auto s = static_cast<std::size_t>((i - 1) / of_size);
        const Operator how =
            i == 0
                ? Operator{.name = "none",
                           .fault_class = "M4",
                           .what = "",
                           .parameters = [](const Place&) { return std::vector<std::string>{"-"}; }}
                : operator_of(effect, sizes[s], bits);
        const Site& site = i == 0 ? sites[0] : sites[static_cast<std::size_t>((i - 1) % of_size)];
        const Sights sights = detect_in_floats(typed, {&how, site, "-"}, memo);
        const std::lock_guard lock(mutex);
        add(curve.sizes[i == 0 ? 0 : s + 1], sights);
      });
      curves.push_back(std::move(curve));
    }
  return curves;
}

}  // namespace shardproof::faults
