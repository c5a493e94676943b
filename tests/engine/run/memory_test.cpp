// The terms of the estimate, each by a count of its own.
#include "engine/run/memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weights/model/registry.h"
#include "weights/storage/weights.h"

namespace shardproof::cost {
namespace {

double count(const Shape& shape) { return static_cast<double>(element_count(shape)); }

/// The weights, generated, stored and as the oracle keeps them: 4 + 4 bytes and its 12.
double weights(const ModelConfig& model) {
  double n = 0.0;
  for (const WeightSpec& spec : weight_specs(model)) n += count(spec.shape);
  return 24.0 * n;
}

/// Every checkpoint of every pass, the caches of each as long as the last's, of passes over
/// prefixes as long as these; scores are of a row's prefix, too. Rows of a text that have prefixes
/// or are of unequal length are computed one by one, and then put together: twice what there is,
/// and each prefix once for each row.
double checkpoints(const RunPlan& plan) {
  double n = 0.0;
  const SharedPrefix prefix = plan.passes.prefix();
  const bool alone =
      plan.source_case.model.rows != nullptr && (!plan.passes.full() || prefix.given());
  for (std::int64_t i = 0; i < plan.passes.size(); ++i)
    for (const CheckpointSpec& spec : checkpoint_specs(plan.source_case.model)) {
      const PassPlan pass = plan.passes.at(i);
      const bool over = pass.phase == Phase::prefix, cache = spec.name.ends_with("_cache");
      const std::int64_t own = over ? 0 : plan.passes.cached();
      const double copies =
          !alone ? 1.0
          : over ? 1.0 + static_cast<double>(plan.passes.batch()) / static_cast<double>(prefix.rows)
                 : 2.0;
      n += copies * (spec.per_layer ? static_cast<double>(plan.source_case.model.layers) : 1.0) *
           count(shape_of(spec.dims, plan.source_case.model,
                          {over ? prefix.rows : plan.passes.batch(), pass.L,
                           own + (over || !cache ? prefix.length : 0)}));
    }
  return 4.0 * n;
}

/// Each block once, of a partial value once for each partial sum; or every chip's own.
double on_chips(const Type& type, const Torus& torus, Replicas replicas) {
  if (replicas == Replicas::shared) return count(type.shape) * torus.size(type.layout.partial());
  return static_cast<double>(torus.chips()) * count(local_shape(type.layout, type.shape, torus));
}

/// Of a value that is a matrix in contractions, the norms of its columns, the dims that it alone
/// brings to a result.
double norms(const PhasePrograms& programs, const ValueTypes& types, const std::string& name,
             Replicas replicas) {
  double most = 0.0;
  for (const Op& op : programs.layer.ops)
    for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
      if (op.args[2 * t + 1] != name) continue;
      const EinsumSpec::Term& term = op.spec.terms[t];
      const Type& type = types.at(name);
      double rows = 1.0;  // in a shard
      const Shape local = local_shape(type.layout, type.shape, programs.torus);
      for (const char letter : term.a)
        if (const auto at = term.b.find(letter); at != std::string::npos)
          rows *= static_cast<double>(local[at]);
      most = std::max(most, on_chips(type, programs.torus, replicas) / rows);
    }
  return 8.0 * most;
}

double placed(const PhasePrograms& programs, const ValueTypes& types, double layers, bool exact,
              Replicas replicas) {
  double n = 0.0;
  for (const ValueDecl& input : programs.layer.inputs)
    if (const std::string role = input.role.to_string();
        role.starts_with("weight ") || role.starts_with("previous ") || role.starts_with("prefix "))
      n += 4.0 * on_chips(types.at(input.name), programs.torus, replicas) +
           (exact ? norms(programs, types, input.name, replicas) : 0.0);
  return layers * n;
}

/// The largest sum of what lives behind one op: made, and used by it or later, or never.
double live(const PhasePrograms& programs, const ValueTypes& types, bool exact, Replicas replicas) {
  const std::vector<Op>& ops = programs.layer.ops;
  const auto used_from = [&](const std::string& name, std::size_t from) {
    bool ever = false;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (std::count(ops[i].args.begin(), ops[i].args.end(), name) > 0) {
        ever = true;
        if (i >= from) return true;
      }
    return !ever;
  };
  double most = 0.0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    double now = 0.0;
    for (std::size_t made = 0; made <= i; ++made)
      for (const ValueDecl& r : ops[made].results)
        if (used_from(r.name, i))
          now += (r.layout.is_partial() ? 12.0 : 4.0) *
                     on_chips(types.at(r.name), programs.torus, replicas) +
                 (exact ? norms(programs, types, r.name, replicas) : 0.0);
    most = std::max(most, now);
  }
  return most;
}

