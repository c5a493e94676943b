#include "golden/cases/key_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace shardproof::cases {
namespace {

/// Independent of golden/cases/strata.h, whose draws are checked against these words.
std::string torus_of(const Torus& torus) {
  std::array sizes{torus.size(Axis::x), torus.size(Axis::y), torus.size(Axis::z)};
  std::sort(sizes.begin(), sizes.end());
  if (sizes[2] == 1) return "torus of one chip";
  if (sizes[0] == 1) return "torus with an axis of 1";
  if (sizes[0] == sizes[2]) return "torus with equal axes";
  return sizes[0] == sizes[1] || sizes[1] == sizes[2] ? "torus with two equal axes"
                                                      : "torus with different axes";
}

void add_model(const ModelConfig& m, std::vector<std::string>& all) {
  const ModelConfig usual;
  const auto add = [&](std::string_view key, auto value) {
    all.push_back(fmt::format("{}={}", key, value));
  };
  const auto add_either = [&](bool first, const char* one, const char* other) {
    all.emplace_back(first ? one : other);
  };
  add("model", m.preset);
  add_either(m.layers == 1, "layers=1", "layers>1");
  add_either(m.Q <= 4, "Q<=4", "Q>4");
  all.emplace_back(m.K == 1 ? "K=1" : m.K == m.H ? "K=H" : "1<K<H");
  add("block", to_string(m.block));
  add("cache", m.cache ? to_string(*m.cache) : "as act");
  add("softmax", to_string(m.softmax));
  add_either(m.positions == usual.positions, "positions=2048", "another positions");
  if (m.preset != usual.preset) return;  // a preset's formulas count as one value
  add("ffn", to_string(m.ffn));
  add("norm", to_string(m.norm));
  add("bias", to_string(m.bias));
  add("rope", to_string(m.rope));
  if (rotates(m)) {
    all.push_back(fmt::format("rope={}, rotary{}", to_string(m.rope),
                              m.rotary == usual.rotary ? "=1" : "<1"));
    add_either(m.theta == usual.theta, "theta=10000", "another theta");
  }
  add("tied", m.tied);
  add("unembed_bias", m.unembed_bias);
  add_either(m.eps == usual.eps, "eps=1e-06", "another eps");
  add_either(m.embed_scale == usual.embed_scale, "embed_scale=1", "another embed_scale");
}

void add_numerics(const Numerics& n, std::vector<std::string>& all) {
  const auto add = [&](std::string_view key, auto value) {
    all.push_back(fmt::format("{}={}", key, shardproof::to_string(value)));
  };
  add("weights", n.weights);
  add("act", n.act);
  add("regime", n.regime);
  add("loop", n.loop);
  if (n.regime != Regime::f32) return;
  add("schedule", n.schedule);
  add("acc", n.acc);
  add("wire", n.wire);
}

bool has_row_that_is_through(const Passes& passes) {
  for (std::int64_t i = 0; i < passes.size(); ++i)
    for (const PassRows& group : passes.at(i).rows)
      if (group.tokens == 0) return true;
  return false;
}

void add_prefix(const Case& c, const Passes& passes, std::vector<std::string>& all) {
  if (!c.prefix.given()) {
    all.emplace_back("no prefix");
    return;
  }
  const auto& [length, rows] = c.prefix;
  all.emplace_back(length == 1 ? "prefix=1:N" : "prefix=P:N, P>1");
  all.emplace_back(rows == c.batch       ? "prefix=P:N, N=B"
                   : rows == 1           ? "prefix=P:N, N=1"
                   : c.batch % rows == 0 ? "prefix=P:N, B/N rows each"
                                         : "prefix=P:N, some of more rows");
  all.emplace_back(length > c.chunk ? "prefix=P:N, chunk<P" : "prefix=P:N, chunk>=P");
  if (!passes.full()) all.emplace_back("prefix=P:N, padding behind");
}

void add_sampling(const Sampling& s, std::vector<std::string>& all) {
  all.push_back(fmt::format("sample={}", shardproof::to_string(s.sample)));
  if (s.sample == Sample::greedy) return;
  all.emplace_back(s.temperature == 1.0 ? "temperature=1" : "another temperature");
  all.emplace_back(s.top_k == 0 ? "no top_k" : s.top_k == 1 ? "top_k=1" : "top_k>1");
  all.emplace_back(s.top_p == 1.0 ? "top_p=1" : "top_p<1");
  if (s.top_k > 0 && s.top_p < 1.0) all.emplace_back("top_k and top_p");
}

/// Every value that key_values_of returns.
const char* const kAll = R"(
torus of one chip; torus with an axis of 1; torus with equal axes; torus with two equal axes;
torus with different axes; model=palm-tiny; model=llama; model=gptj; model=falcon; layers=1;
layers>1; Q<=4; Q>4; K=1; 1<K<H; K=H; block=parallel; block=serial; ffn=swiglu; ffn=geglu;
ffn=gelu; ffn=gelu-erf; norm=rmsnorm; norm=layernorm; bias=none; bias=norm; bias=qkv; bias=ffn;
bias=all; rope=half; rope=interleaved; rope=alibi; rope=none; rope=half, rotary=1;
rope=half, rotary<1; rope=interleaved, rotary=1; rope=interleaved, rotary<1; theta=10000;
another theta; tied=true; tied=false; unembed_bias=true; unembed_bias=false; eps=1e-06;
another eps; embed_scale=1; another embed_scale; softmax=base-e; softmax=base2; positions=2048;
another positions; cache=as act; cache=f32; cache=bf16; weights=f32; weights=bf16; weights=int8;
act=f32; act=bf16; regime=exact; regime=f32; regime=field; loop=none; loop=one-way;
loop=both-full; loop=both-half; schedule=group; schedule=ring; schedule=tree; schedule=biring;
acc=f32; acc=bf16; wire=f32; wire=bf16; decode=prefill; hand-over; batch=1; batch>1; prompt=1;
prompt>1; chunk=prompt; chunk<prompt; chunk<prompt, the last one shorter; rows of one length;
lengths=ragged; lengths=a; lengths=a,b,...; a chunk without a token of some row;
padding, but a token of each row; no prefix; prefix=1:N; prefix=P:N, P>1; prefix=P:N, N=1;
prefix=P:N, B/N rows each; prefix=P:N, some of more rows; prefix=P:N, N=B; prefix=P:N, chunk<P;
prefix=P:N, chunk>=P; prefix=P:N, padding behind; gen=1; gen=2; gen>2; pad_heads=none;
pad_heads>H, K=1; pad_heads>H, 1<K<H; pad_heads>H, K=H; pad_vocab=none;
pad_vocab>V, in the last block; pad_vocab>V, whole blocks; sample=greedy; sample=random;
temperature=1; another temperature; no top_k; top_k=1; top_k>1; top_p=1; top_p<1;
top_k and top_p)";

}  // namespace

