#include "golden/diagnosis/what_if.h"

#include <cmath>

#include "golden/row_padding.h"
#include "weights/registry.h"

namespace shardproof::diagnosis {

void consider_change(const Question& q, Search& search, Candidate candidate,
                     const Question::Change& change) {
  try {
    candidate.at = q.logical(q.under(change));
  } catch (const Error& e) {
    if (e.label() != "bounds_c1" && e.label() != "weights_name") throw;
    return;
  }
  search.consider(std::move(candidate));
}

void consider_places(const Question& q, Search& search, Candidate candidate,
                     std::function<std::size_t(std::size_t)> from) {
  candidate.at =
      q.logical([&q, from = std::move(from)](std::size_t g) { return q.expected_at(from(g)); });
  search.consider(std::move(candidate));
}

bounds::Carried scaled(const bounds::Carried& value, double factor, const bounds::Declared& by) {
  bounds::Carried y = value;
  for (std::size_t i = 0; i < y.size(); ++i) {
    y.center[i] *= factor;
    y.radius[i] =
        y.radius[i] * std::abs(factor) +
        (4 * by.operations.unit + bounds::unit_of(by.sums) + 0x1p-50) * std::abs(y.center[i]);
  }
  return y;
}

bool holds(const Question& q, const std::string& id, const bounds::Carried& expected) {
  if (!q.replay().dumped(id)) return false;
  const bounds::Carried& actual = q.replay().value(id);
  const bounds::Replay::Place place = q.replay().place_of(id);
  const bounds::Format format = q.replay().format_of(place.name);
  const std::vector<bool> padding = padding_in_trace(value_row(place.name)->dims, actual.shape,
                                                     false, q.replay().pass(place.pass));
  for (std::size_t i = 0; i < actual.size(); ++i)
    if ((padding.empty() || !padding[i]) &&
        !bounds::holds(bounds::values(expected.at(i), format), format, actual.center[i]))
      return false;
  return true;
}

bool follows(const Question& q, const std::string& id,
             const std::vector<std::pair<std::string, bounds::Carried>>& values) {
  if (!q.replay().dumped(id)) return false;
  bounds::Replay other(q.replay().weights(), q.replay());
  for (const auto& [of, value] : values) other.assume(of, value);
  return holds(q, id, other.expected(id));
}

}  // namespace shardproof::diagnosis
