#include "golden/bounds/value/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "golden/compare/reach_meter.h"
#include "golden/compare/row_padding.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::bounds {
namespace {

void require_shape(const std::string& id, const IntervalTensor& value, const Shape& shape) {
  if (value.shape == shape && std::ssize(value.center) == element_count(shape)) return;
  throw Error("bounds_c1", fmt::format("{} has shape [{}], the model's has [{}]", id,
                                       fmt::join(value.shape, ","), fmt::join(shape, ",")));
}

/// Returns whether the id belongs to the pass: "decode.1.layer0.q" to "decode.1".
bool is_of_pass(const std::string& id, const std::string& pass) {
  return id.size() > pass.size() && id.starts_with(pass) && id[pass.size()] == '.';
}

}  // namespace

Replay::Replay(const Weights& weights, const Passes& passes,
               const std::map<std::string, IntTensor>& ids, const Dump& dump,
               const DeclaredArithmetic& declared)
    : Derivation(weights, passes, ids, dump, declared),
      config_(weights.config()),
      of_matrices_(declared.of_matrix_product()),
      threads_(&calling_thread()) {}

void Replay::assume(const std::string& id, IntervalTensor value) {
  known_[id] = std::move(value);
  unrounded_.erase(id);
  assumed_.insert(id);
}

void Replay::assume(const DeclaredArithmetic& declared) {
  declared_ = declared;
  of_matrices_ = declared.of_matrix_product();
  own_.clear();
}

void Replay::declare(const std::string& id, const DeclaredArithmetic& declared) {
  own_[id] =
      is_matrix_product(id.substr(id.rfind('.') + 1)) ? declared.of_matrix_product() : declared;
}

void Replay::lay_out(const std::map<std::string, Layout>& layouts, const Torus& torus) {
  layouts_ = layouts;
  torus_ = torus;
}

Replay::Place Replay::place_of(const std::string& id) const {
  for (const PassPlan& p : passes_) {
    if (!is_of_pass(id, p.name)) continue;
    for (const CheckpointSpec& spec : checkpoint_specs(config_))
      for (std::int64_t layer = 0; layer < (spec.per_layer ? config_.layers : 1); ++layer)
        if (!spec.integer && id == checkpoint_id(p.name, layer, spec.name))
          return {p.name, layer, spec.name};
    for (const std::string_view term : {"attn_out", "ffn_out"})
      for (std::int64_t layer = 0; layer < config_.layers && is_block_term(term, config_); ++layer)
        if (id == checkpoint_id(p.name, layer, term)) return {p.name, layer, std::string(term)};
  }
  throw Error("bounds_c1", fmt::format("the model has no value \"{}\" that bounds hold", id));
}

bool Replay::has(std::string_view name) const {
  return has_weight(config_, name, weights_.stored_type());
}

const Tensor& Replay::matrix(std::int64_t layer, std::string_view name) const {
  return weights_.at(weight_id(layer, name));
}

IntervalTensor Replay::weight(std::int64_t layer, std::string_view name) const {
  return IntervalTensor(matrix(layer, name));
}

bool is_block_term(std::string_view name, const ModelConfig& config) {
  return config.rows == nullptr && config.block == Block::parallel &&
         (name == "attn_out" || name == "ffn_out");
}

bool is_matrix_product(std::string_view name) {
  const ValueRow* const row = value_row(name);
  return row != nullptr && row->acc;
}

const DeclaredArithmetic& Replay::declared(const Place& place) const {
  const auto own = own_.find(checkpoint_id(place.pass, place.layer, place.name));
  if (own != own_.end()) return own->second;
  return is_matrix_product(place.name) ? of_matrices_ : declared_;
}

const IntervalTensor& Replay::stream(const Place& p) {
  return p.layer == 0 ? fusible({p.pass, 0, ""}, "embed")
                      : fusible({p.pass, p.layer - 1, ""}, "out");
}

std::string Replay::before(const Place& p) const {
  return p.layer == 0 ? checkpoint_id(p.pass, 0, "embed")
                      : checkpoint_id(p.pass, p.layer - 1, "out");
}

const IntervalTensor& Replay::operand(const Place& of, std::string_view name) {
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
  const bool exactly = std::exchange(exactly_, false);  // operands stay as dumped or declared
  IntervalTensor before = derive(place);
  IntervalTensor made = before.rounded(format_at(place));
  exactly_ = exactly;
  if (narrow_storage(format_at(place))) unrounded_[id] = hull(before, made);
  return known_[id] = std::move(made);
}

