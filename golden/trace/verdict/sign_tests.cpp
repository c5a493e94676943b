#include "golden/trace/verdict/sign_tests.h"

#include "golden/bounds/number/signs.h"
#include "golden/trace/value/detail/each_number.h"

namespace shardproof::dump {

std::vector<std::string> sign_tests(const DumpedValue& dumped, const bounds::IntervalTensor& bound,
                                    std::size_t terms) {
  const Subject& s = dumped.subject;
  if (!s.dims.starts_with("BL") || s.last || bound.size() == 0) return {};
  bounds::Residues of;
  of.rows = static_cast<std::size_t>(s.shape[0] * s.shape[1]);
  of.columns = bound.size() / of.rows;
  of.residue.assign(bound.size(), 0.0);
  of.exact = bound.center;
  of.deviation.assign(bound.size(), 0.0);
  if (s.dims.ends_with("HQ") || s.dims.ends_with("KQ"))
    of.head = static_cast<std::size_t>(s.shape.back());
  of.truncation = 2 * bounds::unit_of(NumberFormat::f32) * static_cast<double>(terms);
  each_number(dumped, [&](double v, const std::vector<int>&, std::int64_t place, double) {
    const auto i = static_cast<std::size_t>(place);
    of.residue[i] = v * dumped.unit(place) - bound.center[i];
    // A likely radius equal to the worst case is not a multiple of a standard deviation.
    if (bound.likely[i] < bound.radius[i]) of.deviation[i] = bound.likely[i] / bounds::kLambda;
  });
  return bounds::signs(of);
}

}  // namespace shardproof::dump
