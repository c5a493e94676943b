#include "engine/cost/search/detail/table_bounds.h"

#include <algorithm>

#include "weights/model/registry.h"

namespace shardproof::cost {
namespace {

/// Returns a checkpoint as a value that moves, with its widths as a partial sum and when complete.
PathFloors::Value travelling(std::string_view checkpoint, std::string letters,
                             std::vector<std::int64_t> extents, std::int64_t behind,
                             const Numerics& numerics, const ModelConfig& model) {
  const ValueRow& row = *value_row(checkpoint);
  const bool narrow = row.wire_rounds && numerics.wire == NumberFormat::bf16;
  return {std::move(letters), std::move(extents), behind, narrow ? 2 : 4,
          bytes_of(row.wire(numerics, model))};
}

int matrix_bytes(const Numerics& numerics) { return bytes_of(weight_row("wq")->wire(numerics)); }

PathFloors::Value matrix(std::string letters, std::vector<std::int64_t> extents,
                         std::int64_t behind, const Numerics& numerics) {
  return {std::move(letters), std::move(extents), behind, 4, matrix_bytes(numerics)};
}

double product(const std::vector<std::int64_t>& extents) {
  double n = 1.0;
  for (const std::int64_t extent : extents) n *= static_cast<double>(extent);
  return n;
}

/// Returns the elements of a layer's biases and int8 scales, without those of norms.
double channels_of(const ModelConfig& model, NumberFormat weights) {
  double channels = 0.0;
  for (const WeightSpec& spec : weight_specs(model, weights)) {
    const WeightRow* const row = weight_row(spec.name.substr(spec.name.find('.') + 1));
    const bool first = spec.name.starts_with("layer0.");
    const bool norm = spec.name.find(".norm") != std::string::npos;
    if (first && !norm && row != nullptr &&
        (row->kind == WeightKind::bias || row->kind == WeightKind::scale))
      channels += product(spec.shape);
  }
  return channels;
}

}  // namespace

Floor& Floor::operator+=(const Floor& other) {
  flops += other.flops;
  needed_flops += other.needed_flops;
  reads += other.reads;
  communication += other.communication;
  held += other.held;
  live = std::max(live, other.live);
  return *this;
}

Floor Floor::least(const Floor& other) const {
  return {std::min(flops, other.flops), std::min(needed_flops, other.needed_flops),
          std::min(reads, other.reads), std::min(communication, other.communication),
          std::min(held, other.held),   std::min(live, other.live)};
}

TableBounds::TableBounds(const ModelConfig& m, const Numerics& numerics, const Torus& torus,
                         const Pass& pass, const Chip& chip)
    : model_(m),
      numerics_(numerics),
      torus_(torus),
      pass_(pass),
      chip_(chip),
      stream_(travelling("out", "BLE", {pass.B, pass.L, m.E}, 1, numerics, m), torus, chip),
      output_(travelling(m.block == Block::parallel ? "block_out" : "attn_out", "BLE",
                         {pass.B, pass.L, m.E}, 1, numerics, m),
              torus, chip),
      queries_(travelling("q", "BLH", {pass.B, pass.L, m.H}, m.Q, numerics, m), torus, chip),
      keys_(travelling("k", "BLK", {pass.B, pass.L, m.K}, m.Q, numerics, m), torus, chip),
      attended_(travelling("attn", "BLH", {pass.B, pass.L, m.H}, m.Q, numerics, m), torus, chip),
      wide_(travelling("gate", "BLF", {pass.B, pass.L, m.F}, 1, numerics, m), torus, chip),
      hidden_(travelling("hidden", "BLF", {pass.B, pass.L, m.F}, 1, numerics, m), torus, chip),
      heads_weight_(matrix("EH", {m.E, m.H}, m.Q, numerics), torus, chip),
      keys_weight_(matrix("EK", {m.E, m.K}, m.Q, numerics), torus, chip),
      ffn_weight_(matrix("EF", {m.E, m.F}, 1, numerics), torus, chip) {
  gated_ = has_weight(m, "w_up");
  norm_bias_ = has_weight(m, "norm_bias");
  channels_ = channels_of(m, numerics.weights);
  Work unit;
  unit.layer.matmul_flops = unit.layer.weight_reads = 1.0;
  const Seconds one = bounds_of(unit, chip, numerics.act).layer;
  per_flop_ = one.compute;
  per_byte_ = one.memory;
}

Seconds TableBounds::seconds(const Floor& floor) const {
  return {floor.flops * per_flop_, floor.reads * per_byte_, floor.communication, 0.0,
          floor.needed_flops * per_flop_};
}

/// Returns the axes of K for given axes of H: the longest prefix that divides K into more than one
/// block (docs/layouts.md, rule 4).
Axes TableBounds::of_heads(const Axes& h) const {
  Axes head, best;
  for (const Axis a : h) {
    head = head.with(a);
    if (torus_.size(head) > 1 && model_.K % torus_.size(head) == 0) best = head;
  }
  return best;
}

/// Returns the axes of more than one chip that are in none of these subscripts.
Axes TableBounds::unused(const std::vector<Axes>& used) const {
  Axes free;
  for (const Axis a : {Axis::x, Axis::y, Axis::z}) {
    bool found = torus_.size(a) == 1;
    for (const Axes& axes : used) found = found || axes.has(a);
    if (!found) free = free.with(a);
  }
  return free;
}

/// Returns the number of chips that divide a value with these subscripts.
double TableBounds::shards(const std::vector<Axes>& used) const {
  return static_cast<double>(torus_.chips()) / torus_.size(unused(used));
}

/// Returns the largest number of chips that may divide a product on its way from its own rows to
/// others: if they differ, any unused axis may slice it first.
double TableBounds::sliced(const std::vector<Axes>& used, const Layout& from,
                           const Layout& to) const {
  const bool same = from.axes('B') == to.axes('B') && from.axes('L') == to.axes('L');
  return same ? shards(used) : static_cast<double>(torus_.chips());
}

/// Returns the least seconds to a layout, or to one whose rows unused axes slice further: a
/// contraction whose product is sliced takes its operands sliced (docs/layouts.md, rule 6).
double TableBounds::to_rows(PathFloors& paths, const Layout& from, const Layout& to,
                            const Axes& free) const {
  double least = paths.seconds(from, to);
  for (const Axis a : free)
    for (const std::size_t row : {std::size_t{0}, std::size_t{1}})
      least = std::min(least, to_rows(paths, from, to.with_axes(row, to.dims()[row].axes.with(a)),
                                      free.without(Axes().with(a))));
  return least;
}

/// Bytes of an op's result: partial sums over the axes `partial`, or complete if there are none.
double TableBounds::made(double elements, const Axes& partial) const {
  return elements * (partial.empty() ? bytes_of(value_row("out")->wire(numerics_, model_)) : 4);
}

/// Bounds of a norm computed in the layout `at`: its statistics and its gain.
Floor TableBounds::norm(const Layout& at) const {
  const Axes e = at.axes('E');
  const int statistics = model_.norm == Norm::layernorm ? 2 : 1;
  const double rows =
      product({pass_.B, pass_.L}) / torus_.size(at.axes('B')) / torus_.size(at.axes('L'));
  const auto width = static_cast<double>(model_.E);
  const double vectors = norm_bias_ ? 2.0 : 1.0;
  Floor floor;
  floor.flops = statistics * 2.0 * rows * width / torus_.size(e);
  floor.reads = 4.0 * vectors * width / torus_.size(e);
  floor.held = 4.0 * vectors * width;
  if (e.empty()) return floor;
  Traffic sum;
  sum.kind = OpKind::all_reduce;
  sum.axes = e;
  sum.group = torus_.size(e);
  sum.rings = rings_of(e, torus_);
  sum.sent_bytes = 2.0 * 4.0 * rows * (sum.group - 1) / sum.group;
  floor.communication =
      statistics * (communication_seconds(sum, chip_) + 2.0 * (sum.group - 1) * chip_.hop_latency);
  return floor;
}

/// Bounds of all W matrices: bytes resident, gathered and read, with a share of biases and scales.
Floor TableBounds::matrices(const WeightChoice& w) {
  Floor floor;
  const double bytes = matrix_bytes(numerics_);
  const auto add = [&](PathFloors& paths, char letter, const Axes& rest, const Axes& used,
                       double elements, int times) {
    const Layout from({{'E', w.rest_e}, {letter, rest}}, {}), to({{'E', w.e}, {letter, used}}, {});
    floor.held += times * bytes * elements / torus_.size(w.rest_e) / torus_.size(rest);
    floor.reads += times * bytes * elements / torus_.size(w.e) / torus_.size(used);
    floor.communication += times * paths.seconds(from, to);
    if (!(from == to))  // a copy is made
      floor.live = std::max(floor.live, bytes * elements / torus_.size(w.e) / torus_.size(used));
  };
  const double heads = product({model_.E, model_.H, model_.Q});
  add(heads_weight_, 'H', w.rest_h, w.h, heads, 2);
  add(keys_weight_, 'K', of_heads(w.rest_h), of_heads(w.h), product({model_.E, model_.K, model_.Q}),
      2);
  add(ffn_weight_, 'F', w.rest_f, w.f, product({model_.E, model_.F}), gated_ ? 3 : 2);
  floor.reads += 4.0 * channels_ / torus_.chips();
  floor.held += 4.0 * channels_ / torus_.chips();
  return floor;
}

Floor TableBounds::stream(const StreamChoice& stream, const WeightChoice& weights) {
  const Layout& taken = stream.taken;
  const Axes b = taken.axes('B'), l = taken.axes('L');
  const Layout operand({{'B', b}, {'L', l}, {'E', weights.e}}, {});
  const Axes free = unused({b, l, weights.e, weights.f, weights.h});
  Floor half = norm(stream.norm_first ? stream.in : taken);
  const double collected = stream_.seconds(stream.in, taken);
  // If the norm comes first, the contraction may read a copy taken before the gather.
  half.communication += stream.norm_first
                            ? std::max(collected, to_rows(stream_, stream.in, operand, free))
                            : collected + to_rows(stream_, taken, operand, free);
  const double tokens = product({pass_.B, pass_.L});
  const double heads = product({model_.H, model_.Q, model_.E}),
               wide = product({model_.F, model_.E});
  Floor all = matrices(weights);
  all.flops = all.needed_flops = 2.0 * tokens *
                                 (heads / sliced({b, l, weights.e, weights.h}, taken, stream.in) +
                                  wide / sliced({b, l, weights.e, weights.f}, taken, stream.in));
  all.live = std::max(all.live, made(tokens * static_cast<double>(model_.E) /
                                         sliced({b, l, weights.e}, taken, stream.in),
                                     weights.h));
  all.communication += output_.seconds(operand.with_partial(weights.h.sorted()), stream.in);
  all += half;
  if (model_.block == Block::parallel) return all;
  all += half;
  all.communication += output_.seconds(operand.with_partial(weights.f.sorted()), stream.in);
  return all;
}

Floor TableBounds::attention(const Layout& rows, const Axes& e, const Axes& h,
                             const Layout& attend) {
  const Axes b = rows.axes('B'), l = rows.axes('L'), k = of_heads(h);
  const Axes to_b = attend.axes('B'), to_l = attend.axes('L'), to_h = attend.axes('H'),
             to_k = of_heads(to_h);
  const Layout keys({{'B', to_b}, {'L', {}}, {'K', to_k}}, {});
  const Axes partial = e.sorted();
  const double tokens = product({pass_.B, pass_.L});
  const auto slots = static_cast<double>(pass_.M + pass_.L);
  const double width = product({model_.E, model_.Q});
  const auto heads = static_cast<double>(model_.H), kv = static_cast<double>(model_.K),
             Q = static_cast<double>(model_.Q);
  Floor floor;
  floor.flops = floor.needed_flops =
      2.0 * tokens * width *
      (heads / sliced({b, l, e, h}, rows, attend) + 2.0 * kv / sliced({b, l, e, k}, rows, keys));
  const double of_pair =
      4.0 * static_cast<double>(pass_.B) * heads * Q / shards({to_b, to_l, to_h});
  floor.flops += of_pair * static_cast<double>(pass_.L) * slots;
  floor.needed_flops += of_pair * pass_.seen();
  floor.held = floor.reads = 2.0 * static_cast<double>(pass_.B) * slots * kv * Q *
                             bytes_of(value_row("k_cache")->wire(numerics_, model_)) /
                             torus_.size(to_b) / torus_.size(to_k);
  const Layout heads_made({{'B', b}, {'L', l}, {'H', h}}, {});
  floor.communication = queries_.seconds(heads_made.with_partial(partial), attend);
  floor.live = std::max(made(tokens * heads * Q / sliced({b, l, h}, rows, attend), e),
                        made(tokens * heads * Q / shards({to_b, to_l, to_h}), {}));
  const Layout keys_made({{'B', b}, {'L', l}, {'K', k}}, partial);
  floor.communication += 2.0 * keys_.seconds(keys_made, keys);
  floor.communication += to_rows(attended_, attend, heads_made, unused({b, l, e, h}));
  return floor;
}

Floor TableBounds::ffn(const Layout& rows, const Axes& e, const Axes& f, const Layout& hidden) {
  const Axes b = rows.axes('B'), l = rows.axes('L');
  const double products = gated_ ? 2.0 : 1.0;
  Floor floor;
  floor.flops = floor.needed_flops = products * 2.0 *
                                     product({pass_.B, pass_.L, model_.E, model_.F}) /
                                     sliced({b, l, e, f}, rows, hidden);
  const double wide = product({pass_.B, pass_.L, model_.F});
  floor.live = made(wide / sliced({b, l, f}, rows, hidden), e);
  // The gate is live while up is computed.
  if (gated_)
    floor.live += made(wide / shards({hidden.axes('B'), hidden.axes('L'), hidden.axes('F')}), {});
  const Layout wide_made({{'B', b}, {'L', l}, {'F', f}}, {});
  floor.communication = products * wide_.seconds(wide_made.with_partial(e.sorted()), hidden);
  floor.communication += to_rows(hidden_, hidden, wide_made, unused({b, l, e, f}));
  return floor;
}

}  // namespace shardproof::cost
