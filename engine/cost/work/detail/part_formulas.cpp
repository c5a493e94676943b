#include "engine/cost/work/detail/part_formulas.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/cost/formulas/embeddings.h"
#include "engine/program/count.h"
#include "weights/model/registry.h"
#include "weights/text/text_model.h"
#include "weights/text/text_weights.h"

namespace shardproof::cost {
namespace {

/// Adds up one chip's work and memory for one program.
class ProgramCosts {
 public:
  ProgramCosts(const Program& program, const ValueTypes& types, const CostSetting& setting,
               bool last)
      : program_(program),
        types_(types),
        torus_(setting.torus),
        numerics_(setting.numerics),
        model_(setting.model),
        like_(setting.like),
        last_(last),
        rows_(program.rows.get()) {
    for (const ValueDecl& input : program.inputs) declared_[input.name] = &input;
    for (const Op& op : program.ops)
      for (const ValueDecl& result : op.results) declared_[result.name] = &result;
  }

  /// Adds the costs, as add_costs() does.
  void add_to(PartFormulas& part, PartFormulas& ends, double layers,
              std::map<std::string, double>& resting) const {
    std::set<std::string> own;  // a layer's, each once
    for (const ValueDecl& input : program_.inputs) {
      if (input.role.kind != Role::Kind::weight) continue;
      const WeightRow* const row = weight_row(input.role.name, rows_);
      const bool shared = row != nullptr && !row->per_layer;
      const std::string name = input.role.name + " " + input.layout.to_string();
      const auto [at, is_new] = resting.emplace(name, 0.0);
      if (shared ? !is_new : !own.insert(name).second) continue;
      const Monomial resident = resident_bytes(input, row);
      (shared ? ends : part).weight_bytes.add(resident);
      at->second += resident.at(like_) * (shared ? 1.0 : layers);
    }
    for (const Op& op : program_.ops) add_op(part, op);
    add_live(part);
  }

 private:
  const ValueDecl& declared(const std::string& value) const { return *declared_.at(value); }

  /// Elements of one chip's shard.
  Monomial elements(const std::string& value) const {
    const Monomial all = local_elements(types_.at(value), torus_, like_);
    return last_ ? all.of_one_position() : all;
  }
  /// Elements of all chips' shards of a cache, of one position of a row.
  double elements_of_position(const std::string& cache) const {
    const Type& type = types_.at(cache);
    double elements = 1.0;
    for (std::size_t d = 0; d < type.shape.size(); ++d)
      if (const char letter = type.layout.dims()[d].letter; letter != 'B' && letter != 'M')
        elements *= static_cast<double>(type.shape[d]);
    return elements;
  }
  /// Of tables of RoPE a text's program has a column for each channel of a pair, and chips one.
  Monomial resident_bytes(const ValueDecl& input, const WeightRow* row) const {
    Monomial resident = bytes(input.name);
    if (const TextModel* const text = text_model(model_);
        text != nullptr && row->kind == WeightKind::rope_table)
      resident.factor = static_cast<double>(
          element_bytes(input.name) *
          element_count(shape_of_pairs(*text->weight(row->name), text->sizes())));
    return resident;
  }
  /// Bytes per element as the ledger counts them: partial sums are f32 whatever their wire type.
  /// Only the embeddings beside int8 matrices, which the engine keeps as f32, count in the type
  /// that chips would keep.
  int element_bytes(const std::string& value) const {
    const ValueDecl& decl = declared(value);
    if (decl.layout.is_partial()) return bytes_of(NumberFormat::f32);
    if (decl.role.kind == Role::Kind::weight)
      if (const WeightRow* const row = weight_row(decl.role.name, rows_))
        return bytes_of_weight(*row, numerics_.weights);
    return bytes_of(wire_type(decl, numerics_, model_));
  }
  Monomial bytes(const std::string& value) const {
    return elements(value).times(element_bytes(value));
  }
  bool is_weight(const std::string& value) const {
    return declared(value).role.kind == Role::Kind::weight;
  }
  bool is_cache(const std::string& value) const {
    const ValueRow* const row = value_row(declared(value).role, rows_);
    return row != nullptr && row->cache;
  }

