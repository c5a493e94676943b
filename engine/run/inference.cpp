#include "engine/run/inference.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/program/step_memo.h"
#include "engine/run/cache_crossing.h"
#include "engine/run/placement.h"
#include "weights/base/error.h"
#include "weights/model/softmax.h"

namespace shardproof {
namespace {

/// The tokens of a pass, int32 [B, L]. Prefill: from the prompt, token 0 where a row has none.
/// Prefix: from the first of its rows. Decode step: those sampled last, int32 [B], or from the
/// prompt if none are given.
IntTensor tokens_of(const PassPlan& pass, const SharedPrefix& prefix, const IntTensor& prompt,
                    const IntTensor* sampled) {
  IntTensor ids({pass.batch(), pass.L});
  if (pass.phase == Phase::decode && sampled != nullptr) {
    ids.data = sampled->data;
    return ids;
  }
  const std::int64_t B = prompt.shape[0], positions = prompt.shape[1];
  auto to = ids.data.begin();
  std::int64_t row = 0;
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++row, to += pass.L) {
      const std::int64_t of = pass.phase == Phase::prefix ? prefix.first_row(row, B) : row;
      std::copy_n(prompt.data.begin() + of * positions + group.start, group.tokens, to);
    }
  return ids;
}

/// The position of each token of a pass, int32 [B, L].
IntTensor positions_of(const PassPlan& pass) {
  IntTensor positions({pass.batch(), pass.L});
  auto to = positions.data.begin();
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n)
      for (std::int64_t i = 0; i < pass.L; ++i) *to++ = static_cast<std::int32_t>(group.start + i);
  return positions;
}

/// The slots of a pass's caches behind those of the prefixes, int32 [M].
IntTensor slots_of(const PassPlan& pass) {
  IntTensor slots({pass.prefix.length + pass.cached + pass.L});
  std::iota(slots.data.begin(), slots.data.end(), 0);
  return slots;
}

/// The caches of a layer, by name.
using Caches = std::map<std::string, SharedValue>;

/// Relabels a cache filled by the passes over prefixes as the rows that continue them read it.
SharedValue prefix_cache(const SharedValue& cache) {
  return std::make_shared<Sharded>(cache->relabelled(as_prefixes(cache->layout()), cache->shape()));
}

/// The state of a run between passes.
class Runner {
 public:
  Runner(const RunPlan& plan, const Weights& weights, Threads& threads, Observer* observer,
         const Hazards& hazards, const FaultHooks& faults, Findings* findings,
         const std::shared_ptr<const Field>& field)
      : plan_(plan),
        placed_(weights, plan.placed, plan.source_case.numerics.weights, faults, field,
                hazards.placed()),
        threads_(threads),
        observer_(observer),
        hazards_(hazards),
        faults_(faults),
        findings_(findings),
        field_(field) {
    const SharedPrefix prefix = plan.passes.prefix();
    if (prefix.given()) placed_.place(plan.prefix);
    placed_.place(plan.prefill);
    if (plan.passes.decodes()) placed_.place(plan.decode);
    if (prefix.given())
      empty_caches(plan.prefix, prefix.rows);
    else
      empty_caches(plan.prefill, plan.passes.batch());
    draw_by_ = {plan.source_case.sampling,
                plan.source_case.seed,
                {},
                natural_logit(plan.source_case.model, 1.0F)};
  }

  /// Returns true if the findings ended the run: then no result of a pass may be used.
  bool ended() const { return findings_ != nullptr && findings_->ended(); }

  /// Runs one pass over new ids [B, L]; returns the sampled tokens if the plan wants them.
  /// `generated`: tokens that each row has so far.
  SharedValue pass(const PassPlan& pass, const IntTensor& ids,
                   const std::vector<std::int64_t>& generated) {
    pass_ = &pass;
    const PhasePrograms& programs = plan_.programs(pass.phase);
    const Layout bl = Layout::parse("BL");
    const Replicas replicas = hazards_.placed();
    const auto ids_value = std::make_shared<Sharded>(shard(ids, bl, programs.torus, replicas));
    const auto pos_value =
        std::make_shared<Sharded>(shard(positions_of(pass), bl, programs.torus, replicas));

    // What every layer and the head may read: inputs of the pass, what the embedding returns.
    std::map<std::string, SharedValue> of_pass{{"input ids", ids_value}, {"input pos", pos_value}};
    if (plan_.source_case.model.rows != nullptr)
      of_pass["input slot"] = std::make_shared<Sharded>(
          shard(slots_of(pass), Layout::parse("M"), programs.torus, replicas));
    of_pass.merge(run(programs.embed, 0, of_pass));
    SharedValue x = of_pass["embed"];
    for (int l = 0; l < layers() && !ended(); ++l) {
      Caches& caches = caches_[static_cast<std::size_t>(l)];
      std::map<std::string, SharedValue> given = of_pass;
      given["in"] = x;
      for (const auto& [name, cache] : caches) given["previous " + name] = cache;
      if (!prefixes_.empty())
        for (const auto& [name, cache] : prefixes_[static_cast<std::size_t>(l)])
          given["prefix " + name] = cache;
      auto out = run(programs.layer_program(l), l, given);
      x = out["out"];
      for (auto& [name, cache] : caches) cache = out[name];
    }
    if (ended()) return nullptr;
    of_pass["out"] = x;
    auto out = run(programs.head, layers() - 1, of_pass);
    if (!pass.sample || ended()) return nullptr;
    draw_by_.rows.clear();
    for (const PassRows& group : pass.rows)
      for (std::int64_t n = 0; n < group.rows; ++n) {
        const std::size_t b = draw_by_.rows.size();
        draw_by_.rows.push_back({plan_.row_id(b), generated[b]});
      }
    return run(programs.sample, layers() - 1, out)["token"];
  }

