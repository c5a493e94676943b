#pragma once

// A model as engines run it: sums in f32, values rounded where engines round them, and places where
// mistakes are made.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/golden/trace/written.h"

namespace shardproof::dump {

using Floats = std::vector<float>;

/// What module hooks see.
inline const std::set<std::string> kHooks{"ids",        "embed",  "norm",  "q",        "k",
                                          "v",          "q_rot",  "k_rot", "k_cache",  "v_cache",
                                          "attn",       "mid",    "norm2", "hidden",   "out",
                                          "final_norm", "logits", "token", "attn_out", "ffn_out"};
inline const std::set<std::string> kLean{"ids", "q", "k", "v", "attn", "out", "logits", "token"};
inline const std::set<std::string> kCoarse{"ids", "out", "logits", "token"};
inline std::set<std::string> with(std::set<std::string> names, const std::set<std::string>& more) {
  names.insert(more.begin(), more.end());
  return names;
}

/// Runs of equal rows of models with swiglu, RMSNorm and halves that rotate.
class Engine {
 public:
  /// Of the scores of the keys that a query sees, and of their values, its part of attn.
  using Attention = std::function<Floats(const Floats&, const std::vector<const float*>&)>;

  explicit Engine(const ExactRun& run)
      : scale(1 / std::sqrt(static_cast<float>(run.source_case.model.Q))),
        run_(run),
        model_(run.source_case.model),
        bf16_(run.source_case.numerics.act == NumberFormat::bf16) {
    for (const auto& [name, tensor] : run.weights().tensors()) weights[name] = tensor.data;
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::map<std::string, Floats> weights;
  std::map<std::string, Floats> prompt = {};  ///< ids by pass, in place of the case's
  bool library = false;                       ///< with bf16: rounds where a public library does
  Attention attention = {};  ///< in place of softmax, probabilities and their product
  float scale;
  std::function<bool(std::size_t query, std::size_t key)> sees = [](std::size_t q, std::size_t k) {
    return k <= q;
  };
  std::function<std::size_t(std::size_t)> kv_head = [this](std::size_t h) {
    return h * size(model_.K) / size(model_.H);
  };
  /// Which head's part of attn stands as that of a head.
  std::function<std::size_t(std::size_t)> part_of = [](std::size_t h) { return h; };
  std::size_t chips = 1;   ///< whose partial sums make attn_out and ffn_out
  bool bf16_wire = false;  ///< what a chip receives and what it sends on is rounded
  /// Values that are not rounded on their way into the next operation, as nobody stores them.
  std::set<std::string> fused;
  /// What happens to a cache before it is read, by its name.
  std::function<void(const std::string&, Floats&)> in_cache = {};
  bool residual_first = false;  ///< the first chip adds x to its partial sum

  /// All named values of a run.
  std::vector<Written> values() {
    all_.clear(), keys_.clear(), values_.clear();
    Floats tokens;
    for (std::int64_t i = 0; i < run_.passes.size(); ++i) {
      const PassPlan pass = run_.passes.at(i);
      pass_ = pass.name + ".", L_ = size(pass.L), start_ = size(pass.cached);
      if (pass.phase == Phase::prefill) {
        const IntTensor& ids = run_.answer().inputs.at(pass_ + "ids");
        const auto given = prompt.find(pass.name);
        tokens.assign(ids.data.begin(), ids.data.end());
        if (given != prompt.end()) tokens = given->second;
      }
      tokens = forward(tokens);
    }
    return all_;
  }
  /// Those of these names, each whole or cut by its layout.
  dump::Dump trace(const std::set<std::string>& names,
                   const std::map<std::string, std::string>& layouts = {}) {
    dump::Dump d = run_.trace({}, bf16_ ? "bf16" : "f32");
    const Mesh mesh = Mesh::parse("x y z", run_.source_case.torus);
    for (const Written& w : values()) {
      const std::string name = w.name.substr(w.name.rfind('.') + 1);
      if (!names.contains(name)) continue;
      dump::Value value;
      const auto layout = layouts.find(name);
      if (layout != layouts.end()) value.attributes["layout"] = layout->second;
      run_.put(value, w, layout == layouts.end() ? Layout() : Layout::parse(layout->second), mesh,
               layout == layouts.end() ? 0 : 1);
      d.values.emplace(w.name, value);
      d.order.push_back(w.name);
    }
    return d;
  }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  float st(float v) const { return bf16_ ? round_to_bf16(v) : v; }
  float step(float v) const { return library ? st(v) : v; }

  std::int64_t extent(char letter) const {
    const std::pair<char, std::int64_t> all[]{{'B', run_.passes.batch()},
                                              {'L', static_cast<std::int64_t>(L_)},
                                              {'M', static_cast<std::int64_t>(start_ + L_)},
                                              {'E', model_.E},
                                              {'F', model_.F},
                                              {'H', model_.H},
                                              {'K', model_.K},
                                              {'Q', model_.Q},
                                              {'V', model_.V}};
    return std::find_if(std::begin(all), std::end(all), [&](auto& e) { return e.first == letter; })
        ->second;
  }
  const Floats& keep(const std::string& name, const Floats& numbers) {
    const std::string dims(name == "ids" ? "BL" : value_row(name)->dims);
    Shape shape;
    for (const char letter : dims) shape.push_back(extent(letter));
    all_.push_back({pass_ + layer_ + name, dims, shape, {numbers.begin(), numbers.end()}, {}});
    return numbers;
  }
  /// Notes a value as it is stored; and what the next operation has of it.
  Floats named(const std::string& name, const Floats& raw) {
    const Floats rounded = keep(name, stored(raw));
    return fused.contains(name) ? raw : rounded;
  }
  Floats stored(Floats numbers) const {
    for (float& v : numbers) v = st(v);
    return numbers;
  }

  /// x times a weight, whose rows are cut over so many chips; of a residual the first adds it.
  Floats times(const Floats& x, const std::string& name, std::size_t over = 1,
               const Floats* residual = nullptr) const {
    const Floats& w = weights.at(layer_ + name);
    const std::size_t width = size(run_.weights().at(layer_ + "norm")->shape[0]);
    const std::size_t K = name == "wo"      ? size(model_.H * model_.Q)
                          : name == "w_out" ? size(model_.F)
                                            : width;
    const std::size_t columns = w.size() / K;
    Floats y;
    for (std::size_t r = 0; r < x.size() / K; ++r)
      for (std::size_t c = 0; c < columns; ++c) {
        float total = 0;
        for (std::size_t part = 0; part < over; ++part) {
          float sum = 0;
          for (std::size_t k = part * K / over; k < (part + 1) * K / over; ++k)
            sum += x[r * K + k] * w[k * columns + c];
          if (residual != nullptr && part == 0) sum += (*residual)[r * columns + c];
          const auto sent = [&](float v) { return bf16_wire && over > 1 ? round_to_bf16(v) : v; };
          total = part == 0 ? sent(sum) : sent(total + sum);
        }
        y.push_back(total);
      }
    return y;
  }

  Floats normed(const Floats& x, const std::string& gain) const {
    const Floats& g = weights.at(gain);
    Floats y;
    for (std::size_t i = 0; i < x.size(); i += g.size()) {
      float squares = 0;
      for (std::size_t e = 0; e < g.size(); ++e) squares += x[i + e] * x[i + e];
      const float r =
          1 / std::sqrt(squares / static_cast<float>(g.size()) + static_cast<float>(model_.eps));
      for (std::size_t e = 0; e < g.size(); ++e) y.push_back(st(step(x[i + e] * r) * g[e]));
    }
    return y;
  }

  Floats rotated(const Floats& x) const {
    const std::size_t Q = size(model_.Q), J = Q / 2, heads = x.size() / Q / L_ / batch();
    const Floats &cosines = weights.at("rope_cos"), &sines = weights.at("rope_sin");
    Floats y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t j = i % Q % J, at = (start_ + i / Q / heads % L_) * J + j;
      const float c = step(cosines[at]), s = step(sines[at]);
      const float other = i % Q < J ? -x[i + J] : x[i - J];
      y[i] = st(step(x[i] * c) + step(other * s));
    }
    return y;
  }

