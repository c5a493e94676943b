#include "engine/cost/plan/detail/torus_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/cost/chip/quantity.h"
#include "engine/cost/plan/fitted_model.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::cost {
namespace {

/// Cuts an error message after the broken rule: legal values follow the first "; ".
std::string first_clause(std::string text) {
  if (const auto end = text.find("; "); end != std::string::npos) text.resize(end);
  return text;
}

/// Returns the numbers of rows per pass that split the batch into equal passes, largest first.
std::vector<std::int64_t> pass_rows(std::int64_t batch, std::int64_t unit) {
  std::vector<std::int64_t> rows;
  for (std::int64_t passes = 1; passes <= batch / unit; ++passes)
    if (batch % passes == 0 && batch / passes % unit == 0) rows.push_back(batch / passes);
  return rows;
}

bool faster_step(const Candidate& a, const Candidate& b) { return a.estimate < b.estimate; }

Choice choice_of(std::optional<Candidate> prefill, std::optional<Candidate> decode,
                 std::int64_t steps) {
  Choice choice;
  choice.steps = steps;
  double tokens = 0.0;
  if (prefill) {
    choice.latency += prefill->estimate;
    tokens += prefill->tokens();
  }
  if (decode) {
    const auto times = static_cast<double>(prefill ? steps : 1);
    choice.latency += times * decode->estimate;
    tokens += times * decode->tokens();
  }
  choice.prefill = std::move(prefill);
  choice.decode = std::move(decode);
  choice.cost = choice.torus().chips() * choice.latency / tokens;
  return choice;
}

}  // namespace

TorusSearch::TorusSearch(const PlanRequest& request, double parameters, const Torus& torus,
                         NumberFormat weights)
    : request_(request), parameters_(parameters), torus_(torus), weights_(weights) {}

bool TorusSearch::fits(const Candidate& candidate) const {
  return candidate.memory.total() <= request_.chip.hbm;
}

void TorusSearch::leave_out(const Strategy& strategy, Phase phase, std::int64_t batch,
                            std::string why, const Candidate* needs) {
  left_out.push_back({strategy, torus_, weights_, phase, batch, std::move(why),
                      needs == nullptr ? 0.0 : needs->memory.total(),
                      needs == nullptr ? 0.0 : needs->estimate});
}

bool TorusSearch::takes_heads(const Strategy& strategy, std::int64_t heads, bool least) const {
  if (!request_.pad_heads)
    return true;  // strategies that do not divide are rejected later, with the reason
  return least ? padded_heads(strategy, request_.model, torus_) == heads
               : heads_divide(strategy, request_.model, heads, torus_);
}

void TorusSearch::run() {
  std::set<std::int64_t> heads;
  for (const Strategy& strategy : request_.strategies)
    heads.insert(request_.pad_heads ? padded_heads(strategy, request_.model, torus_)
                                    : request_.model.H);
  for (const std::int64_t H : heads)
    evaluators_.emplace(H, Evaluator({fitted_model(request_.model, H, torus_), parameters_,
                                      request_.chip, torus_, weights_, request_.volumes}));
  for (const std::int64_t batch : request_.batches) {
    if (request_.phase != PlanPhase::both) {
      each_phase(batch);
      continue;
    }
    for (const std::int64_t H : heads) both_phases(H, batch);
  }
}

void TorusSearch::each_phase(std::int64_t batch) {
  const bool has_prefills = request_.phase != PlanPhase::decode;
  const bool has_decodes = request_.phase != PlanPhase::prefill;
  std::vector<Candidate> steps;
  if (has_decodes || !request_.alone)
    for (const auto& [heads, evaluator] : evaluators_)
      for (Candidate& one : decodes(heads, batch, true, has_decodes))
        steps.push_back(std::move(one));
  const auto beside =
      request_.alone ? steps.end() : std::min_element(steps.begin(), steps.end(), faster_step);
  for (const auto& [heads, evaluator] : evaluators_)
    for (const Strategy& strategy : request_.strategies) {
      if (!has_prefills || !takes_heads(strategy, heads, true)) continue;
      std::optional<Candidate> one =
          prefill(strategy, heads, batch,
                  beside == steps.end() ? std::map<std::string, double>{} : beside->resting);
      if (!one) continue;
      choices.push_back(choice_of(std::move(one), std::nullopt, request_.gen));
      if (beside != steps.end()) choices.back().beside = beside->strategy;
    }
  if (has_decodes)
    for (Candidate& one : steps)
      choices.push_back(choice_of(std::nullopt, std::move(one), request_.gen));
}

