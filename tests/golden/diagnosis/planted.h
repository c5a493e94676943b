#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "golden/bounds/text/text_replay.h"
#include "golden/bounds/value/replay.h"
#include "golden/compare/block_map.h"
#include "golden/compare/row_padding.h"
#include "golden/diagnosis/diagnosis.h"
#include "tests/golden/oracle_run.h"
#include "weights/base/bf16.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/text_model.h"
#include "weights/text/writer.h"

namespace shardproof::diagnosis {

inline const Torus kTorus(4, 2, 3);
inline const std::string kModel =
    "model=palm-tiny,layers=2,E=48,F=96,H=24,K=2,Q=4,V=48,embed_scale=1.7 batch=24 prompt=4 "
    "chunk=3 gen=3";
/// Where faults are planted if a test says nothing else.
inline const std::string kAt = "prefill.c0.layer1.";
inline const std::string kGate = kAt + "gate";

/// A line of keys with more keys of its model.
inline std::string with_keys(std::string line, const std::string& keys) {
  return line.insert(line.find(" batch"), keys);
}

/// An answer of the oracle as somebody's dump, in which faults are planted. Everything is computed
/// here by itself, with plain loops in f64 and one rounding to f32.
class Planted : public OracleRun {
 public:
  using Value = Array<double>;
  using Shards = std::vector<std::vector<double>>;
  using Said = std::vector<Hypothesis>;

  explicit Planted(const std::string& keys) : OracleRun(keys), dump(values()) {
    if (plan.source_case.numerics.act == NumberFormat::bf16) declared.values = NumberFormat::bf16;
  }

  const Value& value(const std::string& id) const { return dump.at(id); }
  Value weight(const std::string& id) const {
    const Tensor& t = *weights().at(id);
    Value w(t.shape);
    w.data.assign(t.data.begin(), t.data.end());
    return w;
  }

  /// The shards of a tensor; `from(chip)` says as which chip's.
  template <class From>
  static Shards cut(const Value& value, const std::string& layout, const Torus& torus,
                    From&& from) {
    Shards shards(at(torus.chips()));
    for (int chip = 0; chip < torus.chips(); ++chip)
      judged_elements(Layout::parse(layout), value.shape, torus, from(chip),
                      [&](std::int64_t, std::int64_t g) {
                        shards[at(chip)].push_back(value.data[at(g)]);
                        return false;
                      });
    return shards;
  }
  static Shards cut(const Value& value, const std::string& layout, const Torus& torus) {
    return cut(value, layout, torus, [](int chip) { return chip; });
  }

