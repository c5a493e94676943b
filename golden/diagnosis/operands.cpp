// Faults of operands: other matrices, values of other layers and passes, other functions of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/edits.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {
namespace {

class Operands : Trial {
 public:
  using Trial::Trial;

  void run() {
    if (!q_.raw()) try_other_values();
    const std::shared_ptr<const Contraction> c = contraction_of(q_);
    if (c == nullptr) return try_operands_of_step();
    try_transposed(*c);
    try_other_matrices(*c);
    try_other_operands(*c);
  }

 private:
  void try_transposed(const Contraction& c) {
    for (std::size_t t = 0; t < c.terms.size(); ++t) {
      const Contraction::Term& term = c.terms[t];
      if (term.places == nullptr) continue;  // of no weight
      const std::size_t width = term.width, columns = c.columns;
      if (term.extents.empty() || term.w->size() != columns * width) continue;
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
      const bool of_heads = q_.rank() == 4;
      const std::size_t H = of_heads ? at(q_.shape()[2]) : at(term.extents[0]),
                        Q = of_heads ? at(q_.shape()[3]) : 0;
      if (H * Q == columns && H > 1) {
        with(": its columns are [Q,H], not [H,Q]", 1,
             [&](std::size_t col, std::size_t k) { return (col % Q * H + col / Q) * width + k; });
        if (width == Q)
          with(" is transposed head by head", 1,
               [&](std::size_t col, std::size_t k) { return (col / Q * Q + k) * width + col % Q; });
      }
      if (term.letters.size() == 2 && H > 1)
        with(": its rows are [Q,H], not [H,Q]", 1, [&](std::size_t col, std::size_t k) {
          const std::size_t inner = at(term.extents[1]);
          return col * width + k % inner * at(term.extents[0]) + k / inner;
        });
    }
  }

  void try_other_matrices(const Contraction& c) {
    for (std::size_t t = 0; t < c.terms.size(); ++t) {
      const std::string& own = c.terms[t].matrix;
      const std::shared_ptr<const Tensor> mine = q_.weight(q_.weight_id(own));
      if (c.terms[t].places == nullptr || mine == nullptr || !of_layer(own)) continue;
      for (const WeightRow& row : q_.step().graph().model().weights()) {
        if (row.kind != WeightKind::matrix || !row.per_layer) continue;
        const std::string name(row.file);
        for (std::int64_t layer = 0; layer < q_.config().layers; ++layer) {
          const std::string id = id_in(layer, name);
          const Weights& weights = q_.replay().weights();
          if (!weights.contains(id) || weights.shape(id) != mine->shape || id == q_.weight_id(own))
            continue;
          const bool same_layer = layer == q_.place().layer;
          const bool ffn =
              (own == "w_gate" && name == "w_up") || (own == "w_up" && name == "w_gate");
          Contraction other = c;
          other.terms[t].w = c.terms[t].columns_of(*q_.weight(id));
          const Candidate candidate{
              ffn && same_layer ? "gate and up swapped" : "another layer's weight",
              fmt::format("{} in place of {}", same_layer ? name : id, q_.weight_id(own)),
              (name != own ? 100 : 0) + (same_layer ? 0 : 200) +
                  static_cast<int>(std::abs(layer - q_.place().layer))};
          try_sum(candidate, other);
          // Also swaps the scales and biases that belong to the other weight.
          bool more = false;
          const auto swap = [&](const std::string& of, std::vector<double>& numbers) {
            const std::shared_ptr<const Tensor> values = q_.weight(id_in(layer, of));
            if (values == nullptr || values->data.size() != numbers.size()) return;
            numbers.assign(values->data.begin(), values->data.end());
            more = true;
          };
          if (c.scale == own + "_scale") swap(name + "_scale", other.scales);
          if (more) try_sum(candidate, other);
          for (Contraction::Bias& bias : other.biases)
            swap(same_layer ? "b" + name.substr(1) : bias.name, bias.values);
          if (more) try_sum(candidate, other);
        }
      }
    }
  }