  /// Moves the caches after the last pass of a phase, before the first of the next.
  void hand_over(const PassPlan& last) {
    pass_ = &last;
    if (last.phase == Phase::prefix) {
      for (const Caches& caches : caches_) {
        Caches& prefixes = prefixes_.emplace_back();
        for (const auto& [name, cache] : caches) prefixes[name] = prefix_cache(cache);
      }
      empty_caches(plan_.prefill, plan_.passes.batch());
      const auto moves = [&](std::size_t l) -> const Program& {
        return plan_.prefix_hand_over_program(static_cast<std::int64_t>(l));
      };
      lead(prefixes_, moves, "prefix ", /*cross=*/false);
      return;
    }
    const auto of_layer = [&](std::size_t l) -> const Program& {
      return plan_.hand_over_program(static_cast<std::int64_t>(l));
    };
    const auto of_prefixes = [&](std::size_t l) -> const Program& {
      return plan_.prefix_to_decode_program(static_cast<std::int64_t>(l));
    };
    lead(caches_, of_layer, "", plan_.crosses);
    lead(prefixes_, of_prefixes, "prefix ", plan_.crosses);
  }

 private:
  /// Results cached for a program that runs repeatedly.
  struct ProgramResults {
    explicit ProgramResults(const Program& program) : liveness(program), memo(program) {}

    Liveness liveness;
    ProgramMemo memo;
    std::map<int, std::map<std::string, SharedValue>> weights;  // and constants, by layer
  };

  int layers() const { return static_cast<int>(plan_.source_case.model.layers); }

  /// Sets the empty caches that a phase begins with.
  void empty_caches(const PhasePrograms& phase, std::int64_t batch) {
    std::map<std::string, SharedValue> made;
    caches_.clear();
    for (int l = 0; l < layers(); ++l) {
      Caches& empty = caches_.emplace_back();
      for (const auto& [name, layout] : phase.caches(l)) {
        SharedValue& cache = made[name];
        const Shape none = shape_of(layout.letters(), plan_.placed, {.B = batch});
        if (cache == nullptr)
          cache = std::make_shared<Sharded>(
              field_ == nullptr ? shard(Tensor(none), layout, phase.torus, hazards_.placed())
                                : shard(Array<FieldElement>(none), layout, phase.torus, field_,
                                        hazards_.placed()));
        empty[name] = cache;
      }
    }
  }

  /// Moves caches through a layer's hand-over that has `word` before their names, "prefix k_cache";
  /// if `cross`, first to the decode's torus. Then a program without ops runs too, so that
  /// observers see what arrived.
  template <class ProgramOf>
  void lead(std::vector<Caches>& caches, const ProgramOf& program_of, const std::string& word,
            bool cross) {
    for (std::size_t l = 0; l < caches.size() && !ended(); ++l) {
      const Program& program = program_of(l);
      if (program.ops.empty() && !cross) continue;
      std::map<std::string, SharedValue> given;
      const auto index = static_cast<int>(l);
      for (auto& [name, cache] : caches[l]) {
        if (cross)
          cache = CacheCrossing(program, plan_.decode.torus, execution(program, index))
                      .of(cache, word + name);
        given[word + name] = cache;
      }
      if (ended()) return;
      auto out = run(program, index, given);
      for (auto& [name, cache] : caches[l]) cache = out[word + name];
    }
  }

  /// Runs a program on values keyed by role ("previous k_cache"). Returns its outputs keyed by
  /// role; empty if the findings ended it.
  std::map<std::string, SharedValue> run(const Program& program, int layer,
                                         const std::map<std::string, SharedValue>& given) {
    ProgramResults& kept = kept_.try_emplace(&program, program).first->second;
    std::map<std::string, SharedValue> inputs;
    if (const auto known = kept.weights.find(layer); known != kept.weights.end()) {
      inputs = known->second;
    } else {
      placed_.supply(program, plan_.programs(pass_->phase).torus, layer, inputs);
      if (!placed_.on_demand()) kept.weights.emplace(layer, inputs);
    }
    for (const ValueDecl& input : program.inputs)
      if (const auto at = given.find(input.role.to_string()); at != given.end())
        inputs[input.name] = at->second;
    const auto outputs = execute(program, std::move(inputs), execution(program, layer));
    std::map<std::string, SharedValue> by_role;
    for (const auto& [name, value] : outputs)
      by_role[program.declared(name).role.to_string()] = value;
    return by_role;
  }

