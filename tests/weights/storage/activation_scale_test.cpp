#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "weights/storage/generator.h"

namespace shardproof {
namespace {

// A plain f64 forward pass of one row of a parallel multiquery SwiGLU model with half-split RoPE:
// enough to see that generated weights make a live network.
struct Probe {
  std::vector<double> out_rms;       // of the residual after each layer
  std::vector<double> block_share;   // rms of a block's output over that of its input
  std::vector<double> largest_prob;  // of each query with at least four keys
  std::set<std::size_t> tokens;      // argmax at each position
  double logit_rms = 0.0;
  std::size_t repeats = 0;  // positions whose argmax is their own input
};

using Vector = std::vector<double>;

double rms(const Vector& x) {
  double sum = 0.0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

Vector normed(const Vector& x, const Tensor& gain) {
  Vector y(x.size());
  const double r = 1.0 / std::sqrt(rms(x) * rms(x) + 1e-6);
  for (std::size_t e = 0; e < x.size(); ++e) y[e] = x[e] * r * static_cast<double>(gain.data[e]);
  return y;
}

// y[c] = sum over k of x[k] * w[k, c].
Vector times(const Vector& x, const Tensor& w) {
  const std::size_t columns = w.data.size() / x.size();
  Vector y(columns, 0.0);
  for (std::size_t k = 0; k < x.size(); ++k) {
    for (std::size_t c = 0; c < columns; ++c) {
      y[c] += x[k] * static_cast<double>(w.data[k * columns + c]);
    }
  }
  return y;
}

void rotate(double* head, std::size_t Q, std::size_t position, const Weights& w) {
  for (std::size_t j = 0; j < Q / 2; ++j) {
    const auto c = static_cast<double>(w.at("rope_cos")->data[position * (Q / 2) + j]);
    const auto s = static_cast<double>(w.at("rope_sin")->data[position * (Q / 2) + j]);
    const double a = head[j];
    const double b = head[j + Q / 2];
    head[j] = a * c - b * s;
    head[j + Q / 2] = b * c + a * s;
  }
}

Probe probe(const char* model, std::uint64_t seed, std::size_t length) {
  const ModelConfig config = parse_model(model);
  const Weights w = generate_weights(config, seed);
  const auto E = static_cast<std::size_t>(config.E);
  const auto H = static_cast<std::size_t>(config.H);
  const auto Q = static_cast<std::size_t>(config.Q);
  const auto V = static_cast<std::size_t>(config.V);
  const IntTensor prompt = generate_prompt(config, seed, 1, static_cast<std::int64_t>(length));
  const Tensor& table = *w.at("embed");
  Probe result;
  std::vector<Vector> x(length);
  for (std::size_t t = 0; t < length; ++t) {
    const auto row = table.data.begin() +
                     static_cast<std::ptrdiff_t>(static_cast<std::size_t>(prompt.data[t]) * E);
    x[t].assign(row, row + static_cast<std::ptrdiff_t>(E));
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto weight = [&](const char* part) -> const Tensor& {
      return *w.at("layer" + std::to_string(layer) + "." + part);
    };
    std::vector<Vector> keys, values;
    for (std::size_t t = 0; t < length; ++t) {
      const Vector norm = normed(x[t], weight("norm"));
      Vector q = times(norm, weight("wq"));
      keys.push_back(times(norm, weight("wk")));
      values.push_back(times(norm, weight("wv")));
      rotate(keys[t].data(), Q, t, w);
      Vector attn(H * Q, 0.0);
      for (std::size_t h = 0; h < H; ++h) {
        rotate(&q[h * Q], Q, t, w);
        Vector p(t + 1);
        for (std::size_t m = 0; m <= t; ++m) {
          double dot = 0.0;
          for (std::size_t i = 0; i < Q; ++i) dot += q[h * Q + i] * keys[m][i];
          p[m] = dot / std::sqrt(static_cast<double>(Q));
        }
        const double most = *std::max_element(p.begin(), p.end());
        double total = 0.0;
        for (double& s : p) total += (s = std::exp(s - most));
        for (std::size_t m = 0; m <= t; ++m) {
          for (std::size_t i = 0; i < Q; ++i) attn[h * Q + i] += p[m] / total * values[m][i];
        }
        if (t >= 3) result.largest_prob.push_back(1.0 / total);
      }
      Vector hidden = times(norm, weight("w_gate"));
      const Vector up = times(norm, weight("w_up"));
      for (std::size_t f = 0; f < up.size(); ++f) {
        hidden[f] = hidden[f] / (1.0 + std::exp(-hidden[f])) * up[f];
      }
      Vector block = times(attn, weight("wo"));
      const Vector ffn = times(hidden, weight("w_out"));
      for (std::size_t e = 0; e < E; ++e) block[e] += ffn[e];
      result.block_share.push_back(rms(block) / rms(x[t]));
      for (std::size_t e = 0; e < E; ++e) x[t][e] += block[e];
      result.out_rms.push_back(rms(x[t]));
    }
  }
  double logit_squares = 0.0;
  for (std::size_t t = 0; t < length; ++t) {
    const Vector norm = normed(x[t], *w.at("final_norm"));
    Vector logits(V, 0.0);
    for (std::size_t v = 0; v < V; ++v) {
      for (std::size_t e = 0; e < E; ++e) {
        logits[v] += norm[e] * static_cast<double>(table.data[v * E + e]);
      }
      logits[v] *= static_cast<double>(config.logit_scale);
    }
    logit_squares += rms(logits) * rms(logits);
    const auto token =
        static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    result.tokens.insert(token);
    if (token == static_cast<std::size_t>(prompt.data[t])) ++result.repeats;
  }
  result.logit_rms = std::sqrt(logit_squares / static_cast<double>(length));
  return result;
}

double mean(const Vector& x) {
  double sum = 0.0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

class ActivationScale : public testing::TestWithParam<const char*> {};

TEST_P(ActivationScale, ActivationsLiveAndAttentionChooses) {
  for (std::uint64_t seed : {1U, 2U, 3U}) {
    constexpr std::size_t kLength = 12;
    const Probe p = probe(GetParam(), seed, kLength);
    for (double value : p.out_rms) {
      EXPECT_GT(value, 0.5);
      EXPECT_LT(value, 10.0);
    }
    EXPECT_GT(mean(p.block_share), 0.3);
    EXPECT_LT(mean(p.block_share), 1.0);
    // Uniform attention over 4 to 12 keys would have a mean of 0.14, one-hot attention 1.
    EXPECT_GT(mean(p.largest_prob), 0.25);
    EXPECT_LT(mean(p.largest_prob), 0.85);
    EXPECT_GT(p.logit_rms, 0.5);
    EXPECT_LT(p.logit_rms, 3.0);
    EXPECT_GE(p.tokens.size(), kLength / 2);
    EXPECT_LE(p.repeats, kLength / 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ActivationScale,
                         testing::Values("palm-tiny", "palm-mini", "palm-wide",
                                         "palm-tiny,layers=12"));

}  // namespace
}  // namespace shardproof
