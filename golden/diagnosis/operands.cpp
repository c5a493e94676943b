// Faults of operands: other matrices, values of other layers and passes, other functions of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/families.h"
#include "golden/diagnosis/detail/what_if.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

using Columns = std::shared_ptr<const std::vector<double>>;

void consider_sum(const Question& q, Search& search, Candidate candidate, Contraction changed) {
  candidate.at = q.logical([&q, c = std::make_shared<const Contraction>(std::move(changed))](
                               std::size_t g) { return c->at(g, q.declared()); });
  search.consider(std::move(candidate));
}

void try_transposed(const Question& q, Search& search, const Contraction& c) {
  for (std::size_t t = 0; t < c.terms.size(); ++t) {
    const Contraction::Term& term = c.terms[t];
    const std::size_t width = term.width, columns = c.columns;
    const auto with = [&](std::string detail, int parameters, auto place) {
      std::vector<double> w(term.w->size());
      for (std::size_t col = 0; col < columns; ++col)
        for (std::size_t k = 0; k < width; ++k) w[col * width + k] = (*term.w)[place(col, k)];
      Contraction other = c;
      other.terms[t].w = std::make_shared<const std::vector<double>>(std::move(w));
      consider_sum(q, search,
                   {.fault = "transposed weight",
                    .detail = term.matrix + std::move(detail),
                    .axes = "",
                    .parameters = parameters,
                    .at = {}},
                   std::move(other));
    };
    // The numbers of the transposed matrix, row-major, read in the shape of this one.
    with(width == columns ? " is transposed" : " is transposed and read in its own shape", 0,
         [&](std::size_t col, std::size_t k) { return k * columns + col; });
    const auto H = static_cast<std::size_t>(
        term.matrix == "wk" || term.matrix == "wv" ? q.config().K : q.config().H);
    const auto Q = static_cast<std::size_t>(q.config().Q);
    if (H * Q == columns && q.rank() == 4 && H > 1) {
      with(": its columns are [Q,H], not [H,Q]", 1,
           [&](std::size_t col, std::size_t k) { return (col % Q * H + col / Q) * width + k; });
      if (width == Q)
        with(" is transposed head by head", 1,
             [&](std::size_t col, std::size_t k) { return (col / Q * Q + k) * width + col % Q; });
    }
    if (term.letters == "HQ" && H > 1)
      with(": its rows are [Q,H], not [H,Q]", 1,
           [&](std::size_t col, std::size_t k) { return col * width + k % Q * H + k / Q; });
  }
}

void try_other_matrices(const Question& q, Search& search, const Contraction& c) {
  for (std::size_t t = 0; t < c.terms.size(); ++t) {
    const std::string& own = c.terms[t].matrix;
    const Tensor& mine = *q.weight(q.weight_id(own));
    for (const WeightRow& row : all_weights()) {
      if (row.kind != WeightKind::matrix || !row.per_layer) continue;
      if (row.contracted != weight_row(own)->contracted && std::string(row.name) != own) continue;
      for (std::int64_t layer = 0; layer < q.config().layers; ++layer) {
        const std::string id = shardproof::weight_id(layer, row.name);
        const Tensor* const matrix = q.weight(id);
        if (matrix == nullptr || matrix->shape != mine.shape || id == q.weight_id(own)) continue;
        const bool same_layer = layer == q.place().layer;
        const bool ffn =
            (own == "w_gate" && row.name == "w_up") || (own == "w_up" && row.name == "w_gate");
        Contraction other = c;
        other.terms[t].w = columns_of(*matrix, c.terms[t].width);
        const Candidate candidate{
            .fault = ffn && same_layer ? "gate and up swapped" : "another layer's weight",
            .detail = fmt::format("{} in place of {}", same_layer ? std::string(row.name) : id,
                                  q.weight_id(own)),
            .axes = "",
            .parameters = (std::string(row.name) != own ? 100 : 0) + (same_layer ? 0 : 200) +
                          static_cast<int>(std::abs(layer - q.place().layer)),
            .at = {}};
        consider_sum(q, search, candidate, other);
        // Also swaps the scales and biases that belong to the other weight.
        bool more = false;
        if (!c.scales.empty())
          if (const WeightRow* const s = scale_of(q.config(), row.name))
            if (const Tensor* const scale = q.weight(shardproof::weight_id(layer, s->name))) {
              other.scales.assign(scale->data.begin(), scale->data.end());
              more = true;
            }
        if (more) consider_sum(q, search, candidate, other);
        for (Contraction::Bias& bias : other.biases) {
          const std::string of = same_layer ? "b" + std::string(row.name).substr(1) : bias.name;
          if (const Tensor* const values = q.weight(shardproof::weight_id(layer, of)))
            if (values->data.size() == bias.values.size()) {
              bias.values.assign(values->data.begin(), values->data.end());
              more = true;
            }
        }
        if (more) consider_sum(q, search, candidate, other);
      }
    }
  }
}

/// Returns the values of the dump that this one may come from and that have the shape `like`.
std::vector<std::string> sources_like(const Question& q, const Shape& like) {
  std::vector<std::string> ids;
  for (const PassPlan& pass : q.replay().passes())
    for (const CheckpointSpec& spec : checkpoint_specs(q.config()))
      for (std::int64_t layer = 0; layer < (spec.per_layer ? q.config().layers : 1); ++layer) {
        const Shape shape =
            shape_of(spec.dims, q.config(), extents_of(pass, *value_row(spec.name)));
        const std::string id = checkpoint_id(pass.name, layer, spec.name);
        if (!spec.integer && shape == like && q.source(id)) ids.push_back(id);
      }
  return ids;
}