  Execution execution(const Program& program, int layer) {
    ProgramResults& kept = kept_.try_emplace(&program, program).first->second;
    return {plan_.source_case.model,
            threads_,
            observer_,
            {pass_->name, pass_->previous, layer, plan_.source_case.model.rows.get()},
            plan_.source_case.numerics,
            hazards_,
            /*donate_inputs=*/true,
            &faults_,
            findings_,
            pass_->rows,
            nullptr,
            &plan_.placed,
            draw_by_,
            pass_->prefix.length,
            &kept.liveness,
            &kept.memo,
            field_};
  }

  const RunPlan& plan_;
  PlacedWeights placed_;
  Threads& threads_;
  Observer* observer_;
  Hazards hazards_;
  const FaultHooks& faults_;
  Findings* findings_;
  std::shared_ptr<const Field> field_;
  std::vector<Caches> caches_;
  std::vector<Caches> prefixes_;    // of the prefixes that rows continue; empty until filled
  const PassPlan* pass_ = nullptr;  // the running pass
  Draws draw_by_;                   // how the tokens of the pass are drawn
  std::map<const Program*, ProgramResults> kept_;  // for the plan's programs
};

/// The tokens that the rows of a run have generated so far.
class Generated {
 public:
  Generated(std::int64_t batch, std::int64_t gen, const std::optional<Stop>& stop)
      : tokens({batch, gen}),
        next({batch}),
        counts(static_cast<std::size_t>(batch), 0),
        stop_(stop),
        ends_(static_cast<std::size_t>(batch), 0),
        ended_(static_cast<std::size_t>(batch), false) {
    if (stop) std::fill(tokens.data.begin(), tokens.data.end(), kNoToken);
  }

  /// The pass with each ended row replaced by a row of padding after its own tokens.
  PassPlan of_rows_that_go_on(PassPlan pass) const {
    if (std::find(ended_.begin(), ended_.end(), true) == ended_.end()) return pass;
    std::vector<PassRows> rows;
    std::size_t b = 0;
    for (const PassRows& group : pass.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++b) {
        PassRows row{1, group.start, group.tokens, group.last};
        if (ended_[b]) row = {1, ends_[b], 0, true};
        rows.push_back(row);
      }
    pass.rows = std::move(rows);
    return pass;
  }

  /// Adds the tokens that a pass has sampled, int32 [B], for the rows that it samples.
  void add(const PassPlan& pass, const IntTensor& sampled) {
    std::size_t b = 0;
    for (const PassRows& group : pass.rows)
      for (std::int64_t n = 0; n < group.rows; ++n, ++b) {
        if (!pass.samples(group)) continue;
        next.data[b] = sampled.data[b];
        const auto at = static_cast<std::int64_t>(b) * tokens.shape[1] + counts[b]++;
        tokens.data[static_cast<std::size_t>(at)] = sampled.data[b];
        if (!stop_ || sampled.data[b] != stop_->token) continue;
        ended_[b] = true;
        ends_[b] = group.end();
      }
  }
  /// Returns true if every row that counts has ended.
  bool all_ended() const {
    if (!stop_) return false;
    const auto end = stop_->rows == 0 ? ended_.end() : ended_.begin() + stop_->rows;
    return std::find(ended_.begin(), end, false) == end;
  }

  IntTensor tokens;                  ///< int32 [B, gen]
  IntTensor next;                    ///< int32 [B], input of each row's next decode step
  std::vector<std::int64_t> counts;  ///< number of each row's tokens

 private:
  std::optional<Stop> stop_;
  std::vector<std::int64_t> ends_;  // end of the tokens of each ended row
  std::vector<bool> ended_;
};

}  // namespace

IntTensor run_inference(const RunPlan& plan, const Weights& weights, const IntTensor& prompt,
                        Threads& threads, Observer* observer, const Hazards& hazards,
                        const FaultHooks& faults, Findings* findings,
                        const std::shared_ptr<const Field>& field,
                        const std::optional<Stop>& stop) {
  const Weights stored =
      field == nullptr ? stored_as(weights, plan.source_case.numerics.weights) : weights;
  Runner runner(plan, stored, threads, observer, hazards, faults, findings, field);
  Generated generated(plan.passes.batch(), plan.passes.gen(), stop);
  for (std::int64_t i = 0; i < plan.passes.size(); ++i) {
    const PassPlan pass = generated.of_rows_that_go_on(plan.passes.at(i));
    if (i > 0)
      if (const PassPlan before = plan.passes.at(i - 1); before.phase != pass.phase)
        runner.hand_over(before);
    if (runner.ended()) break;
    const IntTensor ids =
        tokens_of(pass, plan.passes.prefix(), prompt, field == nullptr ? &generated.next : nullptr);
    const SharedValue token = runner.pass(pass, ids, generated.counts);
    if (runner.ended()) break;
    if (!pass.sample || field != nullptr) continue;
    generated.add(pass, assemble_int(*token));
    if (generated.all_ended()) break;
  }
  return generated.tokens;
}

}  // namespace shardproof
