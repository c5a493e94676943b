#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/plan.h"
#include "golden/compare/block_map.h"
#include "golden/compare/row_padding.h"
#include "golden/diagnosis/diagnosis.h"
#include "golden/memo/oracle_memo.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {

/// An answer of the oracle as somebody's dump, in which faults are planted. Everything is computed
/// here by itself, with plain loops in f64 and one rounding to f32.
class Planted {
 public:
  using Value = Array<double>;
  using Shards = std::vector<std::vector<double>>;

  explicit Planted(const std::string& keys)
      : plan_(make_plan(parse_case("torus=1x1x1 prefill=ws1d decode=ws1d " + keys))),
        known_(memo_.get(plan_.given)) {
    for (const auto& [id, tensor] : known_->answer.checkpoints) {
      Value wide(tensor.shape);
      for (std::size_t i = 0; i < wide.data.size(); ++i) wide.data[i] = tensor.data[i];
      dump[id] = std::move(wide);
    }
    for (const auto& [id, ids] : known_->answer.inputs)
      if (id.ends_with(".ids")) ids_[id.substr(0, id.size() - 4)] = ids;
    if (plan_.given.numerics.act == ActType::bf16) declared.values = bounds::Format::bf16;
  }

  const Value& value(const std::string& id) const { return dump.at(id); }
  Value weight(const std::string& id) const {
    const Tensor& t = known_->stored.at(id);
    Value w(t.shape);
    for (std::size_t i = 0; i < w.data.size(); ++i) w.data[i] = t.data[i];
    return w;
  }
  const ModelConfig& config() const { return known_->stored.config(); }
  const Passes& passes() const { return plan_.passes; }

  /// The shards of a tensor; `from(chip)` says as which chip's.
  template <class From>
  static Shards cut(const Value& value, const Layout& layout, const Torus& torus, From&& from) {
    Shards shards(static_cast<std::size_t>(torus.chips()));
    for (int chip = 0; chip < torus.chips(); ++chip)
      judged_elements(layout, value.shape, torus, from(chip), [&](std::int64_t, std::int64_t g) {
        shards[static_cast<std::size_t>(chip)].push_back(value.data[static_cast<std::size_t>(g)]);
        return false;
      });
    return shards;
  }
  static Shards cut(const Value& value, const Layout& layout, const Torus& torus) {
    return cut(value, layout, torus, [](int chip) { return chip; });
  }

  std::vector<Hypothesis> ask(const std::string& id, const std::string& layout, const Torus& torus,
                              Shards shards) {
    const bounds::Replay::Dump given(dump.begin(), dump.end());
    bounds::Replay replay(known_->stored, plan_.passes, ids_, given, declared);
    const auto wrong = [&](const std::string& of, const std::string& dumped, Shards given_shards) {
      const bounds::Replay::Place place = replay.place_of(of);
      return Wrong{of,
                   torus,
                   Layout::parse(dumped),
                   std::move(given_shards),
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
    return diagnose(replay, wrong(id, layout, std::move(shards)), others);
  }
  /// Of a whole tensor, which the dump has from then on.
  std::vector<Hypothesis> ask(const std::string& id, const Value& value, const Torus& torus) {
    dump[id] = value;
    return ask(id, letters_of(id), torus, {value.data});
  }
  /// Of a tensor that is cut rightly.
  std::vector<Hypothesis> ask(const std::string& id, const Value& value, const std::string& layout,
                              const Torus& torus) {
    dump[id] = value;
    return ask(id, layout, torus, cut(value, Layout::parse(layout), torus));
  }

  /// [rows, width] times [width, columns], each product counted weight(k) times; f64.
  template <class Weight>
  static Value product(const Value& x, const Value& w, std::size_t width, Weight&& weight) {
    const std::size_t rows = x.data.size() / width, columns = w.data.size() / width;
    Value y(Shape{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t k = 0; k < width; ++k)
        if (const double n = weight(k); n != 0)
          for (std::size_t c = 0; c < columns; ++c)
            y.data[r * columns + c] += n * x.data[r * width + k] * w.data[k * columns + c];
    return y;
  }
  static Value product(const Value& x, const Value& w, std::size_t width) {
    return product(x, w, width, [](std::size_t) { return 1.0; });
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
  bounds::Declared declared;
  std::map<std::string, Layout> layouts;
  bool raw = false, masked_any = false;
  std::function<bool(const std::string&)> sound;
  /// Other values that explanations are held against, whole, as the dump has them.
  std::vector<std::string> later;

 private:
  static std::string letters_of(const std::string& id) {
    return std::string(value_row(id.substr(id.rfind('.') + 1))->dims);
  }

  OracleMemo memo_;
  RunPlan plan_;
  std::shared_ptr<const OracleMemo::Known> known_;
  std::map<std::string, IntTensor> ids_;
};

inline std::string text(const std::vector<Hypothesis>& all) {
  std::string lines;
  for (const Hypothesis& h : all)
    lines += fmt::format("{} [{}] {} {:.3e}: {}\n", h.fault, h.axes,
                         h.explains ? "explains" : "near", h.residual, h.detail);
  return lines.empty() ? "nothing" : lines;
}

/// Rank 1 is this fault, about these axes, with this in its detail, and explains all.
inline void expect_first(const std::vector<Hypothesis>& all, const std::string& fault,
                         const std::string& axes = "", const std::string& detail = "") {
  ASSERT_FALSE(all.empty()) << fault << " " << axes;
  EXPECT_TRUE(all[0].explains && all[0].fault == fault && all[0].axes == axes &&
              all[0].detail.find(detail) != std::string::npos)
      << "planted: " << fault << " [" << axes << "] " << detail << "\n"
      << text(all);
  EXPECT_TRUE(std::isfinite(all[0].residual)) << "padding may hold anything: " << text(all);
}

inline const char* const kModel =
    "model=palm-tiny,layers=2,E=48,F=96,H=24,K=2,Q=4,V=48,embed_scale=1.7 batch=24 prompt=4 "
    "chunk=3 "
    "gen=3";

}  // namespace shardproof::diagnosis
