#include "golden/bounds/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "golden/bounds/tightness.h"
#include "golden/compare/reach_meter.h"
#include "golden/row_padding.h"
#include "weights/registry.h"
#include "weights/softmax.h"

namespace shardproof::bounds {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The matrices, biases and inputs of a projection, and the dims of its result after BL.
struct Projection {
  std::vector<std::pair<std::string_view, std::string_view>> terms;  // operand, matrix
  std::vector<std::string_view> biases;
};

Projection projection_of(std::string_view name, const ModelConfig& c) {
  if (name == "q") return {{{"norm", "wq"}}, {"bq"}};
  if (name == "k") return {{{"norm", "wk"}}, {"bk"}};
  if (name == "v") return {{{"norm", "wv"}}, {"bv"}};
  const std::string_view n = c.block == Block::serial ? "norm2" : "norm";
  if (name == "gate") return {{{n, "w_gate"}}, {"b_gate"}};
  if (name == "up") return {{{n, "w_up"}}, {"b_up"}};
  if (name == "attn_out") return {{{"attn", "wo"}}, {"bo"}};
  if (name == "ffn_out") return {{{"hidden", "w_out"}}, {"b_out"}};
  return {{{"attn", "wo"}, {"hidden", "w_out"}}, {"bo", "b_out"}};  // block_out
}

void require_shape(const std::string& id, const Carried& value, const Shape& shape) {
  if (value.shape == shape && std::ssize(value.center) == element_count(shape)) return;
  throw Error("bounds_c1", fmt::format("{} has shape [{}], the model's has [{}]", id,
                                       fmt::join(value.shape, ","), fmt::join(shape, ",")));
}

}  // namespace

std::string_view to_string(Fit fit) {
  switch (fit) {
    case Fit::within:
      return "within";
    case Fit::loose:
      return "loose";
    case Fit::different:
      break;
  }
  return "different";
}

Replay::Replay(const Weights& weights, const Passes& passes,
               const std::map<std::string, IntTensor>& ids, const Dump& dump,
               const Declared& declared)
    : weights_(weights), config_(weights.config()), ids_(ids), dump_(dump), declared_(declared) {
  for (std::int64_t i = 0; i < passes.size(); ++i) passes_.push_back(passes.at(i));
}

Replay::Replay(const Weights& weights, const Replay& like)
    : weights_(weights),
      config_(weights.config()),
      passes_(like.passes_),
      ids_(like.ids_),
      dump_(like.dump_),
      declared_(like.declared_) {}

void Replay::assume(const PassPlan& pass) {
  for (PassPlan& p : passes_)
    if (p.name == pass.name) p = pass;
}

const PassPlan& Replay::pass(const std::string& name) const {
  for (const PassPlan& p : passes_)
    if (p.name == name) return p;
  throw Error("bounds_c1", fmt::format("there is no pass \"{}\"", name));
}

Replay::Place Replay::place_of(const std::string& id) const {
  for (const PassPlan& p : passes_) {
    if (!id.starts_with(p.name + ".")) continue;
    for (const CheckpointSpec& spec : checkpoint_specs(config_))
      for (std::int64_t layer = 0; layer < (spec.per_layer ? config_.layers : 1); ++layer)
        if (!spec.integer && id == checkpoint_id(p.name, layer, spec.name))
          return {p.name, layer, spec.name};
  }
  throw Error("bounds_c1", fmt::format("the model has no value \"{}\" that bounds hold", id));
}

const PassPlan* Replay::prefix_of(const PassPlan& pass) const {
  const PassPlan* last = nullptr;
  if (pass.prefix.given())
    for (const PassPlan& p : passes_)
      if (p.phase == Phase::prefix) last = &p;
  return last;
}

const PassRows& Replay::rows_of(const PassPlan& pass, std::size_t row) {
  auto before = static_cast<std::int64_t>(row);
  for (const PassRows& group : pass.rows) {
    if (before < group.rows) return group;
    before -= group.rows;
  }
  throw Error("bounds_c1", fmt::format("{} has no row {}", pass.name, row));
}

