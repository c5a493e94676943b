#include "golden/bounds/value/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "golden/compare/reach_meter.h"
#include "golden/compare/row_padding.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/block_terms.h"

namespace shardproof::bounds {
namespace {

void require_shape(const std::string& id, const IntervalTensor& value, const Shape& shape) {
  if (value.shape == shape && std::ssize(value.center) == element_count(shape)) return;
  throw Error("bounds_c1", fmt::format("{} has shape [{}], the model's has [{}]", id,
                                       fmt::join(value.shape, ","), fmt::join(shape, ",")));
}

/// The formulas whose places of rounding (weights/model/rounding_places.h) composites have, in the
/// order of CompositeKind.
constexpr std::string_view kFormulas[] = {"embed", "norm", "sum", "rope", "",       "score",
                                          "",      "exp",  "",    "attn", "hidden", "out"};

std::string_view formula_of(CompositeKind kind) {
  return kFormulas[static_cast<std::size_t>(kind)];
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
      of_matrices_(declared.of_matrix_product()) {
  const NumberFormat stored = weights.stored_type();
  for (const NamedComposites& some :
       {composites_of(config_, stored), block_terms_of(config_, stored)})
    composites_.insert(some.begin(), some.end());
  for (const auto& [name, composite] : composites_)
    if (composite.kind == CompositeKind::mean) mean_ = name;
}

Way Replay::way_of(const Place& p, const DeclaredArithmetic& by) const {
  return declared_way(formula_of(composite(p.name).kind), by);
}

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
    for (const std::string_view term : kBlockTerms)
      for (std::int64_t layer = 0; layer < config_.layers && is_block_term(term, config_); ++layer)
        if (id == checkpoint_id(p.name, layer, term)) return {p.name, layer, std::string(term)};
  }
  throw Error("bounds_c1", fmt::format("the model has no value \"{}\" that bounds hold", id));
}

std::shared_ptr<const Tensor> Replay::matrix(std::int64_t layer, std::string_view name) const {
  return weights_.at(weight_id(layer, name));
}

IntervalTensor Replay::weight(std::int64_t layer, std::string_view name) const {
  return IntervalTensor(*matrix(layer, name));
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

Replay::Place Replay::operand_of(const Place& p, std::size_t operand) const {
  const std::string& name = composite(p.name).operands.at(operand);
  if (name != "in") return {p.pass, p.layer, name};
  const std::int64_t before = (value_row(p.name)->per_layer ? p.layer : config_.layers) - 1;
  const TextSection section = before < 0 ? TextSection::embedding : TextSection::layer;
  return {p.pass, std::max<std::int64_t>(before, 0), std::string(result_of(section))};
}

const IntervalTensor& Replay::operand(const Place& p) {
  const std::string id = id_of(p);
  if (const auto known = known_.find(id); known != known_.end()) return known->second;
  if (const auto dumped = dump_.find(id); dumped != dump_.end()) {
    const ValueRow& row = *value_row(p.name);
    require_shape(id, dumped->second, shape_of(row.dims, config_, extents_of(pass(p.pass), row)));
    return known_[id] = dumped->second;
  }
  const bool exactly = std::exchange(exactly_, false);  // operands stay as dumped or declared
  IntervalTensor before = derive(p);
  IntervalTensor rounded = before.rounded(format_at(p));
  exactly_ = exactly;
  if (narrow_storage(format_at(p))) unrounded_[id] = hull(before, rounded);
  return known_[id] = std::move(rounded);
}

const IntervalTensor& Replay::fusible(const Place& p) {
  const IntervalTensor& rounded = operand(p);
  const auto before = unrounded_.find(id_of(p));
  return exactly_ || before == unrounded_.end() ? rounded : before->second;
}

const IntervalTensor& Replay::value(const std::string& id) { return operand(place_of(id)); }

std::vector<std::string> Replay::operands(const std::string& of) const {
  const Place p = place_of(of);
  const Composite& c = composite(p.name);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < c.operands.size(); ++i) ids.push_back(id_of(operand_of(p, i)));
  if (c.kind == CompositeKind::cache && !pass(p.pass).previous.empty())
    ids.push_back(checkpoint_id(pass(p.pass).previous, p.layer, p.name));
  // Attention also reads the caches of the prefixes.
  const bool attends = c.kind == CompositeKind::score || c.kind == CompositeKind::mean;
  if (const PassPlan* const filled = attends ? prefix_of(pass(p.pass)) : nullptr)
    ids.push_back(checkpoint_id(filled->name, p.layer, c.operands.back()));
  if (c.kind != CompositeKind::addition || config_.block != Block::parallel || dumped(ids.back()))
    return ids;
  std::vector<std::string> terms{ids[0]};
  for (const std::string_view term : kBlockTerms)
    terms.push_back(checkpoint_id(p.pass, p.layer, term));
  return dumped(terms[1]) || dumped(terms[2]) ? terms : ids;
}

ValueVerdict Replay::judge(const std::string& id) {
  const Place place = place_of(id);
  const auto dumped = dump_.find(id);
  if (dumped == dump_.end()) throw Error("bounds_c1", fmt::format("the dump has no {}", id));
  const IntervalTensor expected = derive(place);
  std::optional<IntervalTensor> other;
  if (!has_exact_centers(id)) {
    make_exactly(true);
    other = derive(place);
    make_exactly(false);
  }
  const IntervalTensor& exact = other ? *other : expected;
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

bool Replay::has_exact_centers(const std::string& id) const {
  const auto rounds = [](const DeclaredArithmetic& by) {
    return narrow_storage(by.values) || by.wire_roundings > 0;
  };
  return composite(place_of(id).name).kind == CompositeKind::product && !rounds(declared_) &&
         std::none_of(own_.begin(), own_.end(),
                      [&](const auto& own) { return rounds(own.second); });
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
  return compute({p, by, way_of(p, by)});
}

std::vector<Replay::Variant> Replay::variants(const std::string& id) {
  const Place p = place_of(id);
  const DeclaredArithmetic& by = declared(p);
  const CompositeKind kind = composite(p.name).kind;
  const std::vector<Way> ways = ways_of(formula_of(kind), by);
  std::vector<Variant> all;
  if (kind == CompositeKind::product) {
    std::vector<IntervalTensor> by_way = project({p, by, ways[0]}, Stage::finished, ways);
    for (std::size_t w = 0; w < ways.size(); ++w)
      all.push_back({ways[w].words(), std::move(by_way[w])});
  } else {
    for (const Way& way : ways) all.push_back({way.words(), compute({p, by, way})});
  }
  return all;
}

IntervalTensor Replay::compute(const Making& m) {
  switch (composite(m.at.name).kind) {
    case CompositeKind::lookup:
      return embed(m, Stage::finished);
    case CompositeKind::norm:
      return normalize(m);
    case CompositeKind::rotation:
      return rotate(m);
    case CompositeKind::cache:
      return append_to_cache(m.at);
    case CompositeKind::score:
      return scores(m, Stage::finished);
    case CompositeKind::maximum:
    case CompositeKind::exponential:
    case CompositeKind::denominator:
      return softmax(m);
    case CompositeKind::mean:
      return mean(m, Stage::finished);
    case CompositeKind::activation:
      return hidden(m);
    case CompositeKind::addition:
      return add_residual(m);
    default:
      return project(m, Stage::finished);
  }
}

IntervalTensor Replay::embed(const Making& m, Stage stage) const {
  const Place& p = m.at;
  const auto table = weights_.at(composite(p.name).weights[0]);
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
    Number row{static_cast<double>(table->data[at(id) * E + i % E]), 0.0, 0.0};
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