std::vector<Candidate> TorusSearch::decodes(std::int64_t heads, std::int64_t batch, bool least,
                                            bool noted) {
  std::vector<Candidate> found;
  const ModelConfig placed = fitted_model(request_.model, heads, torus_);
  const Pass step{Phase::decode, batch, 1, request_.context - 1};
  for (const Strategy& strategy : request_.strategies) {
    if (!takes_heads(strategy, heads, least)) continue;
    if (std::string why = why_no_pass(strategy, placed, torus_, step); !why.empty()) {
      if (noted) leave_out(strategy, Phase::decode, batch, std::move(why));
      continue;
    }
    try {
      Candidate one = evaluators_.at(heads).decode(strategy, batch, request_.context, request_.gen);
      if (fits(one))
        found.push_back(std::move(one));
      else if (noted)
        leave_out(strategy, Phase::decode, batch, "memory", &one);
    } catch (const Error& error) {
      if (noted) leave_out(strategy, Phase::decode, batch, first_clause(error.message()));
    }
  }
  return found;
}

std::optional<Candidate> TorusSearch::prefill(const Strategy& strategy, std::int64_t heads,
                                              std::int64_t batch,
                                              const std::map<std::string, double>& other) {
  const ModelConfig placed = fitted_model(request_.model, heads, torus_);
  const Pass all{Phase::prefill, batch, request_.prompt, 0};
  if (std::string why = why_no_pass(strategy, placed, torus_, all); !why.empty()) {
    leave_out(strategy, Phase::prefill, batch, std::move(why));
    return std::nullopt;
  }
  try {
    std::optional<Candidate> one;
    for (const std::int64_t rows : pass_rows(batch, smallest_batch(strategy, torus_))) {
      one = evaluators_.at(heads).prefill(strategy, batch, rows, request_.prompt);
      one->memory.other_weights = weights_besides(one->resting, other);
      if (fits(*one)) return one;
    }
    leave_out(strategy, Phase::prefill, batch, "memory", &*one);
  } catch (const Error& error) {
    leave_out(strategy, Phase::prefill, batch, first_clause(error.message()));
  }
  return std::nullopt;
}

void TorusSearch::both_phases(std::int64_t heads, std::int64_t batch) {
  std::vector<Resting> kinds;
  for (Candidate& one : decodes(heads, batch, false, true)) {
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const Resting& k) { return k.weights == one.resting; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Resting{one.resting, {}});
    kind->decodes.push_back(std::move(one));
  }
  for (Resting& kind : kinds) {
    stable_sort(kind.decodes,
                [](const Candidate& a, const Candidate& b) { return a.estimate < b.estimate; });
    std::optional<Candidate> best;
    for (const Strategy& strategy : request_.strategies) {
      if (!takes_heads(strategy, heads, false)) continue;
      std::optional<Candidate> one = prefill(
          strategy, heads, batch, request_.alone ? std::map<std::string, double>{} : kind.weights);
      if (!one) continue;
      // The fastest step that fits beside this prefill's weights.
      for (Candidate step : kind.decodes) {
        if (!request_.alone)
          step.memory.other_weights = weights_besides(step.resting, one->resting);
        if (!fits(step)) continue;
        choices.push_back(choice_of(one, std::move(step), request_.gen));
        if (!best || one->estimate < best->estimate) best = one;
        break;
      }
    }
    // The other steps, beside the best prefill.
    for (std::size_t i = 1; best && i < kind.decodes.size(); ++i) {
      Candidate step = kind.decodes[i];
      if (!request_.alone) step.memory.other_weights = weights_besides(step.resting, best->resting);
      if (fits(step)) choices.push_back(choice_of(best, std::move(step), request_.gen));
    }
  }
}

}  // namespace shardproof::cost