  void add_op(PartFormulas& part, const Op& op) const {
    if (is_collective(op.kind)) part.traffic.push_back(traffic_of(op));
    add_flops(part, op);
    // A pass reads only a few rows of the embedding and of RoPE's tables.
    const bool reads_rows = op.kind == OpKind::embed_lookup || op.kind == OpKind::rope ||
                            op.kind == OpKind::rope_interleaved || op.kind == OpKind::gather;
    for (const std::string& arg : op.args) {
      if (is_weight(arg)) {
        const bool of_product = rows_ != nullptr && op.kind == OpKind::einsum;
        if (!reads_rows && !of_product && !op_row(op.kind).only_moves && !is_collective(op.kind))
          part.weight_reads.add(bytes(arg));
      } else if (is_cache(arg)) {
        if (is_attention(op.kind)) part.cache_reads.add(bytes(arg));
      } else if (!is_pair(arg)) {
        part.activation_bytes.add(bytes(arg));
      }
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const std::string& name = op.results[i].name;
      if (is_weight(name) || !is_written(op, i)) continue;
      if (is_cache(name)) {
        if (std::find(program_.outputs.begin(), program_.outputs.end(), name) !=
            program_.outputs.end()) {
          part.cache_bytes.add(bytes(name));
          part.caches.push_back({declared(name).layout, elements_of_position(name)});
        }
        continue;
      }
      part.activation_bytes.add(bytes(name));
    }
  }

  /// Attention need not store its scores: it can process the cache block by block.
  bool is_written(const Op& op, std::size_t result) const {
    if (is_pair(op.results[result].name)) return false;
    return !is_attention(op.kind) || result + 1 == op.results.size();
  }
  /// Returns whether a text's value is one of pairs of a new position and a slot, as scores are.
  bool is_pair(const std::string& value) const {
    const Layout& layout = declared(value).layout;
    return rows_ != nullptr && layout.find('L') && layout.find('M');
  }

  void add_flops(PartFormulas& part, const Op& op) const {
    if (!op_row(op.kind).multiplies) return;
    if (is_attention(op.kind)) {
      const Monomial square = elements(op.results[0].name)
                                  .times(dim_extent(types_.at(op.args[0]), 'Q', torus_, like_))
                                  .times(4.0);
      part.attention_flops.add(square);
      part.needed_flops.add(square.masked());
      return;
    }
    for (std::size_t t = 0; t < op.spec.terms.size(); ++t) {
      const std::string &a = op.args[2 * t], &b = op.args[2 * t + 1];
      Monomial products = elements(op.results[0].name).times(2.0);
      for (const char letter : EinsumSpec::contracted(op.spec.terms[t]))
        products = products.times(dim_extent(types_.at(a), letter, torus_, like_));
      if (is_cache(a) || is_cache(b)) {
        const std::string& cache = is_cache(b) ? b : a;
        part.attention_flops.add(products);
        add_text_product(part, op, cache, products);
        continue;
      }
      part.matmul_flops.add(products);
      if (rows_ != nullptr && (is_weight(a) || is_weight(b)))
        add_text_product(part, op, is_weight(b) ? b : a, products);
      else if (is_weight(a) || is_weight(b))
        part.needed_flops.add(products);
    }
  }
  void add_text_product(PartFormulas& part, const Op& op, const std::string& factor,
                        const Monomial& flops) const {
    part.text_products.push_back({is_weight(factor), op.results[0].role.name,
                                  declared(factor).role.name, flops, bytes(factor)});
  }

  TrafficFormula traffic_of(const Op& op) const {
    TrafficFormula formula;
    Traffic& t = formula.traffic;
    t.step = op.results[0].name;
    t.kind = op.kind;
    t.axes = op.axes;
    t.group = torus_.size(op.axes);
    t.rings = rings_of(op.axes, torus_);
    t.weight = is_weight(op.args[0]);
    const bool result = op.kind == OpKind::all_gather || op_row(op.kind).searches;
    formula.buffer = elements(result ? op.results[0].name : op.args[0]);
    formula.wire_bytes = bytes_of(wire_type(declared(op.args[0]), numerics_, model_));
    // Counting for a buffer of one element per chip of the group keeps D(K−1)/K whole.
    const std::int64_t unit = t.group;
    const std::int64_t moved = moved_elements(op.kind, op.axes, op.as, unit, torus_);
    formula.sent = static_cast<double>(moved);
    formula.of = static_cast<double>(unit * torus_.chips());
    t.times = times_sent(op.kind);
    t.hops = op.kind == OpKind::permute_axes ? 1 : t.times * (t.group - 1);
    return formula;
  }

