#include "engine/run/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/strategies/layer_file.h"
#include "weights/error.h"
#include "weights/registry.h"

namespace shardproof {
namespace {

/// Weights at rest on the torus, by name and layout: placed once for all phases that agree on it.
class PlacedWeights {
 public:
  PlacedWeights(const Weights& weights, const Torus& torus) : weights_(weights), torus_(torus) {}

  SharedValue get(const std::string& name, const Layout& layout) {
    SharedValue& value = placed_[name + " : " + layout.to_string()];
    if (value) return value;
    const Tensor whole = name == "ones" ? constant_tensor(weights_.config()) : weights_.at(name);
    value = std::make_shared<Sharded>(shard(whole, layout, torus_));
    return value;
  }

  /// The weights a program declares among its inputs, for layer `layer`.
  void supply(const Program& program, int layer, std::map<std::string, SharedValue>& inputs) {
    for (const Result& input : program.inputs) {
      if (input.meaning.kind == Meaning::Kind::weight)
        inputs[input.name] = get(weight_id(layer, input.meaning.name), input.layout);
      if (input.meaning.kind == Meaning::Kind::constant)
        inputs[input.name] = get("ones", input.layout);
    }
  }

 private:
  const Weights& weights_;
  Torus torus_;
  std::map<std::string, SharedValue> placed_;
};

struct Caches {
  SharedValue k, v;
};

/// The state of a run between passes.
class Runner {
 public:
  Runner(const Inference& inference, const Weights& weights, std::int64_t batch, Threads& threads,
         Observer* observer, const Hazards& hazards)
      : inference_(inference),
        placed_(weights, inference.torus),
        batch_(batch),
        threads_(threads),
        observer_(observer),
        hazards_(hazards) {}

  void place(const PhasePrograms& phase) {
    std::map<std::string, SharedValue> ignored;
    placed_.supply(phase.embed, 0, ignored);
    placed_.supply(phase.head, 0, ignored);
    for (int l = 0; l < layers(); ++l) placed_.supply(phase.layer, l, ignored);
  }

  void empty_caches(const Layout& layout) {
    const Tensor none({batch_, 0, inference_.config.K, inference_.config.Q});
    const auto empty = std::make_shared<Sharded>(shard(none, layout, inference_.torus));
    caches_.assign(static_cast<std::size_t>(layers()), {empty, empty});
  }