  /// Appends [BLK], and returns all so far.
  Floats appended(std::map<std::string, Floats>& caches, const Floats& fresh) const {
    const std::size_t row = fresh.size() / batch();
    Floats& cache = caches[layer_];
    Floats grown;
    for (std::size_t b = 0; b < batch(); ++b) {
      const auto old = static_cast<std::ptrdiff_t>(cache.size() / batch());
      const auto from = static_cast<std::ptrdiff_t>(b);
      grown.insert(grown.end(), cache.begin() + from * old, cache.begin() + (from + 1) * old);
      const auto width = static_cast<std::ptrdiff_t>(row);
      grown.insert(grown.end(), fresh.begin() + from * width, fresh.begin() + (from + 1) * width);
    }
    if (in_cache) in_cache(pass_ + layer_ + (&caches == &keys_ ? "k_cache" : "v_cache"), grown);
    return cache = grown;
  }

  Floats softmaxed(const Floats& s, const std::vector<const float*>& v) const {
    const float top = *std::max_element(s.begin(), s.end());
    float Z = 0;
    for (const float one : s) Z += std::exp(one - top);
    Floats o(size(model_.Q));
    for (std::size_t m = 0; m < s.size(); ++m)
      for (std::size_t c = 0; c < o.size(); ++c) o[c] += step(std::exp(s[m] - top) / Z) * v[m][c];
    return o;
  }