  /// Records the live bytes after each op: results that a later op uses, and outputs. A complete
  /// value counts in its stored type, not as the f32 that it is rounded from.
  void add_live(PartFormulas& part) const {
    std::unordered_map<std::string_view, std::size_t> last_use;
    for (std::size_t i = 0; i < program_.ops.size(); ++i)
      for (const std::string& arg : program_.ops[i].args) last_use[arg] = i;
    std::vector<std::pair<std::string, std::size_t>> made;  // value and its last use
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      for (std::size_t r = 0; r < op.results.size(); ++r) {
        const std::string& name = op.results[r].name;
        if (is_cache(name) || !is_written(op, r)) continue;
        const auto used = last_use.find(name);
        made.emplace_back(name, used == last_use.end() ? i : used->second);
      }
      Polynomial live;
      for (const auto& [name, until] : made) live.add(elements(name).times(stored_bytes(name)));
      part.live.push_back(std::move(live));
      made.erase(std::remove_if(made.begin(), made.end(),
                                [i](const auto& value) { return value.second <= i; }),
                 made.end());
    }
  }
  int stored_bytes(const std::string& value) const {
    const ValueDecl& decl = declared(value);
    if (!decl.layout.is_partial())
      if (const ValueRow* const row = value_row(decl.role, rows_))
        return bytes_of(row->wire(numerics_, model_));
    return element_bytes(value);
  }

  const Program& program_;
  const ValueTypes& types_;
  const Torus& torus_;
  const Numerics& numerics_;
  const ModelConfig& model_;
  const Pass& like_;
  bool last_;
  const ModelRows* rows_;
  std::unordered_map<std::string, const ValueDecl*> declared_;
};

}  // namespace

PartWork PartFormulas::at(const Pass& pass, const std::vector<GraphProduct>& products) const {
  PartWork work;
  work.matmul_flops = matmul_flops.at(pass);
  work.attention_flops = attention_flops.at(pass);
  work.needed_flops = needed_flops.at(pass);
  work.weight_bytes = weight_bytes.at(pass);
  work.weight_reads = weight_reads.at(pass);
  work.cache_bytes = cache_bytes.at(pass);
  work.cache_reads = cache_reads.at(pass);
  work.activation_bytes = activation_bytes.at(pass);
  std::map<std::string, double> of_weights, of_caches;  // lines that read one see the most of any
  for (const TextProduct& one : text_products)
    for (const GraphProduct& product : products) {
      if (product.line != one.line || product.weight != one.weight ||
          (one.weight && product.name != one.factor))
        continue;
      const bool all = product.of == 1.0;
      work.needed_flops +=
          product.chosen * (all ? one.flops : one.flops.masked()).at(pass, product.pairs);
      double& read = (one.weight ? of_weights : of_caches)[one.factor];
      read = std::max(read, one.bytes.at(pass) * product.read);
    }
  for (const auto& [weight, bytes] : of_weights) work.weight_reads += bytes;
  for (const auto& [cache, bytes] : of_caches) work.cache_reads += bytes;
  for (const Polynomial& values : live)
    work.live_bytes = std::max(work.live_bytes, values.at(pass));
  work.traffic.reserve(traffic.size());
  for (const TrafficFormula& formula : traffic) {
    Traffic t = formula.traffic;
    const double buffer = formula.buffer.at(pass);
    t.elements = buffer * formula.sent / formula.of;
    t.buffer_bytes = buffer * formula.wire_bytes;
    t.sent_bytes = t.elements * formula.wire_bytes;
    work.traffic.push_back(std::move(t));
  }
  return work;
}

void add_costs(const Program& program, const ValueTypes& types, const CostSetting& setting,
               double layers, bool last, PartFormulas& part, PartFormulas& ends,
               std::map<std::string, double>& resting) {
  ProgramCosts(program, types, setting, last).add_to(part, ends, layers, resting);
}

}  // namespace shardproof::cost