  /// What is said of it as a value of the keys; of the text that they print as, the same is said.
  Said ask(const std::string& id, const std::string& layout, const Torus& torus, Shards shards) {
    const bounds::Derivation::Dump given(dump.begin(), dump.end());
    bounds::Replay replay(weights(), plan.passes, ids, given, declared);
    const Said said = said_by(replay, id, layout, torus, shards);
    // Declarations are of keys' values, and so are sums before scales, rows of other lengths and
    // prefixes.
    if (texts-- <= 0 || raw || !plan.passes.full() || plan.passes.prefix().given() ||
        (!said.empty() && said[0].fault == "convention"))
      return said;
    const std::string name = replay.place_of(id).name;
    // A text's logits are those of all positions.
    if (name == "logits" || text_config().rows->line_of(name, 0) < 0) return said;
    EXPECT_EQ(first(said_by(text_replay(id), id, layout, torus, std::move(shards))), first(said))
        << id;
    return said;
  }
  static std::string first(const Said& all) {
    if (all.empty() || !all[0].explains) return "nothing";
    return fmt::format("{} [{}]: {}", all[0].fault, all[0].axes, all[0].detail);
  }
  /// The text's derivation of the dump, in which this value may be any: it is not read.
  bounds::TextReplay& text_replay(const std::string& id) {
    std::map<std::string, Value> others = dump;
    std::erase_if(others, [](const auto& named) { return named.first.ends_with("logits"); });
    if (by_text_ != nullptr) others[id] = of_dump_.at(id);
    if (by_text_ != nullptr && same(others, of_dump_)) return *by_text_;
    of_dump_ = others;
    given_ = {others.begin(), others.end()};
    of_text_weights_ = std::make_unique<const Weights>(text_config(), weights().tensors());
    by_text_ =
        std::make_unique<bounds::TextReplay>(*of_text_weights_, plan.passes, ids, given_, declared);
    return *by_text_;
  }
  static bool same(const std::map<std::string, Value>& a, const std::map<std::string, Value>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.data == y.second.data;
    });
  }
  const ModelConfig& text_config() {
    if (of_text_.rows == nullptr)
      of_text_ = model_config(std::make_shared<const TextModel>(
          parse_model_text(text_of_model(config(), weights().stored_type())), TextKeys(), ""));
    return of_text_;
  }

  Said said_by(bounds::Derivation& replay, const std::string& id, const std::string& layout,
               const Torus& torus, Shards shards) {
    const auto wrong = [&](const std::string& of, const std::string& dumped, Shards of_chips) {
      const bounds::Derivation::Place place = replay.place_of(of);
      return Wrong{of,
                   torus,
                   Layout::parse(dumped),
                   std::move(of_chips),
                   layouts,
                   raw,
                   padding_in_trace(value_row(place.name)->dims, dump.at(of).shape, false,
                                    replay.pass(place.pass)),
                   masked_any,
                   sound};
    };
    std::vector<Wrong> others;
    for (const std::string& other : later)
      others.push_back(wrong(other, letters_of(other), {dump.at(other).data}));
    return diagnose(replay, wrong(id, layout, std::move(shards)), others, without);
  }
  /// Of a tensor that is cut rightly, or whole, rounded to f32; the dump is then as before.
  Said ask(const std::string& id, const Value& value, const Torus& torus = kTorus,
           const std::string& layout = "") {
    Value& own = dump.at(id);
    const Value was = own;
    own = f32(value, was.shape);
    Said said = layout.empty() ? ask(id, letters_of(id), torus, {own.data})
                               : ask(id, layout, torus, cut(own, layout, torus));
    own = was;
    return said;
  }
  /// Of the value as the dump has it.
  Said ask(const std::string& id) { return ask(id, Value(value(id))); }

  /// A value by id times a matrix by name, each product counted weight(k) times; f64.
  template <class Weight>
  Value product(const std::string& id, const std::string& matrix, Weight&& weight) const {
    return times(value(id), this->weight(matrix), matrix, weight);
  }
  Value product(const std::string& id, const std::string& matrix) const {
    return product(id, matrix, [](std::size_t) { return 1.0; });
  }
  /// And with other numbers in place of the matrix.
  Value product_with(const std::string& id, const std::string& matrix, const Value& w) const {
    return times(value(id), w, matrix, [](std::size_t) { return 1.0; });
  }
  /// The n partial sums of such a product.
  std::vector<Value> parts(const std::string& id, const std::string& matrix, int n) const {
    const std::size_t length = width_of(matrix) / at(n);
    std::vector<Value> all;
    for (std::size_t r = 0; r < at(n); ++r)
      all.push_back(
          product(id, matrix, [=](std::size_t k) { return k / length == r ? 1.0 : 0.0; }));
    return all;
  }
  /// The shards of a value that chip c adds up of count(c, r) times part r, `finished` at the end.
  template <class Count, class Finished>
  Shards counted(const std::string& id, const std::vector<Value>& parts, const std::string& layout,
                 const Torus& torus, Count&& count, Finished&& finished) const {
    Shards shards(at(torus.chips()));
    for (int chip = 0; chip < torus.chips(); ++chip)
      judged_elements(Layout::parse(layout), value(id).shape, torus, chip,
                      [&](std::int64_t, std::int64_t g) {
                        double v = 0;
                        for (std::size_t r = 0; r < parts.size(); ++r)
                          v += count(chip, static_cast<int>(r)) * parts[r].data[at(g)];
                        v = static_cast<float>(v);
                        shards[at(chip)].push_back(finished(v, at(g)));
                        return false;
                      });
    return shards;
  }
  template <class Count>
  Shards counted(const std::string& id, const std::vector<Value>& parts, const std::string& layout,
                 const Torus& torus, Count&& count) const {
    return counted(id, parts, layout, torus, count, [](double v, std::size_t) { return v; });
  }
  /// A value with heads, rotated as at position `row`.
  Value turned(const std::string& id, std::size_t row) const {
    const Value cosines = weight("rope_cos"), sines = weight("rope_sin"), &x = value(id);
    Value y = x;
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const std::size_t j = i % 4 % 2, first = i - i % 4 + j;
      const double c = cosines.data[row * 2 + j], s = sines.data[row * 2 + j];
      y.data[i] =
          i % 4 < 2 ? x.data[i] * c - x.data[first + 2] * s : x.data[i] * c + x.data[first] * s;
    }
    return y;
  }
  static Value f32(Value v, const Shape& shape) {
    for (double& e : v.data) e = static_cast<float>(e);
    v.shape = shape;
    return v;
  }
  static Value sum(Value a, const Value& b, double times = 1.0) {
    for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] += times * b.data[i];
    return a;
  }

  std::map<std::string, Value> dump;
  bounds::DeclaredArithmetic declared;
  std::map<std::string, Layout> layouts;
  bool raw = false, masked_any = false;
  std::string without;  ///< a kind that is not tried
  int texts = 20;       ///< how many questions are asked of the text, too
  std::function<bool(const std::string&)> sound;
  /// Other values that explanations are held against, whole, as the dump has them.
  std::vector<std::string> later;

 private:
  ModelConfig of_text_;
  std::unique_ptr<const Weights> of_text_weights_;
  std::map<std::string, Value> of_dump_;
  bounds::Derivation::Dump given_;
  std::unique_ptr<bounds::TextReplay> by_text_;
  static std::string letters_of(const std::string& id) {
    return std::string(value_row(id.substr(id.rfind('.') + 1))->dims);
  }
  std::size_t width_of(const std::string& matrix) const {
    const Shape& shape = weights().at(matrix)->shape;
    const auto contracted = weight_row(matrix.substr(matrix.rfind('.') + 1))->contracted;
    return at(element_count({shape.begin(), shape.begin() + contracted}));
  }
  template <class Weight>
  Value times(const Value& x, const Value& w, const std::string& matrix, Weight&& weight) const {
    const std::size_t width = width_of(matrix);
    const std::size_t rows = x.data.size() / width, columns = w.data.size() / width;
    Value y(Shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t k = 0; k < width; ++k)
        if (const double n = weight(k); n != 0)
          for (std::size_t c = 0; c < columns; ++c)
            y.data[r * columns + c] += n * x.data[r * width + k] * w.data[k * columns + c];
    return y;
  }
};

