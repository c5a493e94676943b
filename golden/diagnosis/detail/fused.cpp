#include "golden/diagnosis/detail/fused.h"

#include <algorithm>
#include <numeric>

#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::diagnosis {

std::string name_of_moved(Moved moved) {
  if (moved == Moved::matrix) return "";
  return moved == Moved::all ? "with biases and scales, " : "biases and scales alone, ";
}

Fused::Fused(const Question& q) : q_(q) {
  const Step& step = q.step();
  if (step.operands().size() != 1 || step.weights(WeightKind::matrix).size() != 1) return;
  // Lines of the text's own; what its flat form splits off has the matrices of others.
  for (const TextLine& line : step.graph().model().text().section(TextSection::layer).lines)
    if (line.letters.ends_with(step.lines().back().letters.back())) add(line);
  const auto own = std::find_if(parts_.begin(), parts_.end(),
                                [&](const Part& part) { return part.id == q.id(); });
  own_ = at(own - parts_.begin());
  if (own == parts_.end() || parts_.size() < 2) parts_.clear();
}

/// Adds what a line multiplies the operand with.
void Fused::add(const TextLine& line) {
  const Graph& graph = q_.step().graph();
  const ValueRow* const row = value_row(line.name, graph.of_keys() ? nullptr : &graph.model());
  if (row == nullptr || row->kind != ValueKind::checkpoint ||
      graph.lines().line_of({q_.place().pass, q_.place().layer, line.name}) == nullptr)
    return;
  const Step& step = q_.step_of(q_.id_of(line.name));
  const std::vector<const TextWeight*> matrices = step.weights(WeightKind::matrix);
  if (step.operands() != q_.step().operands() || matrices.size() != 1) return;
  std::string columns;
  for (const char letter : matrices[0]->letters)
    if (line.letters.find(letter) != line.letters.npos) columns += letter;
  if (columns.empty() || line.letters != "BL" + columns) return;
  Part part{.id = q_.id_of(line.name),
            .matrix = step.file(matrices[0]->name),
            .columns = 1,
            .heads = at(step.extent(columns[0])),
            .first = this->columns()};
  // Of the sum and what adds a bias to it, one is the value.
  const auto same = std::find_if(parts_.begin(), parts_.end(),
                                 [&](const Part& other) { return other.matrix == part.matrix; });
  if (same != parts_.end()) {
    if (part.id == q_.id()) same->id = part.id;
    return;
  }
  for (const char letter : columns) part.columns *= at(step.extent(letter));
  parts_.push_back(std::move(part));
}

std::size_t Fused::columns() const {
  return parts_.empty() ? 0 : parts_.back().first + parts_.back().columns;
}

bool Fused::read() {
  for (std::size_t part = sums_.size(); part < parts_.size(); ++part) {
    std::shared_ptr<const Contraction> sum =
        part == own_ ? contraction_of(q_) : contraction_of(q_, parts_[part].id);
    if (sum == nullptr || sum->terms.size() != 1 || sum->terms[0].places == nullptr ||
        !sum->terms[0].xs.empty() || !sum->terms[0].ws.empty() ||
        sum->columns != parts_[part].columns)
      return false;
    sums_.push_back(std::move(sum));
  }
  const Contraction& own = sum(own_);
  addends_ = !own.scale.empty() || !own.biases.empty();
  for (const auto& other : sums_)
    addends_ = addends_ && other->scale.empty() == own.scale.empty() &&
               other->scales.empty() == own.scales.empty() &&
               other->biases.size() == own.biases.size();
  return true;
}

bounds::Number Fused::product(const Contraction& of, std::size_t global,
                              const Column& column) const {
  const Contraction::Term &x = of.terms[0], &w = sum(column.part).terms[0];
  const double* const a = x.x->center.data() + of.row_of(x, global) * x.width;
  const double* const r = x.x->radius.data() + of.row_of(x, global) * x.width;
  const double* const b = w.w->data() + column.column * w.width;
  bounds::IntervalSum products;
  for (std::size_t k = 0; k < x.width; ++k)
    if (a[k] != 0 || r[k] != 0) products.add(a[k], b[k], r[k]);
  return of.added(products, q_.declared());
}

bounds::Number Fused::number(std::size_t part, std::size_t global, const Column& from,
                             Moved moved) const {
  const Contraction& own = sum(part);
  const Column self{part, global % own.columns};
  const bounds::DeclaredArithmetic& by = q_.declared();
  const bounds::Operations operations(by);
  bounds::Number v = product(own, global, moved == Moved::addends ? self : from);
  const Column& of = moved == Moved::matrix ? self : from;
  const Contraction& addends = sum(of.part);
  if (!own.scales.empty())
    v = operations.times(bounds::as_value(v, by), {addends.scales[of.column], 0.0, 0.0});
  for (std::size_t i = 0; i < own.biases.size(); ++i)
    v = operations.plus(bounds::as_value(v, by), {addends.biases[i].values[of.column], 0.0, 0.0});
  return v;
}

std::size_t Arrangement::place_of(const Fused& fused, const Column& c) const {
  const auto length = [&](std::size_t part) { return fused.parts()[part].columns / blocks; };
  const std::size_t own = length(c.part);
  std::size_t place = c.column / own * (fused.columns() / blocks) + c.column % own;
  for (const std::size_t part : order) {
    if (part == c.part) break;
    place += length(part);
  }
  return place;
}

Column Arrangement::column_at(const Fused& fused, std::size_t place) const {
  const std::size_t block = fused.columns() / blocks;
  std::size_t within = place % block;
  for (const std::size_t part : order) {
    const std::size_t length = fused.parts()[part].columns / blocks;
    if (within < length) return {part, place / block * length + within};
    within -= length;
  }
  return {};
}

}  // namespace shardproof::diagnosis