  static std::string id_in(std::int64_t layer, const std::string& name) {
    return fmt::format("layer{}.{}", layer, name);
  }
  bool of_layer(const std::string& name) const {
    return q_.weight_id(name) == id_in(q_.place().layer, name);
  }

  /// Returns whether this is the embedding of the pass, which the dump lacks: it follows from
  /// tokens.
  bool looked_up(const std::string& name, const PassPlan& pass, const std::string& id) const {
    return name == result_of(TextSection::embedding) && pass.name == q_.place().pass &&
           !q_.replay().dumped(id);
  }

  /// Returns the values of the dump that this one may come from and that have the shape `like`.
  std::vector<std::string> sources_like(const Shape& like) const {
    std::vector<std::string> ids;
    for (const PassPlan& pass : q_.replay().passes())
      for (const CheckpointSpec& spec : checkpoint_specs(q_.config()))
        for (std::int64_t layer = 0; layer < (spec.per_layer ? q_.config().layers : 1); ++layer) {
          const Shape shape =
              shape_of(spec.dims, q_.config(),
                       extents_of(pass, *value_row(spec.name, q_.config().rows.get())));
          const std::string id = checkpoint_id(pass.name, layer, spec.name, q_.config().rows.get());
          if (!spec.integer && shape == like &&
              (q_.source(id) || looked_up(std::string(spec.name), pass, id)))
            ids.push_back(id);
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

  /// An operand of a norm, a sum or a function is another value of the pass, or that of another.
  void try_operands_of_step() {
    if (q_.raw() || q_.step().calls(ModelOp::append)) return;
    for (const std::string& own : q_.step().operands()) {
      const std::string name = q_.replay().place_of(own).name;
      for (const std::string& id : sources_like(q_.value(own).shape)) {
        const bounds::Derivation::Place at = q_.replay().place_of(id);
        if (id == own || (at.pass != q_.place().pass && at.name != name)) continue;
        try_change({"another layer's or pass's value",
                    fmt::format("made of {}, not of {}", id, own), 10 + (at.name == name ? 0 : 1)},
                   {.values = {{own, q_.value(id)}}});
      }
    }
  }

  void try_other_values() {
    const std::string& n = q_.name();
    const Step& step = q_.step();
    // Values whose own faults are functions of these.
    const bool by_name = step.calls(ModelOp::turn) || step.calls(ModelOp::append) ||
                         step.calls([](const Expression& e) { return is_activation(e.op); });
    const auto& own = q_.operands();
    for (const std::string& id : sources_like(q_.shape())) {
      // A text's line may be a function of a single operand.
      if (!step.graph().of_keys() && std::find(own.begin(), own.end(), id) != own.end()) continue;
      const bounds::Derivation::Place at = q_.replay().place_of(id);
      if (at.name != n && (by_name || at.pass != q_.place().pass)) continue;
      const bool swapped = n == "up" && at.name == "gate";
      try_value({swapped && at.layer == q_.place().layer ? "gate and up swapped"
                                                         : "another layer's or pass's value",
                 "holds " + id, (at.name == n ? 0 : 5) + (at.pass == q_.place().pass ? 0 : 1)},
                q_.value(id));
    }
  }
};

}  // namespace

void try_other_weights(const Question& q, Search& search, const Row& row) {
  const Weights& weights = q.replay().weights();
  for (const std::string& id : weights.names())
    if (id != q.id() && weights.shape(id) == q.shape() && !search.explained_everywhere()) {
      Candidate c = candidate(row, id, q.id());
      c.at = q.logical([other = weights.at(id)](std::size_t g) {
        return bounds::FunctionValue{static_cast<double>(other->data[g]), 0.0, 0.0};
      });
      search.consider(std::move(c));
    }
}

void try_operands(const Question& q, Search& search, const Row&) { Operands(q, search).run(); }

}  // namespace shardproof::diagnosis