  /// One pass over new ids [B, L]; returns the sampled tokens if they are wanted.
  SharedValue pass(const PhasePrograms& phase, const std::string& name, const IntTensor& ids,
                   bool sample) {
    begin(name);
    const std::int64_t L = ids.shape[1];
    IntTensor pos({batch_, L});
    for (std::int64_t i = 0; i < batch_ * L; ++i)
      pos.data[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(length_ + i % L);
    const Layout bl = Layout::parse("BL");
    const auto ids_value = std::make_shared<Sharded>(shard(ids, bl, inference_.torus));
    const auto pos_value = std::make_shared<Sharded>(shard(pos, bl, inference_.torus));

    SharedValue x = run(phase.embed, 0, {{"input ids", ids_value}}).at("embed");
    for (int l = 0; l < layers(); ++l) {
      Caches& cache = caches_[static_cast<std::size_t>(l)];
      const auto out = run(phase.layer, l,
                           {{"in", x},
                            {"input pos", pos_value},
                            {"previous k_cache", cache.k},
                            {"previous v_cache", cache.v}});
      x = out.at("out");
      cache = {out.at("k_cache"), out.at("v_cache")};
    }
    length_ += L;
    const SharedValue logits = run(phase.head, layers() - 1, {{"out", x}}).at("logits");
    if (!sample) return nullptr;
    return run(phase.sample, layers() - 1, {{"logits", logits}}).at("token");
  }

  void hand_over(const Program& program) {
    if (program.ops.empty()) return;
    for (int l = 0; l < layers(); ++l) {
      Caches& cache = caches_[static_cast<std::size_t>(l)];
      const auto out = run(program, l, {{"k_cache", cache.k}, {"v_cache", cache.v}});
      cache = {out.at("k_cache"), out.at("v_cache")};
    }
  }

 private:
  int layers() const { return static_cast<int>(inference_.config.layers); }

  void begin(const std::string& name) {
    previous_ = pass_;
    pass_ = name;
  }

  /// Runs a program on values by what they are ("previous k_cache"), and returns its outputs so.
  std::map<std::string, SharedValue> run(const Program& program, int layer,
                                         const std::map<std::string, SharedValue>& given) {
    std::map<std::string, SharedValue> inputs;
    for (const Result& input : program.inputs)
      if (const auto at = given.find(input.meaning.to_string()); at != given.end())
        inputs[input.name] = at->second;
    placed_.supply(program, layer, inputs);
    const auto outputs = execute(program, std::move(inputs),
                                 {inference_.config,
                                  threads_,
                                  observer_,
                                  {pass_, previous_, layer},
                                  inference_.numerics,
                                  hazards_,
                                  /*gives_up_inputs=*/true});
    std::map<std::string, SharedValue> by_meaning;
    for (const auto& [name, value] : outputs)
      by_meaning[program.declared(name).meaning.to_string()] = value;
    return by_meaning;
  }

  const Inference& inference_;
  PlacedWeights placed_;
  std::int64_t batch_;
  Threads& threads_;
  Observer* observer_;
  Hazards hazards_;
  std::vector<Caches> caches_;
  std::int64_t length_ = 0;  // of the caches
  std::string pass_, previous_;
};

std::int64_t chunk_length(const Inference& inference) {
  return inference.chunk > 0 ? inference.chunk : inference.prompt;
}

/// What the passes of a phase have in common.
Extents extents(const Inference& inference, bool prefill) {
  std::int64_t L = prefill ? 0 : 1;
  if (prefill)
    for (std::int64_t length : inference.lengths()) L = std::gcd(L, length);
  return extents_of(inference.config, inference.batch, L);
}

PhasePrograms phase_programs(const Inference& inference, bool prefill) {
  const Program* layer = prefill ? inference.layers.prefill : inference.layers.decode;
  const ActType act = inference.numerics.act;
  const Extents all = extents(inference, prefill);
  if (layer != nullptr) return programs_around(*layer, inference.config, all, inference.torus, act);
  PartitionedLayer made =
      partitioned(inference, prefill ? inference.prefill : inference.decode, prefill);
  return programs_around(std::move(made.layer), made.residual, made.cache, inference.config, all,
                         inference.torus, act);
}

IntTensor columns(const IntTensor& ids, std::int64_t begin, std::int64_t end) {
  IntTensor part({ids.shape[0], end - begin});
  for (std::int64_t b = 0; b < ids.shape[0]; ++b)
    std::copy_n(ids.data.begin() + b * ids.shape[1] + begin, end - begin,
                part.data.begin() + b * (end - begin));
  return part;
}

}  // namespace

std::vector<std::int64_t> Inference::lengths() const {
  const std::int64_t whole = chunk > 0 ? chunk : prompt;
  const std::int64_t rest = prompt % whole;
  return rest > 0 ? std::vector{whole, rest} : std::vector{whole};
}

PartitionedLayer partitioned(const Inference& inference, const Strategy& strategy, bool prefill) {
  return partition(strategy.table(), inference.config, extents(inference, prefill), inference.torus,
                   inference.numerics.act);
}

InferencePrograms build_programs(const Inference& inference) {
  InferencePrograms programs;
  programs.prefill = phase_programs(inference, true);
  const bool same =
      inference.prefill == inference.decode && inference.layers.prefill == inference.layers.decode;
  // A program of a strategy that cuts no L is the same for every length.
  const bool shared = inference.gen == 1 || (same && decodes(inference.decode));
  programs.decode = shared ? programs.prefill : phase_programs(inference, false);
  programs.hand_over = hand_over(programs.prefill.cache, programs.decode.cache,
                                 extents(inference, true), inference.torus);
  return programs;
}

void require_legal(const Inference& inference) {
  const std::int64_t batch = inference.batch, prompt = inference.prompt;
  const Numerics& numerics = inference.numerics;
  if (numerics.regime == Regime::exact && numerics.schedule != Schedule::group)
    throw Error("case_numerics",
                fmt::format("schedule={} needs regime=f32: exact sums have no order",
                            to_string(numerics.schedule)));
  if (numerics.weights == WeightType::int8)
    throw Error("case_numerics", "weights=int8 is not executed yet; legal: f32, bf16");
  if (inference.gen < 1) throw Error("case_gen", fmt::format("gen={}: at least 1", inference.gen));
  if (batch < 1) throw Error("case_batch", fmt::format("batch={}: at least 1", batch));
  if (prompt < 1) throw Error("case_prompt", fmt::format("prompt={}: at least 1", prompt));
  if (inference.chunk < 0 || inference.chunk > prompt)
    throw Error("case_chunk",
                fmt::format("chunk={}: from 1 to prompt={}", inference.chunk, prompt));
  const std::int64_t positions = prompt + inference.gen - 1;
  if (positions > inference.config.positions)
    throw Error("case_positions",
                fmt::format("prompt={} and gen={} need {} positions; the RoPE tables have {}",
                            prompt, inference.gen, positions, inference.config.positions));
  std::vector<Strategy> phases;
  const auto see = [&](const Program* layer, const Strategy& strategy,
                       const std::vector<std::int64_t>& lengths) {
    if (layer == nullptr) {
      phases.push_back(strategy);
      return;
    }
    require_layer(*layer, inference.config, numerics.act);
    // Here, where file and line are known, and not where ways lead to and from it.
    for (std::int64_t length : lengths) check(*layer, inference, length, prompt);
  };
  see(inference.layers.prefill, inference.prefill, inference.lengths());
  if (inference.gen > 1 && inference.layers.decode == nullptr) require_decodes(inference.decode);
  if (inference.gen > 1) see(inference.layers.decode, inference.decode, {1});
  require_legal(phases, inference.config, inference.torus, batch);
  if (inference.layers.prefill == nullptr)
    for (std::int64_t length : inference.lengths())
      require_lengths(inference.prefill, inference.torus, prompt, length);
}

std::map<std::string, Type> check(const Program& program, const Inference& inference,
                                  std::int64_t L, std::int64_t M) {
  const ModelConfig& c = inference.config;
  const std::int64_t batch = inference.batch;
  std::map<std::string, Shape> inputs;
  for (const Result& input : program.inputs) {
    const Meaning& m = input.meaning;
    if (m.kind == Meaning::Kind::weight && has_weight(c, m.name))
      inputs[input.name] = shape_of(weight_row(m.name)->dims, c);
    const ValueRow* const row = value_row(m);
    const bool of_this_pass = m.kind == Meaning::Kind::checkpoint ||
                              m.kind == Meaning::Kind::input || m.kind == Meaning::Kind::constant;
    if (row != nullptr && row->handed && !m.last &&
        (of_this_pass || (m.kind == Meaning::Kind::previous && row->cache)))
      inputs[input.name] = shape_of(row->dims, c, {batch, L, M});
  }
  return check(program, inputs, inference.torus);
}

void check(const InferencePrograms& programs, const Inference& inference) {
  const auto phase = [&](const PhasePrograms& p, std::int64_t L, std::int64_t M) {
    for (const Program* program : {&p.layer, &p.embed, &p.head, &p.sample})
      check(*program, inference, L, M);
  };
  const std::int64_t prompt = inference.prompt;
  for (std::int64_t length : inference.lengths())
    phase(programs.prefill, length, length == chunk_length(inference) ? 0 : prompt - length);
  if (inference.gen > 1) phase(programs.decode, 1, prompt);
  check(programs.hand_over, inference, prompt, prompt);
}

IntTensor run_inference(const Inference& inference, const InferencePrograms& programs,
                        const Weights& weights, const IntTensor& prompt, Threads& threads,
                        Observer* observer, const Hazards& hazards) {
  const std::int64_t batch = prompt.shape[0];
  const std::int64_t length = prompt.shape[1];
  const Weights stored = stored_as(weights, inference.numerics.weights);
  Runner runner(inference, stored, batch, threads, observer, hazards);
  runner.place(programs.prefill);
  if (inference.gen > 1) runner.place(programs.decode);
  runner.empty_caches(programs.prefill.cache);

  const std::int64_t chunk = chunk_length(inference);
  SharedValue token;
  for (std::int64_t begin = 0, c = 0; begin < length; begin += chunk, ++c) {
    const std::int64_t end = std::min(begin + chunk, length);
    token =
        runner.pass(programs.prefill, prefill_pass(c), columns(prompt, begin, end), end == length);
  }
  IntTensor generated({batch, inference.gen});
  const auto take = [&](std::int64_t step) {
    IntTensor next = assemble_int(*token);
    for (std::int64_t b = 0; b < batch; ++b)
      generated.data[static_cast<std::size_t>(b * inference.gen + step)] =
          next.data[static_cast<std::size_t>(b)];
    next.shape = {batch, 1};
    return next;
  };
  IntTensor next = take(0);
  if (inference.gen > 1) runner.hand_over(programs.hand_over);
  for (std::int64_t step = 1; step < inference.gen; ++step) {
    token = runner.pass(programs.decode, decode_pass(step), next, true);
    next = take(step);
  }
  return generated;
}

double estimated_bytes(const Inference& inference, const InferencePrograms& programs) {
  const ModelConfig& c = inference.config;
  const std::int64_t batch = inference.batch, prompt = inference.prompt;
  const auto count = [](const Shape& shape) {
    double n = 1.0;
    for (std::int64_t extent : shape) n *= static_cast<double>(extent);
    return n;
  };
  const auto chips = static_cast<double>(inference.torus.chips());
  const auto layers = static_cast<double>(c.layers);
  const std::int64_t chunk = chunk_length(inference);
  const std::int64_t cached = prompt + inference.gen - 1;

  // Generated, stored for the run, and as the oracle keeps them.
  double bytes = 0.0;
  for (const WeightSpec& spec : weight_specs(c)) bytes += 20.0 * count(spec.shape);

  const auto of_chip = [&](const Type& type) {
    return count(local_shape(type.layout, type.shape, inference.torus));
  };
  // A value as carried: f64 and an f32 bound while it is partial.
  const auto carried = [&](const Type& type) {
    return (type.layout.is_partial() ? 12.0 : 4.0) * of_chip(type);
  };
  double live = 0.0;
  double scalar_model = 0.0;  // which holds a whole pass
  for (const PhasePrograms* phase : {&programs.prefill, &programs.decode}) {
    const bool prefill = phase == &programs.prefill;
    const Program& layer = phase->layer;
    if (!prefill && inference.gen == 1) continue;
    const auto types =
        check(layer, inference, prefill ? chunk : 1, prefill ? cached - chunk : cached - 1);
    double placed = 0.0;
    for (const Result& input : layer.inputs)
      if (input.meaning.kind == Meaning::Kind::weight ||
          input.meaning.kind == Meaning::Kind::previous)
        placed += 4.0 * chips * layers * of_chip(types.at(input.name));
    bytes += placed;
    std::map<std::string, std::size_t> last_use;
    for (std::size_t i = 0; i < layer.ops.size(); ++i)
      for (const std::string& arg : layer.ops[i].args) last_use[arg] = i;
    double now = 0.0;
    double made = 0.0;
    for (std::size_t i = 0; i < layer.ops.size(); ++i) {
      for (const Result& r : layer.ops[i].results)
        made += 4.0 * count(types.at(r.name).shape) *
                static_cast<double>(inference.torus.size(r.layout.partial()));
      for (const Result& r : layer.ops[i].results) now += carried(types.at(r.name));
      live = std::max(live, chips * now);
      for (const auto& [name, use] : last_use)
        if (use == i && layer.producer(name) != nullptr) now -= carried(types.at(name));
    }
    scalar_model = std::max(scalar_model, layers * made);
  }
  const auto of_checkpoint = [&](const CheckpointSpec& spec, std::int64_t L) {
    return 4.0 * count(shape_of(spec.dims, c, {batch, L, cached}));
  };
  const std::int64_t chunks = (prompt + chunk - 1) / chunk;
  const auto prefill_passes = static_cast<double>(chunks);
  for (const CheckpointSpec& spec : checkpoint_specs(c))
    bytes += (spec.per_layer ? layers : 1.0) *
             (prefill_passes * of_checkpoint(spec, chunk) +
              static_cast<double>(inference.gen - 1) * of_checkpoint(spec, 1));
  if (inference.numerics.regime == Regime::f32) live += scalar_model;
  return bytes + live;
}

}  // namespace shardproof
