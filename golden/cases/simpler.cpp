// Simpler cases, for shrinking.
#include <algorithm>
#include <utility>

#include "engine/run/dim_padding.h"
#include "golden/cases/cases.h"
#include "golden/cases/detail/legal.h"

namespace shardproof::cases {
namespace {

bool legal(const Case& c) { return plan_if_legal(c).has_value(); }

/// Rounds the model's dims down to multiples of what the case's torus requires.
void round_down(Case& c) {
  ModelConfig& m = c.model;
  const bool multihead = m.K == m.H;
  const auto below = [&](char dim, std::int64_t value) { return value - value % unit(c, dim); };
  m.E = below('E', m.E), m.F = below('F', m.F), m.H = below('H', m.H), m.V = below('V', m.V);
  m.K = multihead ? m.H : m.K;
  if (m.E > 0) m.logit_scale = usual_logit_scale(m);
}

/// Shrinks lengths and prefixes to fit a prompt or batch that became smaller.
void fit_rows(Case& c) {
  auto& lengths = c.lengths.cycle;
  if (std::ssize(lengths) > c.batch) lengths.resize(static_cast<std::size_t>(c.batch));
  for (std::int64_t& length : lengths) length = std::min(length, c.prompt);
  SharedPrefix& prefix = c.prefix;
  if (!prefix.given()) return;
  const std::int64_t shortest =
      lengths.empty() ? c.prompt : *std::min_element(lengths.begin(), lengths.end());
  const std::int64_t L = smallest_length(c.prefill, c.torus);
  prefix.rows = std::min(prefix.rows, c.batch);
  prefix.length = std::min(prefix.length, (shortest - 1) / L * L);
  if (prefix.length == 0) prefix = {};
}

}  // namespace

std::vector<Case> simpler(const Case& c) {
  std::vector<Case> all;
  const auto propose = [&](auto&& change) {
    Case next = c;
    change(next);
    fit_rows(next);
    if (!(next == c) && legal(next)) all.push_back(next);
  };
  /// Proposes each of these members as a plain case has it.
  const auto reset = [&](auto part, auto... member) {
    static const Case plain;
    (propose([&](Case& next) { (next.*part).*member = (plain.*part).*member; }), ...);
  };
  for (Axis axis : {Axis::x, Axis::y, Axis::z})
    for (int size : {1, 2, c.torus.size(axis) - 1}) {
      if (size < 1 || size >= c.torus.size(axis)) continue;
      propose([&](Case& next) {
        int sizes[3] = {c.torus.size(Axis::x), c.torus.size(Axis::y), c.torus.size(Axis::z)};
        sizes[static_cast<std::size_t>(axis)] = size;
        next.torus = Torus(sizes[0], sizes[1], sizes[2]);
        // The batch shrinks, too, if it was minimal.
        if (c.batch == unit(c, 'B')) next.batch = unit(next, 'B');
        if (!legal(next)) round_down(next);
      });
    }
  const std::int64_t L = smallest_length(c.prefill, c.torus);
  if (c.prefix.given()) {
    propose([](Case& next) { next.prefix = {}; });
    propose([](Case& next) { next.prefix.rows = 1; });
    propose([](Case& next) { next.prefix.rows = std::max<std::int64_t>(1, next.prefix.rows - 1); });
    propose([&](Case& next) { next.prefix.length = std::min(c.prefix.length, L); });
    propose([&](Case& next) {
      next.prefix.length = std::max(std::min(c.prefix.length, L), c.prefix.length - L);
    });
  }
  propose([](Case& next) { next.lengths = {}; });
  propose([](Case& next) {
    std::vector<std::int64_t>& cycle = next.lengths.cycle;
    if (!cycle.empty()) cycle.erase(cycle.begin() + 1, cycle.end());
  });
  propose([](Case& next) {
    if (!next.lengths.cycle.empty()) next.lengths.cycle.pop_back();
  });
  // Drop the padding, either with the model's own dims or with dims as long as the padded ones.
  propose([](Case& next) { next.pad_heads = 0; });
  propose([](Case& next) {
    if (next.pad_heads == 0) return;
    const ModelConfig placed = placed_model(next);
    next.model.H = placed.H, next.model.K = placed.K, next.pad_heads = 0;
  });
  propose([](Case& next) { next.pad_vocab = 0; });
  propose([](Case& next) {
    if (next.pad_vocab != 0) next.model.V = std::exchange(next.pad_vocab, 0);
  });
  // One slice, or the smallest that decodes.
  propose([](Case& next) { next.decode_torus.reset(); });
  propose([](Case& next) {
    if (next.decode_torus) next.decode_torus = Torus(1, 1, 1);
  });
  propose([](Case& next) { next.model.layers = 1; });
  propose([](Case& next) { next.model.layers = std::min<std::int64_t>(2, next.model.layers); });
  propose([](Case& next) { next.gen = std::max<std::int64_t>(1, next.gen - 1); });
  propose([](Case& next) { next.gen = std::min<std::int64_t>(2, next.gen); });
  // Shorten the prompt in steps of the prefill's blocks; a chunked prompt stays chunked if it can,
  // or becomes one chunk.
  propose([&](Case& next) { next.prompt = next.chunk = std::min(c.prompt, L); });
  propose([](Case& next) { next.chunk = next.prompt; });
  if (c.chunk < c.prompt) {
    propose([&](Case& next) { next.prompt = std::min(c.prompt, 2 * L), next.chunk = L; });
    propose([&](Case& next) { next.prompt = std::min(c.prompt, c.chunk + L); });
    propose([&](Case& next) { next.chunk = std::max(L, c.chunk - L); });
    if (c.chunk > L) propose([&](Case& next) { next.chunk -= L, next.prompt -= L; });
  }
  propose([&](Case& next) {
    next.prompt = std::max(std::min(c.prompt, L), c.prompt - L);
    next.chunk = std::min(next.chunk, next.prompt);
  });
  propose([](Case& next) {
    next.numerics.regime = Regime::exact, next.numerics.schedule = Schedule::group;
    next.numerics.acc = NumberFormat::f32;
  });
  reset(&Case::numerics, &Numerics::schedule, &Numerics::loop, &Numerics::acc, &Numerics::wire,
        &Numerics::act, &Numerics::weights);
  propose([](Case& next) { next.sampling = {}; });
  reset(&Case::sampling, &Sampling::top_k, &Sampling::top_p, &Sampling::temperature);
  propose([](Case& next) { next.decode = next.prefill; });
  propose([](Case& next) { next.prefill = next.decode; });
  const std::int64_t n = c.torus.chips();
  // Only downwards, so that repetition terminates.
  propose([&, unit = unit(c, 'E')](Case& next) {
    next.model.E = std::min(c.model.E, unit);
    next.model.logit_scale = usual_logit_scale(next.model);
  });
  propose([&, unit = unit(c, 'F')](Case& next) { next.model.F = std::min(c.model.F, unit); });
  propose([&, unit = unit(c, 'H')](Case& next) {
    if (c.model.H > unit) next.model.H = unit, next.model.K = c.model.K == 1 ? 1 : unit;
  });
  propose([](Case& next) { next.model.K = 1; });
  propose([](Case& next) {
    next.model.Q = std::min<std::int64_t>(next.model.Q, 2), next.model.rotary = 1.0;
  });
  propose([&](Case& next) { next.model.V = std::min(c.model.V, 2 * n); });
  propose([&](Case& next) { next.model.V = std::min(c.model.V, n); });
  reset(&Case::model, &ModelConfig::block, &ModelConfig::norm, &ModelConfig::ffn,
        &ModelConfig::bias, &ModelConfig::rope, &ModelConfig::tied, &ModelConfig::unembed_bias);
  propose([](Case& next) {  // the other keys stay
    next.model.preset = ModelConfig().preset;
    next.model.logit_scale = usual_logit_scale(next.model);
  });
  reset(&Case::model, &ModelConfig::softmax, &ModelConfig::cache, &ModelConfig::rotary,
        &ModelConfig::theta, &ModelConfig::eps, &ModelConfig::positions, &ModelConfig::embed_scale);
  propose([&](Case& next) { next.batch = std::min(c.batch, unit(c, 'B')); });
  propose([](Case& next) { next.seed = std::min<std::uint64_t>(next.seed, 1); });
  return all;
}

Case shrink(Case c, const std::function<bool(const Case&)>& fails, int tries) {
  for (bool progress = true; progress;) {
    progress = false;
    for (const Case& candidate : simpler(c)) {
      if (tries-- <= 0) return c;
      if (!fails(candidate)) continue;
      c = candidate;
      progress = true;
      break;
    }
  }
  return c;
}

}  // namespace shardproof::cases