std::int64_t Replay::position(const PassPlan& pass, std::size_t row, std::size_t token) const {
  return rows_of(pass, row).start + static_cast<std::int64_t>(token);
}

std::size_t Replay::visible(const PassPlan& pass, std::size_t row, std::size_t token) const {
  const PassRows& rows = rows_of(pass, row);
  const std::int64_t causal = rows.start + static_cast<std::int64_t>(token) + 1;
  return at(std::max<std::int64_t>(std::min(causal, rows.end()), 0));
}

bool Replay::has(std::string_view name) const { return has_weight(config_, name, weights_.kept()); }

Carried Replay::weight(std::int64_t layer, std::string_view name) const {
  return Carried(weights_.at(weight_id(layer, name)));
}

Format format_of(std::string_view name, const ModelConfig& config, const Declared& declared) {
  const ValueRow* const row = value_row(name);
  if (row == nullptr) return declared.unstored();
  if (row->cache && config.cache == CacheType::bf16) return Format::bf16;
  return row->stored ? declared.values : declared.unstored();
}

const Carried& Replay::operand(const Place& of, std::string_view name) {
  const std::string id = checkpoint_id(of.pass, of.layer, name);
  if (const auto known = known_.find(id); known != known_.end()) return known->second;
  if (const auto dumped = dump_.find(id); dumped != dump_.end()) {
    const PassPlan& plan = pass(of.pass);
    const Shape shape =
        shape_of(value_row(name)->dims, config_, extents_of(plan, *value_row(name)));
    require_shape(id, dumped->second, shape);
    return known_[id] = dumped->second;
  }
  const Place place{of.pass, of.layer, std::string(name)};
  return known_[id] = derived(place).rounded(format_of(name));
}

const Carried& Replay::value(const std::string& id) {
  const Place at = place_of(id);
  return operand({at.pass, at.layer, ""}, at.name);
}

std::optional<Carried> Replay::expected_raw(const std::string& id) {
  const Place place = place_of(id);
  const ValueRow* const row = value_row(place.name);
  if (row == nullptr || !row->contraction) return std::nullopt;
  if (place.name == "embed") return embedded(place, Stage::raw);
  if (place.name == "score") return scores(place, Stage::raw);
  if (place.name == "attn") return mean(place, Stage::raw);
  if (place.name == "logits") return logits(place, Stage::raw);
  if (row->acc) return projected(place, Stage::raw);
  return derived(place);  // denom: nothing follows its sum
}

std::optional<Carried> Replay::expected_scaled(const std::string& id) {
  const Place place = place_of(id);
  if (place.name == "logits") return logits(place, Stage::scaled);
  if (!value_row(place.name)->acc || weights_.kept() != WeightType::int8) return std::nullopt;
  const std::string_view matrix = projection_of(place.name, config_).terms[0].second;
  if (scale_of(config_, matrix) == nullptr) return std::nullopt;
  return projected(place, Stage::scaled);
}

Judged Replay::judge(const std::string& id) {
  const Place place = place_of(id);
  const auto dumped = dump_.find(id);
  if (dumped == dump_.end()) throw Error("bounds_c1", fmt::format("the dump has no {}", id));
  const Carried expected = derived(place);
  const Carried& actual = dumped->second;
  require_shape(id, actual, expected.shape);
  const Format format = format_of(place.name);
  Judged j;
  j.fit = Fit::within;
  Slack slack;
  double reach = 0.0, squares = 0.0;
  std::size_t judged = 0;
  const std::vector<bool> padding =
      padding_in_trace(value_row(place.name)->dims, actual.shape, false, pass(place.pass));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!padding.empty() && padding[i]) continue;
    ++judged;
    const Interval number = expected.at(i), ends = values(number, format);
    const double v = actual.center[i];
    if (!holds(ends, format, v)) {
      j.fit = Fit::different;
      j.index = global_index(actual.shape, static_cast<std::int64_t>(i));
      j.expected = ends;
      j.actual = v;
      break;
    }
    slack.see(number, format, v);
    reach = std::max(reach, 0.5 * (number.high - number.low));
    squares += v * v;
  }
  j.slack = slack.slack();
  const double mean = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(judged, 1)));
  j.reach = reach > 0 ? reach / mean : 0.0;
  if (j.fit == Fit::within && !narrow(reach, mean)) j.fit = Fit::loose;
  return j;
}

