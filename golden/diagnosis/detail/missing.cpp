#include "golden/diagnosis/detail/missing.h"

#include <algorithm>

#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

std::vector<std::string> missing_ids(const Question& q) {
  const bounds::Derivation& replay = q.replay();
  std::vector<std::string> all, open{q.id()};
  while (!open.empty()) {
    const std::string of = std::move(open.back());
    open.pop_back();
    for (const std::string& id : q.step_of(of).operands()) {
      const bounds::Derivation::Place place = replay.place_of(id);
      if (replay.dumped(id) || place.pass != q.place().pass || place.layer != q.place().layer ||
          place.name == "ids" || std::find(all.begin(), all.end(), id) != all.end())
        continue;
      all.push_back(id);
      open.push_back(id);
    }
  }
  return all;
}

}  // namespace

MissingOperands::MissingOperands(const Question& q) : ids(missing_ids(q)) {
  const PassPlan& pass = q.replay().pass(q.place().pass);
  const auto add = [&](const Step& step) {
    for (const TextWeight* const weight : step.weights(WeightKind::matrix))
      products +=
          static_cast<double>(element_count(q.replay().weights().shape(step.weight_id(*weight)))) *
          static_cast<double>(pass.batch() * pass.L);
  };
  add(q.step());
  for (const std::string& id : ids) {
    add(q.step_of(id));
    products += static_cast<double>(q.replay().value(id).size());
  }
}

}  // namespace shardproof::diagnosis
