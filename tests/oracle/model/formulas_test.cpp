// Step by step: every formula of docs/spec.md section 2 whose form a model may choose, element by
// element from the step's own inputs in the Answer. The vectors cover the default forms end to end;
// this covers the others: biases, bf16 and int8 weights, every RoPE and FFN, untied, scaled.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "oracle/model/oracle.h"
#include "oracle/numeric/exact_sum.h"
#include "tests/oracle/random_case.h"
#include "weights/base/bf16.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {
namespace {

using std::size_t;

double wide(float v) { return static_cast<double>(v); }
float narrow(double v) { return static_cast<float>(v); }

void require_equal(float found, float expected) {
  RC_ASSERT(std::memcmp(&found, &expected, sizeof(float)) == 0);
}

/// One pass of a run, and the weights as it used them (int8 apart).
struct Step {
  const Drawn& drawn;
  const Weights weights;
  const Answer& answer;
  std::string pass;
  int layer;

  const ModelConfig& config() const { return drawn.config; }
  std::string id(const char* name) const { return checkpoint_id(pass, layer, name); }
  const std::vector<float>& of(const char* name) const {
    return answer.checkpoints.at(id(name)).data;
  }
  const std::vector<float>& weight(const std::string& name) const {
    return weights.at(layer < 0 ? name : "layer" + std::to_string(layer) + "." + name)->data;
  }
  bool has(const std::string& name) const {
    return weights.contains("layer" + std::to_string(layer) + "." + name);
  }
  float stored(float v) const {
    return drawn.request.numerics.act == NumberFormat::bf16 ? round_to_bf16(v) : v;
  }
};

/// `rows` of inputs times the matrix, the matrices `names` on top of each other.
void check_projection(const Step& step, const char* name, const std::vector<float>& inputs,
                      const std::vector<std::string>& names, size_t outputs,
                      const std::vector<std::string>& biases) {
  std::vector<float> w;
  for (const std::string& part : names)
    w.insert(w.end(), step.weight(part).begin(), step.weight(part).end());
  const size_t depth = w.size() / outputs;
  for (size_t channel = 0; channel < outputs; ++channel) {
    double largest = 0;
    for (size_t k = 0; k < depth; ++k)
      largest = std::fmax(largest, std::fabs(wide(w[k * outputs + channel])));
    float scale = narrow(largest / 127.0);
    if (scale == 0) scale = 1;
    const bool int8 = step.drawn.request.numerics.weights == NumberFormat::int8;
    for (size_t row = 0; row < inputs.size() / depth; ++row) {
      Sum sum;
      for (size_t k = 0; k < depth; ++k) {
        const float v = w[k * outputs + channel];
        sum.add(inputs[row * depth + k], int8 ? narrow(std::rint(wide(v) / wide(scale))) : v);
      }
      const size_t at = row * outputs + channel;
      require_equal(step.answer.raw_of(step.id(name)).data[at], sum.value());
      float y = int8 ? narrow(wide(sum.value()) * wide(scale)) : sum.value();
      for (const std::string& bias : biases)
        if (step.has(bias)) y += step.weight(bias)[channel];
      require_equal(step.answer.unstored_of(step.id(name)).data[at], y);
      require_equal(step.of(name)[at], step.stored(y));
    }
  }
}

/// Of the norms, scaled as a folded table scales the residual stream.
double eps_of(const ModelConfig& c) {
  if (c.softmax == Softmax::base_e || !c.tied) return c.eps;
  const double scale = wide(narrow(1.4426950408889634 * wide(c.logit_scale)));
  return c.eps * (scale * scale);
}

void check_norm(const Step& step, const char* name, const std::vector<float>& x,
                const std::string& ss_name, const std::string& mu_name) {
  const ModelConfig& c = step.config();
  const auto E = static_cast<size_t>(c.E);
  const bool centred = c.norm == Norm::layernorm;
  const bool biased =
      centred && (c.bias == Bias::norm || c.bias == Bias::ffn || c.bias == Bias::all);
  for (size_t row = 0; row < x.size() / E; ++row) {
    Sum total, squares;
    for (size_t e = 0; e < E; ++e) total.add(x[row * E + e]);
    const float mu = centred ? narrow(wide(total.value()) / static_cast<double>(E)) : 0.0F;
    if (centred) require_equal(step.answer.stats.at(step.id(mu_name.c_str())).data[row], mu);
    for (size_t e = 0; e < E; ++e) squares.add(x[row * E + e] - mu, x[row * E + e] - mu);
    const float ss = squares.value();
    require_equal(step.answer.stats.at(step.id(ss_name.c_str())).data[row], ss);
    const double r = 1.0 / std::sqrt(wide(ss) / static_cast<double>(E) + eps_of(c));
    for (size_t e = 0; e < E; ++e) {
      const float d = centred ? x[row * E + e] - mu : x[row * E + e];
      double y = (wide(d) * r) * wide(step.weight(name)[e]);
      if (biased) y += wide(step.weight(std::string(name) + "_bias")[e]);
      require_equal(step.of(name)[row * E + e], step.stored(narrow(y)));
    }
  }
}

void check_rotation(const Step& step, const char* from, const char* to) {
  const ModelConfig& c = step.config();
  if (!rotates(c)) {
    RC_ASSERT(!step.answer.checkpoints.contains(step.id(to)));
    return;
  }
  const Tensor& x = step.answer.checkpoints.at(step.id(from));
  const auto Q = static_cast<size_t>(c.Q), heads = static_cast<size_t>(x.shape[2]);
  const auto rotated = static_cast<size_t>(std::llround(c.rotary * static_cast<double>(c.Q)));
  const std::vector<float>& cos = step.weights.at("rope_cos")->data;
  const std::vector<float>& sin = step.weights.at("rope_sin")->data;
  for (size_t n = 0; n < x.data.size(); ++n) {
    const size_t d = n % Q, head = n - d;
    const auto pos =
        static_cast<size_t>(step.answer.inputs.at(step.pass + ".pos").data[n / (Q * heads)]);
    float expected = x.data[n];
    if (d < rotated) {
      const bool half = c.rope == Rope::half;
      const size_t j = half ? d % (rotated / 2) : d / 2;
      const bool second = half ? d >= rotated / 2 : d % 2 == 1;
      const double cj = wide(cos[pos * (rotated / 2) + j]);
      const double sj = wide(sin[pos * (rotated / 2) + j]);
      const double a = wide(x.data[head + (half ? j : 2 * j)]);
      const double b = wide(x.data[head + (half ? j + rotated / 2 : 2 * j + 1)]);
      expected = second ? narrow(b * cj + a * sj) : narrow(a * cj - b * sj);
    }
    require_equal(step.of(to)[n], step.stored(expected));
  }
}

void check_scores(const Step& step) {
  const ModelConfig& c = step.config();
  const auto H = static_cast<size_t>(c.H), K = static_cast<size_t>(c.K);
  const auto Q = static_cast<size_t>(c.Q);
  const std::vector<float>& q = step.of(rotates(c) ? "q_rot" : "q");
  const std::vector<float>& keys = step.of("k_cache");
  const Tensor& score = step.answer.checkpoints.at(step.id("score"));
  const auto M = static_cast<size_t>(score.shape[3]), L = static_cast<size_t>(score.shape[1]);
  for (size_t n = 0; n < score.data.size(); ++n) {
    const size_t p = n % M, query = n / M, h = query % H, row = query / H, b = row / L;
    const auto t = static_cast<size_t>(step.answer.inputs.at(step.pass + ".pos").data[row]);
    Sum sum;
    for (size_t d = 0; d < Q && p <= t; ++d)
      sum.add(q[query * Q + d], keys[((b * M + p) * K + h * K / H) * Q + d]);
    require_equal(step.answer.raw_of(step.id("score")).data[n], sum.value());
    double s = wide(sum.value());
    if (c.softmax == Softmax::base_e) s = s * (1.0 / std::sqrt(static_cast<double>(Q)));
    if (c.rope == Rope::alibi && p <= t)
      s = s - wide(step.weights.at("alibi_slopes")->data[h]) * static_cast<double>(t - p);
    require_equal(score.data[n], p <= t ? narrow(s) : 0.0F);
  }
}

/// e of each unmasked key, from scores and maxima.
void check_exponentials(const Step& step) {
  const Tensor& e = step.answer.checkpoints.at(step.id("exp"));
  const auto M = static_cast<size_t>(e.shape[3]), H = static_cast<size_t>(e.shape[2]);
  const bool base2 = step.config().softmax == Softmax::base2;
  for (size_t n = 0; n < e.data.size(); ++n) {
    const size_t query = n / M;
    const auto t = static_cast<size_t>(step.answer.inputs.at(step.pass + ".pos").data[query / H]);
    const float below = step.of("score")[n] - step.of("max")[query];
    const double power = base2 ? std::exp2(wide(below)) : std::exp(wide(below));
    require_equal(e.data[n], n % M <= t ? narrow(power) : 0.0F);
  }
}

void check_hidden(const Step& step) {
  const std::vector<float>& gate = step.of("gate");
  for (size_t n = 0; n < gate.size(); ++n) {
    const double g = wide(gate[n]);
    const double z = 0.7978845608028654 * (g + 0.044715 * g * g * g);
    const float gelu = narrow(g / (1.0 + std::exp(-2.0 * z)));
    float w = 0;
    switch (step.config().ffn) {
      case Ffn::swiglu:
        w = step.config().softmax == Softmax::base2 ? narrow(2.0 * g / (1.0 + std::exp(-2.0 * g)))
                                                    : narrow(g / (1.0 + std::exp(-g)));
        w = w * step.of("up")[n];
        break;
      case Ffn::geglu:
        w = gelu * step.of("up")[n];
        break;
      case Ffn::gelu:
        w = gelu;
        break;
      case Ffn::gelu_erf:
        w = narrow(0.5 * g * std::erfc(-g / std::sqrt(2.0)));
        break;
    }
    require_equal(step.of("hidden")[n], step.stored(w));
  }
}

/// attn and hidden side by side, row by row.
std::vector<float> beside(const std::vector<float>& a, const std::vector<float>& b, size_t rows) {
  std::vector<float> both;
  for (size_t row = 0; row < rows; ++row) {
    const auto part = [&](const std::vector<float>& v) {
      const auto width = static_cast<std::ptrdiff_t>(v.size() / rows);
      const auto begin = v.begin() + static_cast<std::ptrdiff_t>(row) * width;
      both.insert(both.end(), begin, begin + width);
    };
    part(a);
    part(b);
  }
  return both;
}

void check_layer(const Step& step, const std::vector<float>& x) {
  const ModelConfig& c = step.config();
  const auto E = static_cast<size_t>(c.E), F = static_cast<size_t>(c.F);
  const auto HQ = static_cast<size_t>(c.H * c.Q), KQ = static_cast<size_t>(c.K * c.Q);
  const bool serial = c.block == Block::serial;
  check_norm(step, "norm", x, "ss", "mu");
  check_projection(step, "q", step.of("norm"), {"wq"}, HQ, {"bq"});
  check_projection(step, "k", step.of("norm"), {"wk"}, KQ, {"bk"});
  check_projection(step, "v", step.of("norm"), {"wv"}, KQ, {"bv"});
  check_rotation(step, "q", "q_rot");
  check_rotation(step, "k", "k_rot");
  check_scores(step);
  check_exponentials(step);
  if (serial) {
    check_projection(step, "attn_out", step.of("attn"), {"wo"}, E, {"bo"});
    check_norm(step, "norm2", step.of("mid"), "ss2", "mu2");
  }
  const std::vector<float>& ffn_input = step.of(serial ? "norm2" : "norm");
  check_projection(step, "gate", ffn_input, {"w_gate"}, F, {"b_gate"});
  if (c.ffn == Ffn::swiglu || c.ffn == Ffn::geglu)
    check_projection(step, "up", ffn_input, {"w_up"}, F, {"b_up"});
  check_hidden(step);
  if (serial) {
    check_projection(step, "ffn_out", step.of("hidden"), {"w_out"}, E, {"b_out"});
  } else {
    check_projection(step, "block_out", beside(step.of("attn"), step.of("hidden"), x.size() / E),
                     {"wo", "w_out"}, E, {"bo", "b_out"});
  }
}

void check_ends(const Step& step, const std::vector<float>& out) {
  const ModelConfig& c = step.config();
  const auto E = static_cast<size_t>(c.E), V = static_cast<size_t>(c.V);
  const IntTensor& ids = step.answer.inputs.at(step.pass + ".ids");
  for (size_t n = 0; n < step.of("embed").size(); ++n) {
    const float row = step.weight("embed")[static_cast<size_t>(ids.data[n / E]) * E + n % E];
    require_equal(step.answer.raw_of(step.id("embed")).data[n], row);
    require_equal(step.of("embed")[n], step.stored(narrow(wide(row) * wide(c.embed_scale))));
  }
  check_norm(step, "final_norm", out, "final_ss", "final_mu");
  const auto L = static_cast<size_t>(ids.shape[1]);
  for (size_t n = 0; n < step.of("logits").size(); ++n) {
    const size_t last = n / V * L + L - 1;
    Sum sum;
    for (size_t e = 0; e < E; ++e)
      sum.add(step.of("final_norm")[last * E + e],
              step.weight(c.tied ? "embed" : "unembed")[n % V * E + e]);
    require_equal(step.answer.raw_of(step.id("logits")).data[n], sum.value());
    float z = sum.value();
    if (c.softmax == Softmax::base_e) z = narrow(wide(z) * wide(c.logit_scale));
    if (c.unembed_bias) require_equal(step.answer.scaled_of(step.id("logits")).data[n], z);
    if (c.unembed_bias) z = z + step.weight("unembed_bias")[n % V];
    require_equal(step.of("logits")[n], z);
  }
}

RC_GTEST_PROP(OracleFormulas, EveryStepFollowsFromItsInputs, ()) {
  const Drawn drawn = draw_case();
  RC_LOG() << drawn << "\n";
  const Answer answer = drawn.answer();
  const Weights generated = generate_weights(drawn.config, drawn.seed);
  const bool bf16 = drawn.request.numerics.weights == NumberFormat::bf16;
  const Weights weights = bf16 ? stored_as(generated, NumberFormat::bf16) : generated;
  for (const std::string& pass : answer.passes) {
    Step step{.drawn = drawn, .weights = weights, .answer = answer, .pass = pass, .layer = -1};
    const std::vector<float>* x = &step.of("embed");
    for (step.layer = 0; step.layer < drawn.config.layers; ++step.layer) {
      check_layer(step, *x);
      x = &step.of("out");
    }
    step.layer = -1;
    check_ends(step, *x);
  }
}

TEST(OracleFormulas, TheLowestIdWinsATie) {
  const ModelConfig config = parse_model("palm-tiny,layers=1,E=8,F=8,H=2,Q=4,V=6,positions=8");
  const Weights generated = generate_weights(config, 3);
  std::map<std::string, Tensor> tensors = generated.tensors();
  std::vector<float>& table = tensors.at("embed").data;
  // Tokens 1 and 4 share a row, 2 and 5 its negative, 0 and 3 zeros: some pair ties for the most.
  for (size_t e = 0; e < 8; ++e) {
    table[4 * 8 + e] = table[1 * 8 + e];
    table[2 * 8 + e] = table[5 * 8 + e] = -table[1 * 8 + e];
    table[0 * 8 + e] = table[3 * 8 + e] = 0;
  }
  Request request;
  request.prompt = IntTensor({2, 1});
  request.prompt.data = {4, 5};
  request.passes = Passes(2, 1, 0, 1);
  const Answer answer = run(Weights(config, tensors), request);
  for (std::int32_t token : answer.tokens.at("prefill.c0.token").data) {
    EXPECT_GT(token, 0);
    EXPECT_LT(token, 3);
  }
}

}  // namespace
}  // namespace shardproof::oracle