std::vector<std::string> key_values_of(const Case& c) {
  std::vector<std::string> all{torus_of(c.torus)};
  add_model(c.model, all);
  add_numerics(c.numerics, all);
  all.emplace_back(c.gen > 1 && !(c.prefill == c.decode) ? "hand-over" : "decode=prefill");
  all.emplace_back(c.batch == 1 ? "batch=1" : "batch>1");
  all.emplace_back(c.prompt == 1 ? "prompt=1" : "prompt>1");
  all.emplace_back(c.chunk >= c.prompt       ? "chunk=prompt"
                   : c.prompt % c.chunk == 0 ? "chunk<prompt"
                                             : "chunk<prompt, the last one shorter");
  all.emplace_back(c.lengths.ragged             ? "lengths=ragged"
                   : c.lengths.cycle.empty()    ? "rows of one length"
                   : c.lengths.cycle.size() > 1 ? "lengths=a,b,..."
                                                : "lengths=a");
  const Passes passes = c.passes();
  if (!passes.full())
    all.emplace_back(has_row_that_is_through(passes) ? "a chunk without a token of some row"
                                                     : "padding, but a token of each row");
  add_prefix(c, passes, all);
  all.emplace_back(c.gen == 1 ? "gen=1" : c.gen == 2 ? "gen=2" : "gen>2");
  const ModelConfig& m = c.model;
  all.emplace_back(c.pad_heads == 0 ? "pad_heads=none"
                   : m.K == 1       ? "pad_heads>H, K=1"
                   : m.K == m.H     ? "pad_heads>H, K=H"
                                    : "pad_heads>H, 1<K<H");
  // Padding may leave blocks of the vocabulary without any id.
  const std::int64_t block = c.pad_vocab / c.torus.chips();
  all.emplace_back(c.pad_vocab == 0                       ? "pad_vocab=none"
                   : m.V <= block * (c.torus.chips() - 1) ? "pad_vocab>V, whole blocks"
                                                          : "pad_vocab>V, in the last block");
  add_sampling(c.sampling, all);
  return all;
}

const std::vector<std::string>& all_key_values() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> values;
    std::istringstream text(kAll);
    for (std::string value; std::getline(text >> std::ws, value, ';');) values.push_back(value);
    return values;
  }();
  return all;
}

}  // namespace shardproof::cases