/// The tensor of f(number, place).
template <class F>
Planted::Value each(Planted::Value v, F&& f) {
  for (std::size_t i = 0; i < v.data.size(); ++i) v.data[i] = f(v.data[i], i);
  return v;
}
/// The tensor in which place i has what belongs at from(i).
template <class From>
Planted::Value moved(const Planted::Value& v, From&& from) {
  return each(v, [&](double, std::size_t i) { return v.data[from(i)]; });
}
inline Planted::Value scaled(const Planted::Value& v, double by) {
  return each(v, [by](double e, std::size_t) { return e * by; });
}
inline double as_bf16(double v) {
  return static_cast<double>(round_to_bf16(static_cast<float>(v)));
}
inline Planted::Value in_bf16(const Planted::Value& v) {
  return each(v, [](double e, std::size_t) { return as_bf16(e); });
}
inline double rms(const Planted::Value& v) {
  double squares = 0.0;
  for (const double e : v.data) squares += e * e;
  return std::sqrt(squares / static_cast<double>(v.data.size()));
}

/// Deterministic, between -1 and 1.
class Noise {
 public:
  double operator()() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-52 - 1.0;
  }
  Planted::Value on(const Planted::Value& v, double size) {
    return each(v, [&](double e, std::size_t) { return e + size * (*this)(); });
  }

 private:
  std::uint64_t state_ = 88172645463325252U;
};

inline std::string text(const Planted::Said& all) {
  std::string lines;
  for (const Hypothesis& h : all)
    lines += fmt::format("{} [{}] {} {:.3e}: {}\n", h.fault, h.axes,
                         h.explains ? "explains" : "near", h.residual, h.detail);
  return lines.empty() ? "nothing" : lines;
}

/// Rank 1 explains all and is "fault [axes]: words", in which its detail has these words; either of
/// axes and words may be left out, axes if it has none.
inline void expect_first(const Planted::Said& all, const std::string& expected) {
  const std::size_t colon = std::min(expected.find(": "), expected.size());
  const std::size_t bracket = std::min(expected.find(" ["), colon);
  const std::string fault = expected.substr(0, bracket);
  const std::string axes =
      bracket < colon ? expected.substr(bracket + 2, colon - bracket - 3) : std::string();
  const std::string words = colon < expected.size() ? expected.substr(colon + 2) : std::string();
  ASSERT_FALSE(all.empty()) << expected;
  EXPECT_TRUE(all[0].explains && all[0].fault == fault && all[0].axes == axes &&
              all[0].detail.find(words) != std::string::npos)
      << "planted: " << expected << "\n"
      << text(all);
  EXPECT_TRUE(std::isfinite(all[0].residual)) << "padding may hold anything: " << text(all);
}
inline void expect_alone(const Planted::Said& all, const std::string& expected) {
  expect_first(all, expected);
  EXPECT_EQ(all.size(), 1U) << text(all);
}
inline void expect_right(const Planted::Said& all, const std::string& of = "") {
  EXPECT_TRUE(all.empty()) << of << "\n" << text(all);
}
inline void expect_unexplained(const Planted::Said& all, const std::string& of) {
  for (const Hypothesis& h : all)
    EXPECT_TRUE(!h.explains && h.left <= 0.1) << of << "\n" << text(all);
}
inline void expect_none(const Planted::Said& all, const std::string& fault) {
  for (const Hypothesis& h : all) EXPECT_NE(h.fault, fault) << text(all);
}

}  // namespace shardproof::diagnosis
