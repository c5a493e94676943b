#include "golden/bounds/text/text_lines.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "golden/bounds/number/rounding.h"
#include "oracle/walk/passes.h"
#include "weights/text/integers.h"

namespace shardproof::bounds {
namespace {

/// Returns the text without the last rounding of each line's value: what derives a value leaves it
/// to whoever reads or judges it.
ModelText without_stores(ModelText text) {
  for (const TextSection section : kTextSections)
    for (TextLine& line : text.section(section).lines) {
      Expression& e = line.expression;
      while (e.kind == Expression::Kind::call && e.op == ModelOp::store)
        e = Expression(std::move(e.args[0]));
    }
  return text;
}

bool is_exponential(const Expression& e) {
  if (e.kind != Expression::Kind::call) return false;
  return e.op == ModelOp::exp || e.op == ModelOp::exp2 ||
         std::any_of(e.args.begin(), e.args.end(), is_exponential);
}

bool is_sum(const Expression& e) {
  return e.kind == Expression::Kind::call &&
         (e.op == ModelOp::einsum || e.op == ModelOp::sum || e.op == ModelOp::mean);
}

}  // namespace

TextLines::TextLines(const ModelConfig& config)
    : config_(config), model_(*text_model(config)), text_(without_stores(model_.flat())) {
  for (const TextLine& line : text_.section(TextSection::layer).lines) of_layer_.insert(line.name);
  for (const TextLine& line : text_.section(TextSection::head).lines) of_head_.insert(line.name);
  integral_ = integers_of(text_, model_.sizes(), true);
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text_.section(section).lines) {
      const Expression& e = line.expression;
      if (e.kind == Expression::Kind::call && (e.op == ModelOp::within || e.op == ModelOp::top))
        marks_.insert(line.name);
    }
  for (const TextSection section : kTextSections) {
    std::set<std::string> own;
    for (const TextLine& line : model_.text().section(section).lines) own.insert(line.name);
    std::vector<std::string> nested;  // in the flat text they stand before their line
    for (const TextLine& line : text_.section(section).lines) {
      nested.push_back(line.name);
      if (!own.contains(line.name)) continue;
      for (const std::string& name : nested) line_of_text_.emplace(name, line.name);
      nested.clear();
    }
  }
}

std::string TextLines::id_of(const std::string& pass, std::int64_t layer,
                             std::string_view name) const {
  if (name == "in" && layer == 0) return oracle::graph::value_id(pass, -1, "embed");
  if (name == "in") return oracle::graph::value_id(pass, layer - 1, "out");
  const std::string own(name);
  return oracle::graph::value_id(pass, of_layer_.contains(own) ? layer : -1, own);
}

/// The head reads the last layer's output. A term of a block's sum, which no line names, is of its
/// layer.
std::string TextLines::id_of_operand(const Place& place, std::string_view name) const {
  return id_of(place.pass, of_head_.contains(place.name) ? model_.sizes().layers : place.layer,
               name);
}

const TextLine* TextLines::line_of(const Place& place) const {
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text_.section(section).lines)
      if (line.name == place.name &&
          (section != TextSection::layer || model_.sizes().has(line.guard, place.layer)))
        return &line;
  return nullptr;
}

bool TextLines::is_matrix_product(const TextLine& line) const {
  const Expression& e = line.expression;
  return e.kind == Expression::Kind::call && e.op == ModelOp::einsum &&
         std::any_of(e.args.begin(), e.args.end(), [&](const Expression& arg) {
           const TextWeight* const weight = model_.weight(arg.text);
           return weight != nullptr && of_layer_.contains(line.name);
         });
}

LineArithmetic TextLines::arithmetic(const TextLine& line, DeclaredArithmetic by,
                                     const std::optional<Torus>& torus, bool in_loop,
                                     bool exactly) const {
  if (is_matrix_product(line)) by = by.of_matrix_product();
  const NumberFormat format = bounds::format_of(line.name, config_, by);
  LineArithmetic of;
  if (in_loop) of.in_loop = format;
  of.exactly = exactly;
  of.integral = integral_.contains(line.name);
  of.may_round = !exactly && narrow_storage(by.values) && by.rounding != "spec";
  if (exactly) {
    if (narrow_storage(by.values)) by.values = NumberFormat::f32;
    by.wire_roundings = 0;
  } else if (narrow_storage(by.values) && by.wire_roundings == 0 && by.wire != NumberFormat::f32 &&
             is_sum(line.expression)) {
    // 16-bit values are sent as such, unless wire=f32 is declared; and an operand may be moved to
    // another layout before it is summed over.
    if (torus && torus->chips() > 1) by.wire = by.values, by.wire_roundings = torus->chips();
  }
  of.declared = std::move(by);
  return of;
}

oracle::graph::Lettered<Estimate> TextLines::weight(const std::shared_ptr<const Tensor>& stored,
                                                    const TextSizes& sizes,
                                                    const TextWeight& weight, const std::string& id,
                                                    const Shape& shape,
                                                    const DeclaredArithmetic& by) const {
  auto value = oracle::graph::weight_of<IntervalMath>(stored, text_, sizes, weight, id, shape);
  if (!oracle::graph::turns(weight)) return value;
  const Rounds rounds = declared_way("rope", by).rounds("tables");
  if (rounds == Rounds::none) return value;
  if (const auto floats = std::exchange(value.floats, nullptr))
    for (const float v : *floats) value.data.push_back(IntervalMath::number(v));
  for (Estimate& x : value.data) x = {rounded_if(x.number, rounds, by.values)};
  return value;
}

IntervalTensor TextLines::as_read(const TextLine& line, const IntervalTensor& expected,
                                  const DeclaredArithmetic& by) const {
  const NumberFormat format = bounds::format_of(line.name, config_, by);
  IntervalTensor value = expected.rounded(format);
  // A kernel that reads it may have it unrounded, or rescaled by running maxima.
  if (narrow_storage(format)) value = hull(value, expected);
  if (is_exponential(line.expression) && line.letters.find('M') != std::string::npos) {
    const auto times = static_cast<double>(value.shape[line.letters.find('M')] + 8);
    const double each = (2 * by.ulp.exp + 3) * by.operations.unit;
    for (std::size_t i = 0; i < value.size(); ++i)
      value.widen(i, times * each * std::abs(value.center[i]));
  }
  return value;
}

}  // namespace shardproof::bounds