  Floats attended(const Floats& q, const Floats& keys, const Floats& values) {
    const std::size_t Q = size(model_.Q), H = size(model_.H), K = size(model_.K), M = start_ + L_;
    Floats score, top, exp, denom, attn;
    for (std::size_t n = 0; n < q.size() / Q; ++n) {
      const std::size_t b = n / H / L_, l = n / H % L_, kv = kv_head(n % H);
      Floats s;
      std::vector<const float*> v;
      std::vector<bool> seen;
      for (std::size_t m = 0; m < M; ++m) {
        seen.push_back(sees(start_ + l, m));
        const std::size_t key = ((b * M + m) * K + kv) * Q;
        float dot = 0;
        for (std::size_t c = 0; c < Q; ++c) dot += q[n * Q + c] * keys[key + c];
        score.push_back(seen[m] ? step(step(dot) * scale) : 0.0F);
        if (seen[m]) s.push_back(score.back()), v.push_back(&values[key]);
      }
      top.push_back(s.empty() ? 0.0F : *std::max_element(s.begin(), s.end()));
      denom.push_back(0);
      for (std::size_t m = 0; m < M; ++m) {
        exp.push_back(seen[m] ? std::exp(score[n * M + m] - top.back()) : 0.0F);
        denom.back() += exp.back();
      }
      for (const float o : attention ? attention(s, v) : softmaxed(s, v)) attn.push_back(st(o));
    }
    keep("score", score), keep("max", top), keep("exp", exp), keep("denom", denom);
    Floats placed;
    for (std::size_t i = 0; i < attn.size(); ++i) {
      const std::size_t h = i / Q % H;
      placed.push_back(attn[i - h * Q + part_of(h) * Q]);
    }
    return keep("attn", placed);
  }

  Floats activated(const Floats& gate, const Floats& up) const {
    Floats y;
    for (std::size_t i = 0; i < gate.size(); ++i)
      y.push_back(st(step(gate[i] / (1 + std::exp(-gate[i]))) * up[i]));
    return y;
  }
  Floats sum(const Floats& a, const Floats& b) const {
    Floats y;
    for (std::size_t i = 0; i < a.size(); ++i) y.push_back(a[i] + b[i]);
    return y;
  }

  Floats layer(const Floats& x) {
    const Floats norm = keep("norm", normed(x, layer_ + "norm"));
    const Floats q = named("q", times(norm, "wq")), k = named("k", times(norm, "wk"));
    const Floats v = named("v", times(norm, "wv"));
    const Floats turned = keep("q_rot", rotated(q));
    const Floats keys = keep("k_cache", appended(keys_, keep("k_rot", rotated(k))));
    const Floats attn = attended(turned, keys, keep("v_cache", appended(values_, v)));
    const bool serial = model_.block == Block::serial;
    const Floats* const residual = residual_first ? &x : nullptr;
    const Floats attn_out = named("attn_out", times(attn, "wo", chips, residual));
    const Floats added = residual_first ? attn_out : sum(x, attn_out);
    const Floats mid = serial ? named("mid", added) : stored(added);
    const Floats into = serial ? keep("norm2", normed(mid, layer_ + "norm2")) : norm;
    const Floats gate = named("gate", times(into, "w_gate"));
    const Floats hidden = keep("hidden", activated(gate, named("up", times(into, "w_up"))));
    return named("out", sum(mid, named("ffn_out", times(hidden, "w_out", chips))));
  }

  /// Of the ids of a pass the tokens that follow.
  Floats forward(const Floats& ids) {
    layer_.clear();
    keep("ids", ids);
    const std::size_t E = size(model_.E), V = size(model_.V);
    const Floats& table = weights.at("embed");
    Floats x;
    for (const float id : ids)
      for (std::size_t e = 0; e < E; ++e)
        x.push_back(st(table[static_cast<std::size_t>(id) * E + e] * model_.embed_scale));
    keep("embed", x);
    for (std::int64_t n = 0; n < model_.layers; ++n) {
      layer_ = "layer" + std::to_string(n) + ".";
      x = layer(x);
    }
    layer_.clear();
    const Floats norm = keep("final_norm", normed(x, "final_norm"));
    const Floats& unembed = weights.contains("unembed") ? weights.at("unembed") : table;
    Floats logits, tokens;
    for (std::size_t b = 0; b < batch(); ++b) {
      for (std::size_t t = 0; t < V; ++t) {
        float dot = 0;
        for (std::size_t e = 0; e < E; ++e)
          dot += norm[((b + 1) * L_ - 1) * E + e] * unembed[t * E + e];
        logits.push_back(st(step(dot) * model_.logit_scale));
      }
      const auto first = logits.end() - static_cast<std::ptrdiff_t>(V);
      tokens.push_back(static_cast<float>(std::max_element(first, logits.end()) - first));
    }
    keep("logits", logits);
    return keep("token", tokens);
  }

  std::size_t batch() const { return size(run_.passes.batch()); }

  const ExactRun& run_;
  const ModelConfig& model_;
  bool bf16_;
  std::string pass_, layer_;
  std::size_t L_ = 0, start_ = 0;
  std::map<std::string, Floats> keys_, values_;
  std::vector<Written> all_;
};

}  // namespace shardproof::dump
