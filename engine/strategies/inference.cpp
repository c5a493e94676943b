#include "engine/strategies/inference.h"

#include <fmt/format.h>

#include <algorithm>

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
    if (!value) value = std::make_shared<Sharded>(shard(weights_.at(name), layout, torus_));
    return value;
  }

  /// The weights a program declares among its inputs, for layer `layer`.
  void supply(const Program& program, int layer, std::map<std::string, SharedValue>& inputs) {
    for (const Result& input : program.inputs)
      if (input.meaning.kind == Meaning::Kind::weight)
        inputs[input.name] = get(full_name(input.meaning.name, layer), input.layout);
  }

 private:
  std::string full_name(const std::string& name, int layer) const {
    const std::string of_layer = fmt::format("layer{}.{}", layer, name);
    return weights_.all().contains(of_layer) ? of_layer : name;
  }

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
         Observer* observer)
      : inference_(inference),
        placed_(weights, inference.torus),
        batch_(batch),
        threads_(threads),
        observer_(observer) {}

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
    const auto outputs =
        execute(program, std::move(inputs),
                {inference_.config, threads_, observer_, {pass_, previous_, layer}});
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
  std::vector<Caches> caches_;
  std::int64_t length_ = 0;  // of the caches
  std::string pass_, previous_;
};

std::int64_t chunk_length(const Inference& inference, std::int64_t prompt) {
  return inference.chunk > 0 ? inference.chunk : prompt;
}

IntTensor columns(const IntTensor& ids, std::int64_t begin, std::int64_t end) {
  IntTensor part({ids.shape[0], end - begin});
  for (std::int64_t b = 0; b < ids.shape[0]; ++b)
    std::copy_n(ids.data.begin() + b * ids.shape[1] + begin, end - begin,
                part.data.begin() + b * (end - begin));
  return part;
}

}  // namespace

InferencePrograms build_programs(const Inference& inference) {
  const Axes kv = kv_axes(inference.config, inference.torus);
  InferencePrograms programs;
  programs.prefill = build_programs(inference.prefill, kv, inference.numerics.act);
  programs.decode = build_programs(inference.decode, kv, inference.numerics.act);
  programs.hand_over = build_hand_over(programs.prefill.cache, programs.decode.cache);
  return programs;
}

void require_legal(const Inference& inference, std::int64_t batch, std::int64_t prompt) {
  const Numerics& numerics = inference.numerics;
  if (numerics.regime != Regime::exact)
    throw Error("case_numerics", "regime=f32 is not executed yet; legal: exact");
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
  require_legal(inference.prefill, inference.config, inference.torus, batch);
  require_legal(inference.decode, inference.config, inference.torus, batch);
}

std::map<std::string, Type> check(const Program& program, const Inference& inference,
                                  std::int64_t batch, std::int64_t L, std::int64_t M) {
  const ModelConfig& c = inference.config;
  const Shape cache{batch, M, c.K, c.Q};
  const std::map<std::string, Shape> known{
      {"in", {batch, L, c.E}},     {"out", {batch, L, c.E}}, {"input ids", {batch, L}},
      {"input pos", {batch, L}},   {"logits", {batch, c.V}}, {"previous k_cache", cache},
      {"previous v_cache", cache}, {"k_cache", cache},       {"v_cache", cache}};
  std::map<std::string, Shape> inputs;
  for (const Result& input : program.inputs) {
    if (const auto at = known.find(input.meaning.to_string()); at != known.end())
      inputs[input.name] = at->second;
    if (input.meaning.kind != Meaning::Kind::weight) continue;
    for (const WeightSpec& spec : weight_specs(c))
      if (spec.name == input.meaning.name || spec.name == "layer0." + input.meaning.name)
        inputs[input.name] = spec.shape;
  }
  return check(program, inputs, inference.torus);
}

void check(const InferencePrograms& programs, const Inference& inference, std::int64_t batch,
           std::int64_t prompt) {
  const auto phase = [&](const PhasePrograms& p, std::int64_t L, std::int64_t M) {
    for (const Program* program : {&p.embed, &p.layer, &p.head, &p.sample})
      check(*program, inference, batch, L, M);
  };
  phase(programs.prefill, chunk_length(inference, prompt), 0);
  phase(programs.decode, 1, prompt);
  check(programs.hand_over, inference, batch, prompt, prompt);
}

IntTensor run_inference(const Inference& inference, const InferencePrograms& programs,
                        const Weights& weights, const IntTensor& prompt, Threads& threads,
                        Observer* observer) {
  const std::int64_t batch = prompt.shape[0];
  const std::int64_t length = prompt.shape[1];
  const Weights stored = stored_as(weights, inference.numerics.weights);
  Runner runner(inference, stored, batch, threads, observer);
  runner.place(programs.prefill);
  if (inference.gen > 1) runner.place(programs.decode);
  runner.empty_caches(programs.prefill.cache);

  const std::int64_t chunk = chunk_length(inference, length);
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

std::int64_t estimated_bytes(const Inference& inference, std::int64_t batch, std::int64_t prompt) {
  const ModelConfig& c = inference.config;
  const auto chips = static_cast<double>(inference.torus.chips());
  double weights = 0.0;
  for (const WeightSpec& spec : weight_specs(c)) {
    // The tables and norm gains rest on every chip; matrices are cut at least YZ ways over some
    // axes.
    const double copies = spec.matrix ? static_cast<double>(inference.torus.size(Axis::y)) : chips;
    weights += 4.0 * static_cast<double>(element_count(spec.shape)) * copies;
  }
  const double L = static_cast<double>(std::max(chunk_length(inference, prompt), std::int64_t{1}));
  const double M = static_cast<double>(prompt + inference.gen);
  const double BL = static_cast<double>(batch) * L;
  const auto E = static_cast<double>(c.E), F = static_cast<double>(c.F),
             H = static_cast<double>(c.H), Q = static_cast<double>(c.Q),
             K = static_cast<double>(c.K);
  // Replicated over chips at worst: the gathered residual, the scores, the caches, f64 partials
  // with bounds of the widest products.
  const double live =
      chips * BL * (8.0 * E + 2.0 * M * H / 1.0 + 16.0 * (F + H * Q) * 2.0 / chips) +
      8.0 * chips * static_cast<double>(batch) * M * K * Q * static_cast<double>(c.layers);
  const double oracle = 4.0 * static_cast<double>(c.layers) *
                        (BL * (8.0 * E + 4.0 * H * Q + 3.0 * F + 2.0 * H * M) +
                         2.0 * static_cast<double>(batch) * M * K * Q) *
                        (static_cast<double>(prompt) / L + static_cast<double>(inference.gen));
  return static_cast<std::int64_t>(std::min(weights + live + oracle, 9.0e18));
}

}  // namespace shardproof