const IntervalTensor& Replay::fusible(const Place& of, std::string_view name) {
  const IntervalTensor& rounded = operand(of, name);
  const auto before = unrounded_.find(checkpoint_id(of.pass, of.layer, name));
  return exactly_ || before == unrounded_.end() ? rounded : before->second;
}

const IntervalTensor& Replay::value(const std::string& id) {
  const Place at = place_of(id);
  return operand({at.pass, at.layer, ""}, at.name);
}

std::vector<std::string> Replay::operands(const std::string& of) const {
  const Place p = place_of(of);
  const ModelConfig& c = config_;
  const bool serial = c.block == Block::serial, turns = rotates(c);
  const bool gated = c.ffn == Ffn::swiglu || c.ffn == Ffn::geglu;
  const auto id = [&](std::string_view name) { return checkpoint_id(p.pass, p.layer, name); };
  const std::string& n = p.name;
  std::vector<std::string> ids;
  for (const Projection::Term& term : projection_of(n, c).terms) ids.push_back(id(term.operand));
  if (!ids.empty()) return ids;
  if (n == "norm") return {before(p)};
  if (n == "norm2") return {id("mid")};
  if (n == "final_norm") return {checkpoint_id(p.pass, c.layers - 1, "out")};
  if (n == "q_rot") return {id("q")};
  if (n == "k_rot") return {id("k")};
  if (n == "k_cache" || n == "v_cache") {
    const std::string& previous = pass(p.pass).previous;
    ids.push_back(id(n == "v_cache" ? "v" : turns ? "k_rot" : "k"));
    if (!previous.empty()) ids.push_back(checkpoint_id(previous, p.layer, n));
    return ids;
  }
  // Attention also reads the caches of the prefixes.
  const auto with_prefix = [&](std::vector<std::string> all, std::string_view cache) {
    all.push_back(id(cache));
    if (const PassPlan* const filled = prefix_of(pass(p.pass)))
      all.push_back(checkpoint_id(filled->name, p.layer, cache));
    return all;
  };
  if (n == "score") return with_prefix({id(turns ? "q_rot" : "q")}, "k_cache");
  if (n == "max") return {id("score")};
  if (n == "exp") return {id("score"), id("max")};
  if (n == "denom") return {id("exp")};
  if (n == "attn") return with_prefix({id("exp"), id("denom")}, "v_cache");
  if (n == "hidden") return gated ? std::vector{id("gate"), id("up")} : std::vector{id("gate")};
  if (n == "mid") return {before(p), id("attn_out")};
  if (n == "out" && serial) return {id("mid"), id("ffn_out")};
  if (n == "out") {
    const bool terms =
        !dumped(id("block_out")) && (dumped(id("attn_out")) || dumped(id("ffn_out")));
    return terms ? std::vector{before(p), id("attn_out"), id("ffn_out")}
                 : std::vector{before(p), id("block_out")};
  }
  return {};  // embed: depends on ids only
}

ValueVerdict Replay::judge(const std::string& id) {
  const Place place = place_of(id);
  const auto dumped = dump_.find(id);
  if (dumped == dump_.end()) throw Error("bounds_c1", fmt::format("the dump has no {}", id));
  const IntervalTensor expected = derive(place);
  make_exactly(true);
  const IntervalTensor exact = derive(place);
  make_exactly(false);
  const IntervalTensor& actual = dumped->second;
  require_shape(id, actual, expected.shape);
  const NumberFormat format = format_at(place);
  ValueVerdict j;
  Slack slack;
  double squares = 0.0;
  std::size_t judged = 0;
  const std::vector<bool> padding =
      padding_in_trace(value_row(place.name)->dims, actual.shape, false, pass(place.pass));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!padding.empty() && padding[i]) continue;
    ++judged;
    const Number number = expected.number(i);
    const Interval ends = values(number.interval(), format);
    const double v = actual.center[i];
    if (!holds(ends, format, v)) {
      j.extent.outside = true;
      j.index = global_index(actual.shape, static_cast<std::int64_t>(i));
      j.expected = ends;
      j.actual = v;
      break;
    }
    slack.see(number.interval(), format, v);
    if (!holds(values(number.likely_interval(), format), format, v)) j.extent.outside_likely = true;
    j.extent.worst = farther(j.extent.worst, number.worst);
    j.extent.likely = farther(j.extent.likely, number.likely);
    j.extent.found = farther(j.extent.found, distance(v, format, exact.center[i]));
    squares += v * v;
  }
  j.slack = slack.slack();
  j.extent.scale = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(judged, 1)));
  j.reach = relative(j.extent.worst, j.extent.scale);
  j.fit = fit_of(j.extent);
  return j;
}