Carried Replay::derived(const Place& p) {
  const std::string& name = p.name;
  if (name == "embed") return embedded(p, Stage::finished);
  if (name == "norm" || name == "norm2" || name == "final_norm") return normed(p, normed_of(p));
  if (name == "q_rot" || name == "k_rot") return rotated(p, operand(p, name.substr(0, 1)));
  if (name == "k_cache" || name == "v_cache") return appended(p);
  if (name == "score") return scores(p, Stage::finished);
  if (name == "max" || name == "exp" || name == "denom") return softmax(p);
  if (name == "attn") return mean(p, Stage::finished);
  if (name == "hidden") return hidden(p);
  if (name == "logits") return logits(p, Stage::finished);
  if (name != "out" && name != "mid") return projected(p, Stage::finished);
  const bool serial = config_.block == Block::serial;
  const Carried& x = name == "out" && serial ? operand(p, "mid")
                     : p.layer == 0          ? operand({p.pass, 0, ""}, "embed")
                                             : operand({p.pass, p.layer - 1, ""}, "out");
  const Carried& y = operand(p, !serial ? "block_out" : name == "mid" ? "attn_out" : "ffn_out");
  Carried sum(x.shape);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum.center[i] = x.center[i] + y.center[i];
    sum.radius[i] = x.radius[i] + y.radius[i];
  }
  return sum;
}

Carried Replay::embedded(const Place& p, Stage stage) const {
  const Tensor& table = weights_.at("embed");
  const auto given = ids_.find(p.pass);
  const PassPlan& plan = pass(p.pass);
  if (given == ids_.end() || given->second.shape != Shape{plan.batch(), plan.L})
    throw Error("bounds_c1", fmt::format("{} has no ids [{},{}]", p.pass, plan.batch(), plan.L));
  const IntTensor& ids = given->second;
  const std::size_t E = at(config_.E);
  const double scale = stage == Stage::raw ? 1.0 : static_cast<double>(config_.embed_scale);
  Carried x(Shape{ids.shape[0], ids.shape[1], config_.E});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto id = ids.data[i / E];
    if (id < 0 || id >= config_.V)
      throw Error("bounds_c1", fmt::format("{} has no token {}", p.pass, id));
    x.center[i] = static_cast<double>(table.data[at(id) * E + i % E]) * scale;
    // A lookup adds a row and zeros: what is rounded again on the wire is the same number.
    if (declared_.wire_roundings > 0)
      x.radius[i] = (unit_of(declared_.wire) * std::abs(x.center[i]) +
                     least_of(declared_.wire) * std::abs(config_.embed_scale)) *
                    (1 + 0x1p-20);
  }
  return x;
}

