#include "engine/cost/search/detail/table_space.h"

#include <functional>
#include <map>
#include <utility>

namespace shardproof::cost {
namespace {

using Extent = std::function<std::int64_t(char)>;

std::vector<Axis> long_axes(const Torus& torus) {
  std::vector<Axis> axes;
  for (const Axis a : {Axis::z, Axis::y, Axis::x})
    if (torus.size(a) > 1) axes.push_back(a);
  return axes;
}

/// Returns every way to give each axis to one of the subscripts or to none, in every order.
std::vector<std::vector<Axes>> placements(const std::vector<Axis>& axes, std::size_t subscripts) {
  std::vector<std::vector<Axes>> all{std::vector<Axes>(subscripts)};
  for (const Axis axis : axes) {
    const std::size_t before = all.size();
    for (std::size_t i = 0; i < before; ++i)
      for (std::size_t s = 0; s < subscripts; ++s) {
        // Insert the axis at every position of the subscript.
        const Axes given = all[i][s];
        for (int place = 0; place <= given.size(); ++place) {
          Axes grown;
          for (int k = 0; k <= given.size(); ++k) {
            if (k == place) grown = grown.with(axis);
            if (k < given.size()) grown = grown.with(given.begin()[k]);
          }
          std::vector<Axes> next = all[i];
          next[s] = grown;
          all.push_back(std::move(next));
        }
      }
  }
  return all;
}

/// Returns the layouts of `letters` that shard only the dims in `sharded` and divide every extent.
std::vector<Layout> layouts_of(const std::string& letters, const std::string& sharded,
                               const Torus& torus, const Extent& extent) {
  std::vector<Layout> layouts;
  for (const std::vector<Axes>& placed : placements(long_axes(torus), sharded.size())) {
    std::vector<Layout::Dim> dims;
    bool divides = true;
    for (const char letter : letters) {
      const std::size_t at = sharded.find(letter);
      dims.push_back({letter, at == std::string::npos ? Axes() : placed[at]});
      divides = divides && extent(letter) % torus.size(dims.back().axes) == 0;
    }
    if (divides) layouts.emplace_back(std::move(dims), Axes());
  }
  return layouts;
}

/// Returns every prefix of a subscript, the whole one first.
std::vector<Axes> prefixes(const Axes& axes) {
  std::vector<Axes> all;
  for (int length = axes.size(); length >= 0; --length) {
    Axes head;
    for (int i = 0; i < length; ++i) head = head.with(axes.begin()[i]);
    all.push_back(head);
  }
  return all;
}

std::vector<StreamChoice> all_streams(const std::vector<Layout>& layouts) {
  std::vector<StreamChoice> streams;
  for (const Layout& in : layouts)
    for (const Axes& b : prefixes(in.axes('B')))
      for (const Axes& l : prefixes(in.axes('L')))
        for (const Axes& e : prefixes(in.axes('E'))) {
          const Layout taken({{'B', b}, {'L', l}, {'E', e}}, {});
          streams.push_back({in, taken, false});
          if (!(taken == in)) streams.push_back({in, taken, true});
        }
  return streams;
}

/// Adds the matrices as used, in every resident layout.
void add_weights(const WeightChoice& used, const Torus& torus, const Extent& extent,
                 std::vector<WeightChoice>& weights) {
  Axes taken = used.e.with(used.f);
  for (const Axis a : used.h)
    if (!taken.has(a)) taken = taken.with(a);
  std::vector<Axis> free;
  for (const Axis a : long_axes(torus))
    if (!taken.has(a)) free.push_back(a);
  std::size_t ways = 1;  // each axis to E, to F and H, or to none
  for (std::size_t i = 0; i < free.size(); ++i) ways *= 3;
  for (std::size_t way = 0; way < ways; ++way) {
    WeightChoice choice = used;
    std::size_t left = way;
    for (const Axis a : free) {
      if (left % 3 == 1) choice.rest_e = choice.rest_e.with(a);
      if (left % 3 == 2) {
        choice.rest_f = choice.rest_f.with(a);
        choice.rest_h = choice.rest_h.with(a);
      }
      left /= 3;
    }
    if (extent('E') % torus.size(choice.rest_e) == 0 &&
        extent('F') % torus.size(choice.rest_f) == 0 &&
        extent('H') % torus.size(choice.rest_h) == 0)
      weights.push_back(choice);
  }
}

std::vector<WeightChoice> all_weights_of(const ModelConfig& model, const Torus& torus,
                                         const Extent& extent) {
  std::vector<WeightChoice> weights;
  const std::vector<std::vector<Axes>> placed = placements(long_axes(torus), 2);
  for (const std::vector<Axes>& of_ffn : placed)
    for (const std::vector<Axes>& of_attention : placed) {
      const Axes &e = of_ffn[0], &f = of_ffn[1], &h = of_attention[1];
      if (!(of_attention[0] == e)) continue;
      if (model.block == Block::parallel && !(f.sorted() == h.sorted())) continue;
      add_weights({e, f, h, e, f, h}, torus, extent, weights);
    }
  return weights;
}

LayoutLine line_of(std::string value, std::vector<LayoutStep> steps) {
  return {std::move(value), "", std::move(steps), {}};
}

LayoutStep sharded_step(const Axes& e, const Axes& f, const Axes& h) {
  LayoutStep step;
  step.sharded = {{'E', e}, {'F', f}, {'H', h}};
  return step;
}

}  // namespace

TableSpace::TableSpace(const ModelConfig& model, const Torus& torus, const Pass& pass) {
  const std::map<char, std::int64_t> extents{{'B', pass.B},  {'L', pass.L},  {'E', model.E},
                                             {'F', model.F}, {'H', model.H}, {'Q', model.Q}};
  const Extent extent = [extents](char letter) { return extents.at(letter); };
  const std::string rows = pass.phase == Phase::decode ? "B" : "BL";
  streams_ = all_streams(layouts_of("BLE", rows + "E", torus, extent));
  weights_ = all_weights_of(model, torus, extent);
  attends_ = layouts_of("BLHQ", rows + "H", torus, extent);
  hiddens_ = layouts_of("BLF", rows + "F", torus, extent);
}

bool TableSpace::fit(const StreamChoice& stream, const WeightChoice& weights) {
  const Axes rows = stream.taken.axes('B').with(stream.taken.axes('L'));
  return !rows.has_any(weights.e) && !rows.has_any(weights.f) && !rows.has_any(weights.h);
}

LayoutTable TableSpace::table(const StreamChoice& stream, const WeightChoice& weights,
                              const Layout& attend, const Layout& hidden) const {
  LayoutTable table;
  table.name = "searched";
  std::vector<LayoutStep> in{{stream.in}};
  if (stream.norm_first)
    table.lines = {line_of("in", in), line_of("norm", {{stream.in}, {stream.taken}})};
  else if (stream.taken == stream.in)
    table.lines = {line_of("in", in)};
  else
    table.lines = {line_of("in", {{stream.in}, {stream.taken}})};
  std::vector<LayoutStep> steps{sharded_step(weights.rest_e, weights.rest_f, weights.rest_h)};
  const LayoutStep used = sharded_step(weights.e, weights.f, weights.h);
  if (!(steps[0] == used)) steps.push_back(used);
  table.lines.push_back(line_of("weights", std::move(steps)));
  table.lines.push_back(line_of("hidden", {{hidden}}));
  table.lines.push_back(line_of("attend", {{attend}}));
  return table;
}

double TableSpace::size() const {
  double pairs = 0.0;
  for (const StreamChoice& stream : streams_)
    for (const WeightChoice& choice : weights_) pairs += fit(stream, choice) ? 1.0 : 0.0;
  return pairs * static_cast<double>(attends_.size()) * static_cast<double>(hiddens_.size());
}

}  // namespace shardproof::cost
