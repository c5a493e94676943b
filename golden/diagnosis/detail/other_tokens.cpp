#include "golden/diagnosis/detail/other_tokens.h"

#include <algorithm>
#include <numeric>

#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {

std::optional<bounds::IntervalTensor> OtherTokens::at(const std::string& id,
                                                      std::int64_t position) {
  const std::int64_t V = q_.step().extent('V');
  IntTensor ids(Shape{V, 1});
  std::iota(ids.data.begin(), ids.data.end(), 0);
  PassPlan pass = q_.replay().pass(q_.place().pass);
  pass.L = 1;
  pass.rows = {{.rows = V, .start = position}};
  change_ = {.pass = std::move(pass), .ids = std::move(ids)};
  values_.clear();
  if (!add(id)) return std::nullopt;
  return std::move(values_.at(id));
}

/// Computes a value and all that it follows from.
bool OtherTokens::add(const std::string& id) {
  if (values_.contains(id)) return true;
  const bounds::Derivation::Place place = q_.replay().place_of(id);
  const Step& step = q_.step_of(id);
  if (place.pass != q_.place().pass || step.masked() || step.calls(ModelOp::append)) return false;
  // Of a table each token has a row.
  const auto times = static_cast<double>(step.calls(ModelOp::gather) ? 1 : step.extent('V'));
  for (const TextWeight* const weight : step.weights(WeightKind::matrix))
    left_ -= times * static_cast<double>(
                         element_count(q_.replay().weights().shape(step.weight_id(*weight))));
  const auto& operands = step.operands();
  if (left_ < 0 || !std::all_of(operands.begin(), operands.end(),
                                [this](const std::string& of) { return add(of); }))
    return false;
  values_.emplace(
      id, step.under(
                  change_, [this](const std::string& of) -> const auto& { return values_.at(of); })
              .rounded(q_.replay().format_at(place)));
  return true;
}

}  // namespace shardproof::diagnosis