/// What the scalar model holds of a pass: each value whole, a partial one once for each partial
/// sum.
double scalar(const PhasePrograms& programs, const ValueTypes& types, double layers) {
  double n = 0.0;
  for (const Op& op : programs.layer.ops)
    for (const ValueDecl& r : op.results)
      n += count(types.at(r.name).shape) * programs.torus.size(r.layout.partial());
  return 4.0 * layers * n;
}

/// The elements of the largest array that a trace has: a weight, or a value of a layer.
double largest_array(const RunPlan& plan, const PlanTypes& types) {
  double most = 0.0;
  for (const WeightSpec& spec : weight_specs(plan.source_case.model))
    most = std::max(most, count(spec.shape));
  for (const TypedPasses& group : types.passes)
    for (const Op& op : plan.programs(group.phase).layer.ops)
      for (const ValueDecl& r : op.results)
        most = std::max(most, count(group.last.layer.at(r.name).shape));
  return most;
}

TEST(EstimatedBytes, AreTheSumOfTheirTerms) {
  for (const char* line :
       {"torus=1x1x1 gen=1", "torus=2x1x3 prefill=ws2d:heads prompt=7 chunk=3 gen=4",
        "torus=2x1x3 prefill=ws2d:heads decode=ws2d:batch gen=3",
        "torus=2x1x3 prefill=wg-xyz:batch decode=ws1d:heads gen=2 regime=f32",
        "torus=2x2x2 model=palm-tiny,bias=all block=serial regime=f32 schedule=ring",
        "torus=2x1x3 prefill=ws2d:heads decode=ws2d:batch gen=3 prompt=9 chunk=2 prefix=5:3",
        "torus=2x1x3 prefill=wg-xyz:batch prompt=7 prefix=3:24 regime=f32", "TEXT gen=2 prompt=7",
        "TEXT gen=2 prompt=7 chunk=3 lengths=7,5", "torus=2x1x3 prefill=ws2d:batch prompt=90",
        "TEXT gen=3 prompt=9 chunk=2 prefix=5:3"}) {
    std::string keys = line;
    if (keys.starts_with("TEXT"))
      keys.replace(0, 4,
                   "torus=2x1x3 prefill=ws2d:batch model=" SHARDPROOF_SOURCE
                   "/tests/data/models/llama-3.model");
    const RunPlan plan = make_plan(parse_case("batch=24 " + keys));
    const PlanTypes types = check(plan);
    const auto layers = static_cast<double>(plan.source_case.model.layers);
    const bool exact = plan.source_case.numerics.regime == Regime::exact;
    for (const Replicas replicas : {Replicas::shared, Replicas::own}) {
      std::map<Phase, double> of_phase;
      double lives = 0.0, scalars = 0.0;
      for (const TypedPasses& group : types.passes) {
        const PhasePrograms& programs = plan.programs(group.phase);
        of_phase[group.phase] = std::max(
            of_phase[group.phase], placed(programs, group.last.layer, layers, exact, replicas));
        lives = std::max(lives, live(programs, group.last.layer, exact, replicas));
        scalars = std::max(scalars, scalar(programs, group.last.layer, layers));
      }
      double want = weights(plan.source_case.model) + checkpoints(plan) + lives;
      for (const auto& [phase, bytes] : of_phase) want += bytes;
      if (plan.source_case.numerics.regime == Regime::f32) want += scalars;
      EXPECT_EQ(estimated_bytes(plan, types, replicas), want) << line;
      // Without the answer and its judge, and with weights as they are given.
      double of_run = weights(plan.source_case.model) / 6.0 + lives;
      for (const auto& [phase, bytes] : of_phase) of_run += bytes;
      EXPECT_EQ(estimated_bytes(plan, types, replicas, Holding::run), of_run) << line;
      EXPECT_EQ(estimated_bytes(plan, types, replicas, Holding::traced_run),
                of_run + 4.0 * largest_array(plan, types))
          << line;
    }
  }
}

