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

class Operands : Family {
 public:
  using Family::Family;

  void run() {
    if (!q_.raw()) try_other_values();
    if (q_.name() == "hidden") try_functions();
    const std::optional<Contraction> c = contraction_of(q_);
    if (!c) return;
    try_transposed(*c);
    if (q_.name() == "embed") return;
    if (q_.name() != "logits") try_other_matrices(*c);
    try_other_operands(*c);
  }

 private:
  void try_transposed(const Contraction& c) {
    for (std::size_t t = 0; t < c.terms.size(); ++t) {
      const Contraction::Term& term = c.terms[t];
      const std::size_t width = term.width, columns = c.columns;
      const auto with = [&](std::string detail, int parameters, auto place) {
        std::vector<double> w(term.w->size());
        for (std::size_t col = 0; col < columns; ++col)
          for (std::size_t k = 0; k < width; ++k) w[col * width + k] = (*term.w)[place(col, k)];
        Contraction other = c;
        other.terms[t].w = std::make_shared<const std::vector<double>>(std::move(w));
        try_sum({"transposed weight", term.matrix + std::move(detail), parameters},
                std::move(other));
      };
      // The numbers of the transposed matrix, row-major, read in the shape of this one.
      with(width == columns ? " is transposed" : " is transposed and read in its own shape", 0,
           [&](std::size_t col, std::size_t k) { return k * columns + col; });
      const auto H = static_cast<std::size_t>(
          term.matrix == "wk" || term.matrix == "wv" ? q_.config().K : q_.config().H);
      const auto Q = static_cast<std::size_t>(q_.config().Q);
      if (H * Q == columns && q_.rank() == 4 && H > 1) {
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

  void try_other_matrices(const Contraction& c) {
    for (std::size_t t = 0; t < c.terms.size(); ++t) {
      const std::string& own = c.terms[t].matrix;
      const Tensor& mine = *q_.weight(q_.weight_id(own));
      for (const WeightRow& row : all_weights()) {
        if (row.kind != WeightKind::matrix || !row.per_layer) continue;
        if (row.contracted != weight_row(own)->contracted && std::string(row.name) != own) continue;
        for (std::int64_t layer = 0; layer < q_.config().layers; ++layer) {
          const std::string id = shardproof::weight_id(layer, row.name);
          const Tensor* const matrix = q_.weight(id);
          if (matrix == nullptr || matrix->shape != mine.shape || id == q_.weight_id(own)) continue;
          const bool same_layer = layer == q_.place().layer;
          const bool ffn =
              (own == "w_gate" && row.name == "w_up") || (own == "w_up" && row.name == "w_gate");
          Contraction other = c;
          other.terms[t].w = c.terms[t].columns_of(*matrix);
          const Candidate candidate{
              ffn && same_layer ? "gate and up swapped" : "another layer's weight",
              fmt::format("{} in place of {}", same_layer ? std::string(row.name) : id,
                          q_.weight_id(own)),
              (std::string(row.name) != own ? 100 : 0) + (same_layer ? 0 : 200) +
                  static_cast<int>(std::abs(layer - q_.place().layer))};
          try_sum(candidate, other);
          // Also swaps the scales and biases that belong to the other weight.
          bool more = false;
          if (!c.scales.empty())
            if (const WeightRow* const s = scale_of(q_.config(), row.name))
              if (const Tensor* const scale = q_.weight(shardproof::weight_id(layer, s->name))) {
                other.scales.assign(scale->data.begin(), scale->data.end());
                more = true;
              }
          if (more) try_sum(candidate, other);
          for (Contraction::Bias& bias : other.biases) {
            const std::string of = same_layer ? "b" + std::string(row.name).substr(1) : bias.name;
            if (const Tensor* const values = q_.weight(shardproof::weight_id(layer, of)))
              if (values->data.size() == bias.values.size()) {
                bias.values.assign(values->data.begin(), values->data.end());
                more = true;
              }
          }
          if (more) try_sum(candidate, other);
        }
      }
    }
  }

  /// Returns the values of the dump that this one may come from and that have the shape `like`.
  std::vector<std::string> sources_like(const Shape& like) const {
    std::vector<std::string> ids;
    for (const PassPlan& pass : q_.replay().passes())
      for (const CheckpointSpec& spec : checkpoint_specs(q_.config()))
        for (std::int64_t layer = 0; layer < (spec.per_layer ? q_.config().layers : 1); ++layer) {
          const Shape shape =
              shape_of(spec.dims, q_.config(), extents_of(pass, *value_row(spec.name)));
          const std::string id = checkpoint_id(pass.name, layer, spec.name);
          if (!spec.integer && shape == like && q_.source(id)) ids.push_back(id);
        }
    return ids;
  }

  void try_other_operands(const Contraction& c) {
    for (std::size_t t = 0; t < c.terms.size(); ++t) {
      const std::string& own = c.terms[t].id;
      if (c.terms[t].operand == "ids") continue;
      for (const std::string& id : sources_like(c.terms[t].x->shape)) {
        if (id == own) continue;
        const bounds::Derivation::Place at = q_.replay().place_of(id);
        if (at.pass != q_.place().pass && at.name != c.terms[t].operand) continue;
        Contraction other = c;
        other.terms[t].x = std::make_shared<const bounds::IntervalTensor>(q_.value(id));
        try_sum({"another layer's or pass's value", fmt::format("made of {}, not of {}", id, own),
                 10 + (at.name == c.terms[t].operand ? 0 : 1)},
                std::move(other));
      }
    }
  }

  void try_other_values() {
    const std::string& n = q_.name();
    const bool by_name =
        n == "q_rot" || n == "k_rot" || n == "hidden" || n == "k_cache" || n == "v_cache";
    for (const std::string& id : sources_like(q_.shape())) {
      const bounds::Derivation::Place at = q_.replay().place_of(id);
      if (at.name != n && (by_name || at.pass != q_.place().pass)) continue;
      const bool swapped = n == "up" && at.name == "gate";
      try_value({swapped && at.layer == q_.place().layer ? "gate and up swapped"
                                                         : "another layer's or pass's value",
                 "holds " + id, (at.name == n ? 0 : 5) + (at.pass == q_.place().pass ? 0 : 1)},
                q_.value(id));
    }
  }

  static ModelOp op_of(Ffn ffn) {
    return ffn == Ffn::swiglu ? ModelOp::silu : ffn == Ffn::gelu_erf ? ModelOp::gelu
                                                                   : ModelOp::gelu_tanh;
  }
  /// Returns the step with another activation of the gate times a number.
  Step::Change with_activation(ModelOp op, int times = 1) const {
    Step::Change change;
    for (const TextLine& line : q_.step().lines())
      if (line.name == "act") {
        Expression gate{.text = "gate"};
        if (times > 1) gate = parse_expression(fmt::format("mul(gate, {})", times));
        change.formulas["act"] =
            Expression{.kind = Expression::Kind::call, .op = op, .args = {gate}};
      }
    return change;
  }

  void try_functions() {
    const ModelConfig& model = q_.config();
    const bounds::IntervalTensor gate = q_.value(id("gate"));
    const bool gated = model.ffn == Ffn::swiglu || model.ffn == Ffn::geglu;
    const char* const swapped = "gate and up swapped";
    for (const Ffn other :
         gated ? std::vector{Ffn::swiglu, Ffn::geglu} : std::vector{Ffn::gelu, Ffn::gelu_erf})
      if (other != model.ffn)
        try_change({swapped,
                    fmt::format("nothing swapped, but the activation is that of {}",
                                to_string(other)),
                    5},
                   with_activation(op_of(other)));
    if (model.ffn == Ffn::swiglu) {
      const bool base2 = model.softmax == Softmax::base2;
      try_change({base2 ? "scale missing" : "scale doubled",
                  base2 ? "swish of g in place of 2g" : "swish of 2g in place of g", 5},
                 with_activation(ModelOp::silu, base2 ? 1 : 2));
    }
    const Candidate inactive{swapped, "the activation is missing", 2};
    if (!gated) return try_value(inactive, gate);
    const bounds::IntervalTensor up = q_.value(id("up"));
    try_change({swapped, "hidden is act(up)·gate", 1},
               {.values = {{id("gate"), up}, {id("up"), gate}}});
    bounds::IntervalTensor product(gate.shape);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      product.center[i] = gate.center[i] * up.center[i];
      product.radius[i] = gate.radius[i] * std::abs(up.center[i]) +
                          std::abs(gate.center[i]) * up.radius[i] + gate.radius[i] * up.radius[i] +
                          0x1p-53 * std::abs(product.center[i]);
    }
    try_value(inactive, std::move(product));
    try_value({swapped, "the product with up is missing", 3}, activated(gate));
    try_value({swapped, "the product with gate is missing, hidden is act(up)", 4}, activated(up));
    try_value({swapped, "hidden is gate", 4}, gate);
    try_value({swapped, "hidden is up", 4}, up);
  }

  bounds::IntervalTensor activated(const bounds::IntervalTensor& x) const {
    bounds::IntervalTensor y(x.shape);
    for (std::size_t i = 0; i < x.size(); ++i) {
      bounds::FunctionValue w = bounds::activation(q_.config().ffn, q_.config().softmax,
                                                   x.center[i], q_.declared().operations);
      w.radius += std::abs(w.slope) * x.radius[i];
      y.set(i, w);
    }
    return y;
  }
};

}  // namespace

void try_operands(const Question& q, Search& search) { Operands(q, search).run(); }

}  // namespace shardproof::diagnosis
