#include "engine/shards/hazards.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace shardproof {
namespace {

/// The lowest-numbered chip with this one's coordinates along the axes in use. Computed from the
/// chip's number (x·Y + y)·Z + z alone, independently of the layouts' arithmetic.
int first_replica(const Torus& torus, const Layout& layout, int chip) {
  const int Y = torus.size(Axis::y);
  const int Z = torus.size(Axis::z);
  std::array<int, 3> at{chip / (Y * Z), chip / Z % Y, chip % Z};
  std::array<bool, 3> used{};
  for (const Layout::Dim& dim : layout.dims())
    for (Axis a : dim.axes) used[static_cast<std::size_t>(a)] = true;
  for (Axis a : layout.partial()) used[static_cast<std::size_t>(a)] = true;
  for (std::size_t a = 0; a < 3; ++a)
    if (!used[a]) at[a] = 0;
  return (at[0] * Y + at[1]) * Z + at[2];
}

/// Bitwise: == would treat NaNs and signed zeros differently.
bool same_bits(const void* a, const void* b, std::size_t bytes) {
  return std::memcmp(a, b, bytes) == 0;
}

/// "0x3f800000": an element's bits.
template <class T>
std::string bits_of(const T& element) {
  std::array<unsigned char, sizeof(T)> bytes{};
  std::memcpy(bytes.data(), &element, sizeof(T));
  std::string text;
  for (unsigned char byte : bytes) text = fmt::format("{:02x}", byte) + text;
  return "0x" + text;
}

std::string bits_of(const FieldElement& element) { return to_string(element); }

template <class T>
std::optional<Finding> difference(const std::string& step, std::string_view what,
                                  const Layout& declared, const Torus& torus,
                                  const ChipArrays<T>& chips) {
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const int first = first_replica(torus, declared, chip);
    if (chips.shares(static_cast<std::size_t>(first), static_cast<std::size_t>(chip))) continue;
    const auto& a = chips[static_cast<std::size_t>(first)];
    const auto& b = chips[static_cast<std::size_t>(chip)];
    if (a.size() == b.size() && (a.empty() || same_bits(a.data(), b.data(), a.size() * sizeof(T))))
      continue;
    Finding found{.detector = Detector::replicas, .label = "hazard_replicas"};
    found.step = step;
    found.chip = torus.name(chip);
    const std::string both = fmt::format("{} : {}: chips {} and {} hold the same block, but", step,
                                         declared.to_string(), torus.name(first), torus.name(chip));
    if (a.size() != b.size()) {
      found.message = fmt::format("{} {} and {} {}", both, a.size(), b.size(), what);
      return found;
    }
    std::size_t i = 0;
    while (same_bits(&a[i], &b[i], sizeof(T))) ++i;
    found.index = {static_cast<std::int64_t>(i)};
    found.expected = bits_of(a[i]);
    found.actual = bits_of(b[i]);
    found.message = fmt::format("{} their {} differ at local element {}: {} and {}", both, what, i,
                                found.expected, found.actual);
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> replica_difference(const std::string& step, const Layout& declared,
                                          const Sharded& value) {
  if (const auto* partial = std::get_if<Partial>(&value.data())) {
    if (auto found = difference(step, "partial values", declared, value.torus(), partial->values))
      return found;
    return difference(step, "bounds", declared, value.torus(), partial->bounds);
  }
  if (const auto* f32 = std::get_if<ChipArrays<float>>(&value.data()))
    return difference(step, "values", declared, value.torus(), *f32);
  if (value.holds_field())
    return difference(step, "field elements", declared, value.torus(), value.field().values);
  return difference(step, "integers", declared, value.torus(), value.i32());
}

}  // namespace shardproof