void try_other_operands(const Question& q, Search& search, const Contraction& c) {
  for (std::size_t t = 0; t < c.terms.size(); ++t) {
    const std::string own = checkpoint_id(q.place().pass, q.place().layer, c.terms[t].operand);
    if (c.terms[t].operand == "ids") continue;
    for (const std::string& id : sources_like(q, c.terms[t].x->shape)) {
      if (id == own) continue;
      const bounds::Replay::Place at = q.replay().place_of(id);
      if (at.pass != q.place().pass && at.name != c.terms[t].operand) continue;
      Contraction other = c;
      other.terms[t].x = std::make_shared<const bounds::Carried>(q.value(id));
      consider_sum(q, search,
                   {.fault = "another layer's or pass's value",
                    .detail = fmt::format("made of {}, not of {}", id, own),
                    .axes = "",
                    .parameters = 10 + (at.name == c.terms[t].operand ? 0 : 1),
                    .at = {}},
                   std::move(other));
    }
  }
}

void try_other_values(const Question& q, Search& search) {
  const std::string& n = q.name();
  const bool by_name =
      n == "q_rot" || n == "k_rot" || n == "hidden" || n == "k_cache" || n == "v_cache";
  for (const std::string& id : sources_like(q, q.shape())) {
    const bounds::Replay::Place at = q.replay().place_of(id);
    if (at.name != n && (by_name || at.pass != q.place().pass)) continue;
    const bool swapped = n == "up" && at.name == "gate";
    search.consider({.fault = swapped && at.layer == q.place().layer
                                  ? "gate and up swapped"
                                  : "another layer's or pass's value",
                     .detail = "holds " + id,
                     .axes = "",
                     .parameters = (at.name == n ? 0 : 5) + (at.pass == q.place().pass ? 0 : 1),
                     .at = q.logical(q.value(id))});
  }
}

void try_functions(const Question& q, Search& search) {
  const ModelConfig& model = q.config();
  const auto id = [&](std::string_view name) {
    return checkpoint_id(q.place().pass, q.place().layer, name);
  };
  const bounds::Carried gate = q.value(id("gate"));
  const bool gated = model.ffn == Ffn::swiglu || model.ffn == Ffn::geglu;
  const auto candidate = [&](std::string detail, int parameters) {
    return Candidate{.fault = "gate and up swapped",
                     .detail = std::move(detail),
                     .axes = "",
                     .parameters = parameters,
                     .at = {}};
  };
  const bounds::Declared& by = q.declared();
  const auto activated = [&q, &by](const bounds::Carried& x, std::size_t g) {
    bounds::Evaluated w =
        bounds::activation(q.config().ffn, q.config().softmax, x.center[g], by.operations);
    w.radius += std::abs(w.slope) * x.radius[g];
    return w;
  };
  for (const Ffn other :
       gated ? std::vector{Ffn::swiglu, Ffn::geglu} : std::vector{Ffn::gelu, Ffn::gelu_erf}) {
    if (other == model.ffn) continue;
    ModelConfig changed = model;
    changed.ffn = other;
    consider_change(
        q, search,
        candidate(
            fmt::format("nothing swapped, but the activation is that of {}", to_string(other)), 5),
        {.weights = q.weights_with({}, changed)});
  }
  if (model.ffn == Ffn::swiglu) {
    const bool base2 = model.softmax == Softmax::base2;
    ModelConfig changed = model;
    changed.softmax = base2 ? Softmax::base_e : Softmax::base2;
    Candidate other =
        candidate(base2 ? "swish of g in place of 2g" : "swish of 2g in place of g", 5);
    other.fault = base2 ? "scale missing" : "scale doubled";
    consider_change(q, search, std::move(other), {.weights = q.weights_with({}, changed)});
  }
  auto c = candidate("the activation is missing", 2);
  if (!gated) {
    c.at = q.logical(gate);
    search.consider(std::move(c));
    return;
  }
  const bounds::Carried up = q.value(id("up"));
  consider_change(q, search, candidate("hidden is act(up)·gate", 1),
                  {.values = {{id("gate"), up}, {id("up"), gate}}});
  bounds::Carried product(gate.shape);
  for (std::size_t i = 0; i < gate.size(); ++i) {
    product.center[i] = gate.center[i] * up.center[i];
    product.radius[i] = gate.radius[i] * std::abs(up.center[i]) +
                        std::abs(gate.center[i]) * up.radius[i] + gate.radius[i] * up.radius[i] +
                        0x1p-53 * std::abs(product.center[i]);
  }
  c.at = q.logical(product);
  search.consider(std::move(c));
  const auto alone = [&](std::string detail, int parameters, const bounds::Carried& x,
                         bool active) {
    auto one = candidate(std::move(detail), parameters);
    if (active) {
      bounds::Carried y(x.shape);
      for (std::size_t i = 0; i < x.size(); ++i) y.set(i, activated(x, i));
      one.at = q.logical(std::move(y));
    } else {
      one.at = q.logical(x);
    }
    search.consider(std::move(one));
  };
  alone("the product with up is missing", 3, gate, true);
  alone("the product with gate is missing, hidden is act(up)", 4, up, true);
  alone("hidden is gate", 4, gate, false);
  alone("hidden is up", 4, up, false);
}

}  // namespace

void try_operands(const Question& q, Search& search) {
  if (!q.raw()) try_other_values(q, search);
  if (q.name() == "hidden") try_functions(q, search);
  const std::optional<Contraction> c = contraction_of(q);
  if (!c) return;
  try_transposed(q, search, *c);
  if (q.name() == "embed") return;
  if (q.name() != "logits") try_other_matrices(q, search, *c);
  try_other_operands(q, search, *c);
}

}  // namespace shardproof::diagnosis
