#include "golden/faults/detail/numbers.h"

#include "golden/faults/detail/one_term_each.h"

namespace shardproof::faults {
namespace {

ChipArrays<float> as_complete(const Partial& partial) {
  ChipArrays<float> values(partial.values.size());
  for (std::size_t chip = 0; chip < values.size(); ++chip)
    for (const double v : partial.values[chip]) values[chip].push_back(static_cast<float>(v));
  return values;
}

}  // namespace

Sharded::Data partial_sums(const ChipArrays<float>& values) {
  Partial partial;
  for (const auto& chip : values) {
    partial.values.push_back({});
    partial.values.back().assign(chip.begin(), chip.end());
  }
  partial.bounds.resize(values.size());
  partial.origins.resize(values.size());
  auto terms = std::make_shared<OneTermEach>();
  for (const auto& chip : values) terms->of_chip.emplace_back(chip.begin(), chip.end());
  partial.source = std::move(terms);
  return partial;
}

void believe(const Layout& layout, Regime regime, Sharded& value) {
  if (value.layout() == layout) return;
  Shape shape = value.local();
  for (std::size_t d = 0; d < shape.size(); ++d)
    shape[d] *= value.torus().size(layout.dims()[d].axes);
  if (value.holds_partial() && !layout.is_partial())
    value = {value.torus(), layout, shape, as_complete(value.partial())};
  else if (regime == Regime::exact && !value.holds_partial() && !value.stores_int32() &&
           layout.is_partial())
    value = {value.torus(), layout, shape, partial_sums(value.f32())};
  else
    value = value.relabelled(layout, shape);
}

}  // namespace shardproof::faults
