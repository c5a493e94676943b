#include "golden/rerun/text_run.h"

#include <cstddef>
#include <string>
#include <utility>

#include "golden/compare/row_padding.h"
#include "golden/rerun/float_math.h"
#include "oracle/walk/passes.h"
#include "oracle/walk/walk.h"
#include "oracle/walk/weights.h"

namespace shardproof::rerun {
namespace {

using oracle::graph::Lettered;

/// Returns the numbers that other programs hold of a value: of a cache those behind the slots of
/// prefixes, and 0 at padding.
template <class Real>
std::vector<double> numbers_of(const Lettered<Real>& value, const TextLine& line,
                               const PassPlan& plan) {
  const bool cache = oracle::graph::is_cache(line);
  const oracle::graph::OwnSlots own(value.letters, value.shape, cache ? plan.prefix.length : 0);
  const std::vector<bool> padding = padding_in_trace(line.letters, own.shape, false, plan, !cache);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < own.places.size(); ++i)
    numbers.push_back(
        !padding.empty() && padding[i] ? 0.0 : static_cast<double>(value.data[own.places[i]]));
  return numbers;
}

}  // namespace

template <class Real>
void run_text(const Question& question, const std::vector<PassPlan>& passes, std::uint64_t seed,
              std::uint64_t number, Watch& watch) {
  const TextModel& model = *text_model(question.weights.config());
  const ModelText& text = model.flat();
  const FloatMath<Real> math(model, question.arithmetic, seed, number);
  const auto weights = [&](const TextWeight& weight, const std::string& id, const Shape& shape) {
    oracle::graph::Lettered<Real> value{weight.letters, shape, {}};
    for (const double v : oracle::graph::elements_of(question.weights.find(id).get(), text,
                                                     model.sizes(), weight, id, shape))
      value.data.push_back(static_cast<Real>(v));
    return value;
  };
  oracle::graph::Walk<FloatMath<Real>> walk(text, model.sizes(), math, weights);
  bool continues = false;
  for (const PassPlan& plan : passes) {
    if (plan.prefix.given() && !std::exchange(continues, true))
      walk.take_rows(oracle::graph::prefixes_of(plan));
    walk.run(oracle::graph::tokens_of(plan, question.ids.at(plan.name)),
             [&](std::int64_t layer, const TextLine& line, Lettered<Real>& value) {
               const std::string id = oracle::graph::value_id(plan.name, layer, line.name);
               if (watch.wants(id)) watch.see(id, numbers_of(value, line, plan));
             });
  }
}

template void run_text<float>(const Question&, const std::vector<PassPlan>&, std::uint64_t,
                              std::uint64_t, Watch&);
template void run_text<double>(const Question&, const std::vector<PassPlan>&, std::uint64_t,
                               std::uint64_t, Watch&);

}  // namespace shardproof::rerun