// A run stores weights in another type, or folds a scale into them, beside those that are given.
TEST(EstimatedBytes, OfARunCountWeightsThatItStores) {
  const auto bytes = [](const std::string& more) {
    const RunPlan plan = make_plan(parse_case("torus=2x1x3 prefill=ws2d:batch batch=24 " + more));
    return estimated_bytes(plan, check(plan), Replicas::shared, Holding::run);
  };
  const double stored = weights(parse_case("").model) / 6.0;
  EXPECT_EQ(bytes("weights=bf16"), bytes("") + stored);
  EXPECT_EQ(bytes("model=palm-tiny,softmax=base2"), bytes("model=palm-tiny") + stored);
}

// Of weights above 2 GiB one program's are placed at a time: the head's, where they are the most,
// or a layer's, however many there are.
TEST(EstimatedBytes, OfLargeModelsHaveOneProgramsWeightsPlaced) {
  for (const auto& [model, V] :
       {std::pair{"layers=1", 128256}, {"layers=1", 8192}, {"layers=9", 8192}}) {
    const RunPlan plan = make_plan(
        parse_case(fmt::format("torus=2x2x2 prefill=ws1d:heads batch=2 prompt=8 gen=1 regime=f32 "
                               "model=llama-2-70b,{},V={}",
                               model, V)));
    const PlanTypes types = check(plan);
    const TypedPasses& prefill = types.passes.front();
    const PhasePrograms& programs = plan.programs(prefill.phase);
    double caches = 0.0, of_layer = 0.0;
    for (const ValueDecl& input : programs.layer.inputs) {
      const double n =
          on_chips(prefill.last.layer.at(input.name), programs.torus, Replicas::shared);
      if (input.role.kind == Role::Kind::weight) of_layer += 4.0 * n;
      if (input.role.kind == Role::Kind::previous) caches += 4.0 * n;
    }
    caches *= static_cast<double>(plan.source_case.model.layers);
    const double unembedding = 4.0 * 8192 * V, of_head = unembedding + 4.0 * 8192;  // and a gain
    const double run = bytes_in_memory(weight_specs(plan.source_case.model)) +
                       std::max(of_layer + caches, of_head) +
                       live(programs, prefill.last.layer, false, Replicas::shared);
    EXPECT_EQ(estimated_bytes(plan, types, Replicas::shared, Holding::run), run) << model << V;
    // The trace has the largest array whole: the unembedding, or a matrix of the feed-forward.
    EXPECT_EQ(estimated_bytes(plan, types, Replicas::shared, Holding::traced_run),
              run + std::max(unembedding, 4.0 * 8192 * 28672))
        << model << V;
  }
}

TEST(EstimatedBytes, AreLessWherePrefixesAreShared) {
  const auto bytes = [](const std::string& more) {
    const RunPlan plan =
        make_plan(parse_case("torus=2x1x3 prefill=ws2d:batch batch=24 prompt=9 chunk=9 " + more));
    return estimated_bytes(plan, check(plan));
  };
  // Of eight of nine positions values and caches are those of so many rows.
  EXPECT_LT(bytes("prefix=8:1"), bytes("prefix=8:6"));
  EXPECT_LT(bytes("prefix=8:6"), bytes("prefix=8:12"));
}

TEST(EstimatedBytes, GrowWithThePassesOfThePlan) {
  RunPlan plan = make_plan(parse_case("torus=2x1x3 batch=6 prompt=8 chunk=4 gen=2"));
  const double before = estimated_bytes(plan, check(plan));
  // The same passes, listed: the same. Another decode step costs a pass of checkpoints at least.
  std::vector<PassPlan> passes;
  for (std::int64_t i = 0; i < plan.passes.size(); ++i) passes.push_back(plan.passes.at(i));
  plan.passes = Passes(passes);
  EXPECT_EQ(estimated_bytes(plan, check(plan)), before);
  passes.push_back(passes.back());
  passes.back().name = "decode.2";
  passes.back().previous = "decode.1";
  ++passes.back().cached;
  plan.passes = Passes(passes);
  EXPECT_EQ(
      estimated_bytes(plan, check(plan)),
      estimated_bytes(make_plan(parse_case("torus=2x1x3 batch=6 prompt=8 chunk=4 gen=3")),
                      check(make_plan(parse_case("torus=2x1x3 batch=6 prompt=8 chunk=4 gen=3")))));
}

}  // namespace
}  // namespace shardproof::cost