DeclaredArithmetic Replay::arithmetic(const Place& p) const {
  DeclaredArithmetic by = declared(p);
  if (!exactly_) return by;
  if (narrow_storage(by.values)) by.values = NumberFormat::f32;
  by.wire_roundings = 0;
  return by;
}

IntervalTensor Replay::derive(const Place& p) {
  const DeclaredArithmetic by = arithmetic(p);
  return compute({p, by, declared_way(formula_of(p.name), by)});
}

std::vector<Replay::Variant> Replay::variants(const std::string& id) {
  const Place p = place_of(id);
  const DeclaredArithmetic& by = declared(p);
  const std::string_view formula = formula_of(p.name);
  const std::vector<Way> ways = ways_of(formula, by);
  std::vector<Variant> all;
  if (formula == "sum") {
    std::vector<IntervalTensor> by_way = project({p, by, ways[0]}, Stage::finished, ways);
    for (std::size_t w = 0; w < ways.size(); ++w)
      all.push_back({ways[w].words(), std::move(by_way[w])});
  } else {
    for (const Way& way : ways) all.push_back({way.words(), compute({p, by, way})});
  }
  return all;
}

IntervalTensor Replay::compute(const Making& m) {
  const std::string& name = m.at.name;
  if (name == "embed") return embed(m, Stage::finished);
  if (name == "norm" || name == "norm2" || name == "final_norm") return normalize(m);
  if (name == "q_rot" || name == "k_rot") return rotate(m);
  if (name == "k_cache" || name == "v_cache") return append_to_cache(m.at);
  if (name == "score") return scores(m, Stage::finished);
  if (name == "max" || name == "exp" || name == "denom") return softmax(m);
  if (name == "attn") return mean(m, Stage::finished);
  if (name == "hidden") return hidden(m);
  if (name == "out" || name == "mid") return add_residual(m);
  return project(m, Stage::finished);
}

IntervalTensor Replay::embed(const Making& m, Stage stage) const {
  const Place& p = m.at;
  const Tensor& table = weights_.at("embed");
  const auto given = ids_.find(p.pass);
  const PassPlan& plan = pass(p.pass);
  if (given == ids_.end() || given->second.shape != Shape{plan.batch(), plan.L})
    throw Error("bounds_c1", fmt::format("{} has no ids [{},{}]", p.pass, plan.batch(), plan.L));
  const IntTensor& ids = given->second;
  const std::size_t E = at(config_.E);
  const auto factor = static_cast<double>(config_.embed_scale);
  const Number scale = rounded_if({factor, 0.0, 0.0}, m.way.rounds("scale"), m.by.values);
  IntervalTensor x(Shape{ids.shape[0], ids.shape[1], config_.E});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto id = ids.data[i / E];
    if (id == kUnknownId) {
      x.set(i, Number{0.0, kInfinity, kInfinity});
      continue;
    }
    if (id < 0 || id >= config_.V)
      throw Error("bounds_c1", fmt::format("{} has no token {}", p.pass, id));
    Number row{static_cast<double>(table.data[at(id) * E + i % E]), 0.0, 0.0};
    // A sharded lookup adds a row and zeros: rounding it again on the wire changes nothing.
    if (m.by.wire_roundings > 0) row = rounded_if(row, Rounds::some, m.by.wire);
    if (stage == Stage::raw) {
      x.set(i, row);
      continue;
    }
    // The product is rounded only as the value itself.
    const auto radius = [&](double of_row, double of_scale) {
      return std::abs(row.center) * of_scale + std::abs(scale.center) * of_row + of_row * of_scale;
    };
    x.set(i, Number{row.center * scale.center, radius(row.worst, scale.worst),
                    radius(row.likely, scale.likely)});
  }
  return x;
}

}  // namespace shardproof::bounds