Carried Replay::projected(const Place& p, Stage stage) {
  const Projection of = projection_of(p.name, config_);
  std::vector<const Carried*> inputs;
  std::vector<Carried> matrices;
  for (const auto& [input, matrix] : of.terms) {
    inputs.push_back(&operand(p, input));
    matrices.push_back(weight(p.layer, matrix));
  }
  const std::size_t rows = at(inputs[0]->shape[0] * inputs[0]->shape[1]);
  const std::size_t columns = matrices[0].size() / (inputs[0]->size() / rows);
  const WeightRow* const scale_row = stage != Stage::raw && weights_.kept() == WeightType::int8
                                         ? scale_of(config_, of.terms[0].second)
                                         : nullptr;
  const Carried scales = scale_row != nullptr ? weight(p.layer, scale_row->name) : Carried();
  std::vector<Carried> biases;
  for (const std::string_view bias : of.biases)
    if (stage == Stage::finished && has(bias)) biases.push_back(weight(p.layer, bias));
  Carried y(
      shape_of(value_row(p.name)->dims, config_, {inputs[0]->shape[0], inputs[0]->shape[1], 0}));
  const double unit = declared_.operations.unit + 0x1p-53;
  const double kept = unit_of(declared_.sums);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t c = 0; c < columns; ++c) {
      CarriedSum sum;
      for (std::size_t t = 0; t < inputs.size(); ++t) {
        const std::size_t width = inputs[t]->size() / rows;
        for (std::size_t k = 0; k < width; ++k)
          sum.add(inputs[t]->center[row * width + k], matrices[t].center[k * columns + c],
                  inputs[t]->radius[row * width + k]);
      }
      Evaluated v = sum.value(declared_);
      // S is a value of its own where something follows.
      if (scale_row != nullptr) {
        v.center *= scales.center[c];
        v.radius = v.radius * std::abs(scales.center[c]) + (unit + kept) * std::abs(v.center);
      }
      for (const Carried& bias : biases) {
        v.radius += kept * std::abs(v.center) + unit * std::abs(v.center + bias.center[c]);
        v.center += bias.center[c];
      }
      y.set(row * columns + c, v);
    }
  return y;
}

Carried Replay::hidden(const Place& p) {
  const Carried& gate = operand(p, "gate");
  const bool gated = config_.ffn == Ffn::swiglu || config_.ffn == Ffn::geglu;
  Carried y(gate.shape);
  for (std::size_t i = 0; i < y.size(); ++i) {
    Evaluated w = activation(config_.ffn, config_.softmax, gate.center[i], declared_.operations);
    w.radius += std::abs(w.slope) * gate.radius[i];
    if (gated) {
      const Carried& up = operand(p, "up");
      // w is a value, in whatever the operations are in, or f32.
      w.radius +=
          std::max(declared_.operations.unit, unit_of(declared_.unstored())) * std::abs(w.center);
      w.radius =
          w.radius * (std::abs(up.center[i]) + up.radius[i]) + std::abs(w.center) * up.radius[i];
      w.center *= up.center[i];
      w.radius += 0x1p-53 * std::abs(w.center);
    }
    y.set(i, w);
  }
  return y;
}

Carried Replay::logits(const Place& p, Stage stage) {
  const Carried& x = operand({p.pass, 0, ""}, "final_norm");
  const PassPlan& plan = pass(p.pass);
  const Carried table = Carried(weights_.at(config_.tied ? "embed" : "unembed"));
  const bool biased = stage == Stage::finished && has("unembed_bias");
  const Carried bias = biased ? Carried(weights_.at("unembed_bias")) : Carried();
  const std::size_t E = at(config_.E), V = at(config_.V), B = at(x.shape[0]), L = at(x.shape[1]);
  const double unit = declared_.operations.unit + 0x1p-53;
  std::vector<std::size_t> last;
  for (const PassRows& group : plan.rows)  // of a row without a token any place will do
    last.insert(last.end(), at(group.rows), at(std::max<std::int64_t>(group.tokens - 1, 0)));
  Carried y(Shape{x.shape[0], config_.V});
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t v = 0; v < V; ++v) {
      CarriedSum sum;
      const std::size_t row = (b * L + last.at(b)) * E;
      for (std::size_t e = 0; e < E; ++e)
        sum.add(x.center[row + e], table.center[v * E + e], x.radius[row + e]);
      Evaluated z = sum.value(declared_);
      if (stage != Stage::raw) {
        const auto scale = static_cast<double>(scale_of_logits(config_));
        z.center *= scale;
        z.radius =
            z.radius * std::abs(scale) + (unit + unit_of(declared_.sums)) * std::abs(z.center);
      }
      if (biased) {
        z.radius += unit * (std::abs(z.center) + std::abs(z.center + bias.center[v]));
        z.center += bias.center[v];
      }
      y.set(b * V + v, z);
    }
  return y;
}

}  // namespace shardproof::bounds
