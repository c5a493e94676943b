#include "golden/verify/field_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/run/inference.h"
#include "engine/run/placement.h"
#include "golden/compare/case_padding.h"
#include "golden/judge/judge.h"
#include "golden/verdict/text_degrees.h"
#include "golden/verify/observers.h"
#include "weights/text/text_model.h"

namespace shardproof {
namespace {

/// One run with one draw of the field's numbers.
class FieldRun {
 public:
  FieldRun(const RunPlan& plan, const VerifyOptions& options, const FieldSetting& setting)
      : options_(options),
        plan_(plan),
        field_(std::make_shared<const Field>(setting)),
        weights_(plan.source_case.model, {}),
        findings_(options.until) {
    // Field sums are exact, so schedule and dtype of sums have no effect.
    Numerics& n = plan_.source_case.numerics;
    n.regime = Regime::field;
    n.schedule = Schedule::group;
    n.acc = n.wire = NumberFormat::f32;
    // The field samples greedily.
    if (plan.source_case.sampling.sample == Sample::random) {
      plan_.source_case.sampling = {};
      plan_.prefix.sample = plan_.prefill.sample = plan_.decode.sample = sampling_program({});
    }
  }

  Judgement judged(OracleMemo& memo) {
    const auto known = memo.of_field(plan_, field_->setting(), options_.threads);
    Judge judge(known->answer, findings_, dim_padding(plan_.source_case));
    Observers both({options_.observer, &judge});
    const bool own = options_.observer != nullptr;
    Threads threads(options_.threads);
    judge.use(threads);
    run_inference(plan_, weights_, known->ids, threads,
                  own ? static_cast<Observer*>(&both) : &judge, options_.hazards, options_.faults,
                  &findings_, field_);
    Judgement result = judge.finish();
    const TextModel* const of_text = text_model(plan_.source_case.model);
    if (result.verdict == Verdict::equal && of_text == nullptr) look_up_all_ids(result);
    if (result.verdict != Verdict::equal) return result;
    FieldCounts counts = field_->counts();
    add_counts(counts, counts_of(known->answer));
    add_counts(counts, of_all_ids_);
    if (of_text != nullptr)
      add_counts(counts, counts_of_text(*of_text, plan_.source_case.numerics.act, plan_.passes));
    result.field = field_equality(field_->setting(), counts);
    const std::set<std::int32_t> met(known->ids.data.begin(), known->ids.data.end());
    result.field->ids_met = std::ssize(met);
    result.field->ids = plan_.source_case.model.V;
    result.field->distinct_ids = std::ssize(met) == tokens_of(known->ids);
    return result;
  }

 private:
  /// Returns the number of tokens; those of a prefix count once, however many rows share it.
  std::int64_t tokens_of(const IntTensor& ids) const {
    const SharedPrefix prefix = plan_.passes.prefix();
    return ids.shape[0] * (ids.shape[1] - prefix.length) + prefix.rows * prefix.length;
  }

  /// Looks up all ids once more in each phase, since the passes look up only some.
  void look_up_all_ids(Judgement& result) {
    std::vector<Phase> phases{Phase::prefill};
    if (plan_.passes.prefix().given()) phases.push_back(Phase::prefix);
    if (plan_.passes.decodes()) phases.push_back(Phase::decode);
    for (const Phase phase : phases) {
      const PhasePrograms& programs = plan_.programs(phase);
      const Case& c = plan_.source_case;
      const std::int64_t B =
          phase == Phase::prefix ? plan_.passes.prefix().rows : plan_.passes.batch();
      // Long enough for every id, and a multiple of every possible number of blocks.
      const std::int64_t chips = programs.torus.chips();
      const std::int64_t L = ((c.model.V + B - 1) / B + chips - 1) / chips * chips;
      IntTensor ids({B, L});
      for (std::size_t i = 0; i < ids.data.size(); ++i)
        ids.data[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % c.model.V);
      const PassPlan pass{"all_ids", "", phase, L, 0, {{B, 0, L}}, false};
      const oracle::field::Answer answer =
          oracle::field::run_embedding({c.model, c.numerics.weights, c.numerics.act, ids,
                                        Passes(std::vector<PassPlan>{pass}), field_->setting()});
      add_counts(of_all_ids_, counts_of(answer));
      Judge judge(answer, findings_, dim_padding(c));
      PlacedWeights placed(weights_, plan_.placed, c.numerics.weights, options_.faults, field_);
      std::map<std::string, SharedValue> inputs;
      placed.supply(programs.embed, programs.torus, 0, inputs);
      for (const ValueDecl& input : programs.embed.inputs)
        if (input.role.to_string() == "input ids")
          inputs[input.name] = std::make_shared<Sharded>(shard(ids, input.layout, programs.torus));
      Threads threads(options_.threads);
      execute(programs.embed, std::move(inputs),
              {c.model,
               threads,
               &judge,
               {pass.name, "", 0},
               c.numerics,
               options_.hazards,
               true,
               &options_.faults,
               &findings_,
               pass.rows,
               nullptr,
               &plan_.placed});
      const Judgement of_ids = judge.finish();
      result.tensors += of_ids.tensors;
      result.elements += of_ids.elements;
      result.findings = of_ids.findings;
      result.missing = of_ids.missing;
      result.verdict = of_ids.verdict;
      if (result.verdict != Verdict::equal) return;
    }
  }

  const VerifyOptions& options_;
  RunPlan plan_;
  std::shared_ptr<const Field> field_;
  Weights weights_;
  Findings findings_;
  FieldCounts of_all_ids_;  // additional counts of the unsharded model
};

bool met_zero(const Judgement& judgement) {
  return std::any_of(judgement.findings.begin(), judgement.findings.end(),
                     [](const Finding& found) { return found.label == "field_zero"; });
}

}  // namespace

Judgement judge_in_field(const RunPlan& plan, OracleMemo& memo, const VerifyOptions& options,
                         FieldSetting setting) {
  setting.seed = options.field_seed.value_or(plan.source_case.seed);
  try {
    Judgement first = FieldRun(plan, options, setting).judged(memo);
    if (!met_zero(first)) return first;
  } catch (const Error& error) {
    if (error.label() != "field_zero") throw;
  }
  setting.draw = 1;
  return FieldRun(plan, options, setting).judged(memo);
}

}  // namespace shardproof
