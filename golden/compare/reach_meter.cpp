#include "golden/compare/reach_meter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace shardproof {

std::string element_text(std::uint32_t bits, bool integer) {
  if (integer) return fmt::format("{}", static_cast<std::int32_t>(bits));
  return fmt::format("{:.9g} (0x{:08x})", std::bit_cast<float>(bits), bits);
}

std::string element_text(const FieldElement& number, bool) { return to_string(number); }

Shape global_index(const Shape& shape, std::int64_t element) {
  Shape index(shape.size(), 0);
  for (std::size_t d = shape.size(); d-- > 0; element /= shape[d]) index[d] = element % shape[d];
  return index;
}

template <class Word>
ReachMeter<Word>::ReachMeter(const Torus& torus, const Shape& shape, bool integer,
                             std::int64_t parts)
    : torus_(torus), shape_(shape), integer_(integer) {
  const std::int64_t count = element_count(shape) * parts;
  wrong_chips_.resize(static_cast<std::size_t>(torus.chips()));
  wrong_.resize(static_cast<std::size_t>(count));
  seen_.resize(static_cast<std::size_t>(count));
  first_.resize(static_cast<std::size_t>(count));
  reach_.of_chips = torus.chips();
  reach_.of_elements = count;
}

template <>
double ReachMeter<FieldElement>::distance(const FieldElement& want, const FieldElement& got) const {
  return want == got ? 0.0 : std::numeric_limits<double>::infinity();
}

template <>
double ReachMeter<std::uint32_t>::distance(const std::uint32_t& want,
                                           const std::uint32_t& got) const {
  if (integer_)
    return std::abs(static_cast<double>(static_cast<std::int32_t>(got)) -
                    static_cast<double>(static_cast<std::int32_t>(want)));
  const double apart = std::abs(static_cast<double>(std::bit_cast<float>(got)) -
                                static_cast<double>(std::bit_cast<float>(want)));
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

template <class Word>
void ReachMeter<Word>::see(std::span<const int> chips, std::int64_t element, const Word& want,
                           const Word& got) {
  const auto at = static_cast<std::size_t>(element);
  if (!seen_[at]) {
    seen_[at] = true;
    first_[at] = got;
  } else if (first_[at] != got) {
    reach_.replicas = Reach::Replicas::differ;
  } else if (reach_.replicas == Reach::Replicas::none) {
    reach_.replicas = Reach::Replicas::agree;
  }
  if (got == want) return;
  for (int chip : chips) wrong_chips_[static_cast<std::size_t>(chip)] = true;
  wrong_[at] = true;
  const double apart = distance(want, got);
  if (apart <= most_) return;
  most_ = apart;
  reach_.worst_chip = torus_.name(chips.front());
  reach_.worst_index = global_index(shape_, element);
  reach_.worst_expected = element_text(want, integer_);
  reach_.worst_actual = element_text(got, integer_);
}

template <class Word>
Reach ReachMeter<Word>::finish() const {
  Reach reach = reach_;
  reach.chips = static_cast<int>(std::count(wrong_chips_.begin(), wrong_chips_.end(), true));
  reach.elements = std::count(wrong_.begin(), wrong_.end(), true);
  return reach;
}

template class ReachMeter<std::uint32_t>;
template class ReachMeter<FieldElement>;

}  // namespace shardproof
