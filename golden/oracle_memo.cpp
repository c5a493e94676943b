#include "golden/oracle_memo.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/storage.h"
#include "weights/generator.h"

namespace shardproof {
namespace {

/// What the oracle's answer depends on besides the passes.
std::string oracle_key(const Case& c, const Weights* given) {
  return fmt::format("{} {} {} {} {} {}", fmt::ptr(given), print_model(c.model),
                     to_string(c.model.block), to_string(c.numerics.weights),
                     to_string(c.numerics.act), c.seed);
}

std::shared_ptr<const OracleMemo::Known> ask_oracle(const Case& c, const Passes& passes,
                                                    const Weights* given) {
  // The case's model: of a weights file's it may differ in what is no matter of weights.
  const Weights weights =
      given != nullptr ? Weights(c.model, {given->all().begin(), given->all().end()}, given->kept())
                       : generate_weights(c.model, c.seed);
  IntTensor prompt = generate_prompt(c.model, c.seed, passes.batch(), passes.prompt());
  Numerics numerics = c.numerics;
  numerics.regime = Regime::exact;  // of an f32 case the oracle is what drift is measured from
  oracle::Answer answer = oracle::run(weights, {numerics, prompt, passes});
  return std::make_shared<const OracleMemo::Known>(OracleMemo::Known{
      stored_as(weights, c.numerics.weights), oracle::as_stored(weights, c.numerics.weights),
      std::move(prompt), std::move(answer)});
}

}  // namespace

std::shared_ptr<const OracleMemo::Known> OracleMemo::get(const RunPlan& plan,
                                                         const Weights* given) {
  return get(plan.given, plan.passes, given);
}

std::shared_ptr<const OracleMemo::Known> OracleMemo::get(const Case& c, const Weights* given) {
  return get(c, c.passes(), given);
}

std::shared_ptr<const OracleMemo::Known> OracleMemo::get(const Case& c, const Passes& passes,
                                                         const Weights* given) {
  const std::string key = oracle_key(c, given);
  std::promise<std::shared_ptr<const Known>> promise;
  std::shared_future<std::shared_ptr<const Known>> answer = promise.get_future().share();
  bool asked = false;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.key == key && entry.passes == passes;
    });
    if (at != entries_.end()) {
      asked = true;
      answer = at->known;
      entries_.splice(entries_.begin(), entries_, at);
    } else {
      entries_.push_front({key, passes, answer});
      if (entries_.size() > kKept) entries_.pop_back();
    }
  }
  if (asked) return answer.get();
  try {
    promise.set_value(ask_oracle(c, passes, given));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
  return answer.get();
}

}  // namespace shardproof
