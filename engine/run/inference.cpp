#include "engine/run/inference.h"

#include <algorithm>

#include "engine/run/placement.h"
#include "weights/error.h"

namespace shardproof {
namespace {

/// The tokens of a pass, int32 [B, L]: of a prefill out of the prompt, token 0 where a row has
/// none; of a decode step those sampled last, int32 [B], or out of the prompt if none are given.
IntTensor tokens_of(const PassPlan& pass, const IntTensor& prompt, const IntTensor* sampled) {
  IntTensor ids({pass.batch(), pass.L});
  if (pass.phase == Phase::decode && sampled != nullptr) {
    ids.data = sampled->data;
    return ids;
  }
  auto from = prompt.data.begin();
  auto to = ids.data.begin();
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, from += prompt.shape[1], to += pass.L)
      std::copy_n(from + group.start, group.tokens, to);
  return ids;
}

/// The position of each of these tokens, int32 [B, L].
IntTensor positions_of(const PassPlan& pass) {
  IntTensor positions({pass.batch(), pass.L});
  auto to = positions.data.begin();
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n)
      for (std::int64_t i = 0; i < pass.L; ++i) *to++ = static_cast<std::int32_t>(group.start + i);
  return positions;
}

struct Caches {
  SharedValue k, v;
};

/// The state of a run between passes.
class Runner {
 public:
  Runner(const RunPlan& plan, const Weights& weights, Threads& threads, Observer* observer,
         const Hazards& hazards, const FaultHooks& faults, Findings* findings,
         const std::shared_ptr<const Field>& field)
      : plan_(plan),
        placed_(weights, plan.given.numerics.weights, faults, field),
        threads_(threads),
        observer_(observer),
        hazards_(hazards),
        faults_(faults),
        findings_(findings) {
    placed_.place(plan.prefill);
    if (plan.passes.decodes()) placed_.place(plan.decode);
    const ModelConfig& m = plan.given.model;
    const Shape none{plan.passes.batch(), 0, m.K, m.Q};
    const Layout& cache = plan.prefill.cache;
    const Torus& torus = plan.prefill.torus;
    const auto empty = std::make_shared<Sharded>(
        field == nullptr ? shard(Tensor(none), cache, torus)
                         : shard(Array<FieldElement>(none), cache, torus, field));
    caches_.assign(static_cast<std::size_t>(layers()), {empty, empty});
  }

  /// Whether the findings ended the run: then nothing that a pass returns is to be used.
  bool ended() const { return findings_ != nullptr && findings_->ended(); }

  /// One pass over new ids [B, L]; returns the sampled tokens if the plan wants them.
  SharedValue pass(const PassPlan& pass, const IntTensor& ids) {
    pass_ = &pass;
    const PhasePrograms& programs = plan_.programs(pass.phase);
    const Layout bl = Layout::parse("BL");
    const auto ids_value = std::make_shared<Sharded>(shard(ids, bl, programs.torus));
    const auto pos_value = std::make_shared<Sharded>(shard(positions_of(pass), bl, programs.torus));

    SharedValue x = run(programs.embed, 0, {{"input ids", ids_value}})["embed"];
    for (int l = 0; l < layers() && !ended(); ++l) {
      Caches& cache = caches_[static_cast<std::size_t>(l)];
      auto out = run(programs.layer, l,
                     {{"in", x},
                      {"input pos", pos_value},
                      {"previous k_cache", cache.k},
                      {"previous v_cache", cache.v}});
      x = out["out"];
      cache = {out["k_cache"], out["v_cache"]};
    }
    if (ended()) return nullptr;
    const SharedValue logits = run(programs.head, layers() - 1, {{"out", x}})["logits"];
    if (!pass.sample || ended()) return nullptr;
    return run(programs.sample, layers() - 1, {{"logits", logits}})["token"];
  }

  /// After the last pass of the prefill.
  void hand_over(const PassPlan& prefill) {
    if (plan_.hand_over.ops.empty()) return;
    pass_ = &prefill;
    for (int l = 0; l < layers() && !ended(); ++l) {
      Caches& cache = caches_[static_cast<std::size_t>(l)];
      auto out = run(plan_.hand_over, l, {{"k_cache", cache.k}, {"v_cache", cache.v}});
      cache = {out["k_cache"], out["v_cache"]};
    }
  }

 private:
  int layers() const { return static_cast<int>(plan_.given.model.layers); }

  /// Runs a program on values by what they are ("previous k_cache"), and returns its outputs so;
  /// none where the findings ended it.
  std::map<std::string, SharedValue> run(const Program& program, int layer,
                                         const std::map<std::string, SharedValue>& given) {
    std::map<std::string, SharedValue> inputs;
    for (const ValueDecl& input : program.inputs)
      if (const auto at = given.find(input.role.to_string()); at != given.end())
        inputs[input.name] = at->second;
    placed_.supply(program, plan_.programs(pass_->phase).torus, layer, inputs);
    const auto outputs = execute(program, std::move(inputs),
                                 {plan_.given.model,
                                  threads_,
                                  observer_,
                                  {pass_->name, pass_->previous, layer},
                                  plan_.given.numerics,
                                  hazards_,
                                  /*donate_inputs=*/true,
                                  &faults_,
                                  findings_,
                                  pass_->rows});
    std::map<std::string, SharedValue> by_role;
    for (const auto& [name, value] : outputs)
      by_role[program.declared(name).role.to_string()] = value;
    return by_role;
  }

  const RunPlan& plan_;
  PlacedWeights placed_;
  Threads& threads_;
  Observer* observer_;
  Hazards hazards_;
  const FaultHooks& faults_;
  Findings* findings_;
  std::vector<Caches> caches_;
  const PassPlan* pass_ = nullptr;  // that runs
};

}  // namespace

IntTensor run_inference(const RunPlan& plan, const Weights& weights, const IntTensor& prompt,
                        Threads& threads, Observer* observer, const Hazards& hazards,
                        const FaultHooks& faults, Findings* findings,
                        const std::shared_ptr<const Field>& field) {
  const Weights stored =
      field == nullptr ? stored_as(weights, plan.given.numerics.weights) : weights;
  Runner runner(plan, stored, threads, observer, hazards, faults, findings, field);
  const std::int64_t batch = plan.passes.batch(), gen = plan.passes.gen();
  IntTensor generated({batch, gen}), sampled;
  std::int64_t step = 0;
  for (std::int64_t i = 0; i < plan.passes.size(); ++i) {
    const PassPlan pass = plan.passes.at(i);
    if (i > 0 && pass.phase == Phase::decode)
      if (const PassPlan before = plan.passes.at(i - 1); before.phase == Phase::prefill)
        runner.hand_over(before);
    if (runner.ended()) break;
    const SharedValue token =
        runner.pass(pass, tokens_of(pass, prompt, field == nullptr ? &sampled : nullptr));
    if (runner.ended()) break;
    if (!pass.sample || field != nullptr) continue;
    sampled = assemble_int(*token);
    for (std::int64_t b = 0; b < batch; ++b)
      generated.data[static_cast<std::size_t>(b * gen + step)] =
          sampled.data[static_cast<std::size_t>(b)];
    ++step;
  }
  return generated;
}

}  // namespace shardproof
