// The partial sums of a text's contractions, by the layouts of their operands.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/bounds/text/text_replay.h"
#include "oracle/walk/array.h"
#include "oracle/walk/weights.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::bounds {
namespace {

using oracle::graph::count_of;
using oracle::graph::places_in;

/// An operand of a contraction.
struct Factor {
  std::string letters;
  IntervalTensor value;
  const Layout* layout = nullptr;  ///< null if none is declared, as of a weight
};

/// Returns the weight that a line reads under a name; null if it is none.
const TextWeight* weight_of(const TextLines& lines, const Derivation::Place& place,
                            const std::string& name) {
  for (const TextSection section : kTextSections)
    for (const TextWeight& w : lines.text().section(section).weights)
      if (w.name == name &&
          (section != TextSection::layer || lines.model().sizes().has(w.guard, place.layer)))
        return &w;
  return nullptr;
}

/// Returns the axes with several chips that cut a contracted letter; nullopt if no operand declares
/// any, or two of them others.
std::optional<Axes> axes_of(char letter, const Factor& a, const Factor& b, const Torus& torus) {
  std::optional<Axes> axes;
  for (const Factor* const of : {&a, &b}) {
    if (of->layout == nullptr || !of->layout->find(letter)) continue;
    Axes own;
    for (const Axis axis : of->layout->axes(letter))
      if (torus.size(axis) > 1) own = own.with(axis);
    if (axes && !(*axes == own)) return std::nullopt;
    axes = own;
  }
  return axes;
}

/// Returns, for each index over contracted letters, the part that a chip adds it to: the chip's
/// block over `axes`; nullopt if these do not all cut the letters, or not into equal blocks, or if
/// what is gathered over the other axes would not be one block.
std::optional<std::vector<std::size_t>> parts_of(const std::string& over, const Shape& shape,
                                                 const Factor& a, const Factor& b,
                                                 const Torus& torus, const Axes& axes) {
  std::vector<std::size_t> parts(count_of(shape), 0);
  Axes used;
  std::vector<Axes> of_letter;
  for (std::size_t d = 0; d < over.size(); ++d) {
    const std::optional<Axes> own = axes_of(over[d], a, b, torus);
    if (!own || shape[d] % torus.size(*own) != 0 || used.has_any(*own)) return std::nullopt;
    bool gathered = false;
    for (const Axis axis : *own) {
      if (axes.has(axis) && gathered) return std::nullopt;
      gathered = gathered || !axes.has(axis);
    }
    used = used.with(*own);
    of_letter.push_back(*own);
  }
  if (!used.has_all(axes)) return std::nullopt;
  for (std::size_t k = 0; k < parts.size(); ++k)
    for (const Axis axis : axes) {
      std::size_t inner = parts.size(), place = 0;
      for (std::size_t d = 0; d < over.size(); ++d) {
        inner /= at(shape[d]);
        if (!of_letter[d].has(axis)) continue;
        const std::size_t length = at(shape[d] / torus.size(of_letter[d]));
        const int chip = torus.group(0, of_letter[d])[k / inner % at(shape[d]) / length];
        place = at(torus.coordinate(chip, axis));
      }
      parts[k] = parts[k] * at(torus.size(axis)) + place;
    }
  return parts;
}

}  // namespace

/// What exists by an indicator alone is judged as a total.
std::optional<std::vector<IntervalTensor>> TextReplay::expected_partials(const std::string& id,
                                                                         const Axes& axes,
                                                                         bool /*raw*/) {
  const Place place = place_of(id);
  const TextLine& line = *lines_.line_of(place);
  const Expression& e = line.expression;
  if (e.kind != Expression::Kind::call || e.op != ModelOp::einsum || !torus_ || !absent(id).empty())
    return std::nullopt;
  const Shape shape = expected(id).shape;
  LineArithmetic by = lines_.arithmetic(line, declared(place), torus_, false, exactly_);
  by.declared.wire_roundings = 0;
  std::vector<std::vector<IntervalMath::Sum>> sums(
      at(torus_->size(axes)),
      std::vector<IntervalMath::Sum>(count_of(shape), IntervalMath::Sum(by)));
  const auto factor = [&](const std::string& name) -> std::optional<Factor> {
    if (const TextWeight* const weight = weight_of(lines_, place, name)) {
      Shape own;
      for (const char c : weight->letters) own.push_back(lines_.model().sizes().extents.at(c));
      const std::string& file = weight->from.empty() ? weight->name : weight->from;
      const std::string in_file = weight_row(name, &lines_.model())->per_layer
                                      ? "layer" + std::to_string(place.layer) + "." + file
                                      : file;
      IntervalTensor value(own);
      value.center = oracle::graph::elements_of(weights_.find(in_file).get(), lines_.text(),
                                                lines_.model().sizes(), *weight, in_file, own);
      return Factor{weight->letters, std::move(value)};
    }
    const TextLine* const operand = lines_.line_of({place.pass, place.layer, name});
    if (operand == nullptr && name != "in") return std::nullopt;
    // The dump has of a cache what is behind the prefixes.
    if (operand != nullptr && operand->expression.op == ModelOp::append &&
        pass(place.pass).prefix.given())
      return std::nullopt;
    const std::string of = lines_.id_of_operand(place, name);
    const auto layout = layouts_.find(of);
    return Factor{operand == nullptr ? "BLE" : operand->letters, value(of),
                  layout == layouts_.end() ? nullptr : &layout->second};
  };
  for (std::size_t t = 0; t < e.terms.size(); ++t) {
    const auto a = factor(e.args[2 * t].text), b = factor(e.args[2 * t + 1].text);
    if (!a || !b) return std::nullopt;
    std::string over;
    Shape over_shape;
    for (const Factor* const of : {&*a, &*b})
      for (std::size_t i = 0; i < of->letters.size(); ++i)
        if ((line.letters + over).find(of->letters[i]) == std::string::npos) {
          over += of->letters[i];
          over_shape.push_back(of->value.shape[i]);
        }
    const auto parts = parts_of(over, over_shape, *a, *b, *torus_, axes);
    if (!parts) return std::nullopt;
    const auto a_first = places_in(line.letters, shape, a->letters, a->value.shape),
               b_first = places_in(line.letters, shape, b->letters, b->value.shape),
               a_next = places_in(over, over_shape, a->letters, a->value.shape),
               b_next = places_in(over, over_shape, b->letters, b->value.shape);
    for (std::size_t i = 0; i < a_first.size(); ++i)
      for (std::size_t k = 0; k < a_next.size(); ++k)
        sums[(*parts)[k]][i].add({a->value.number(a_first[i] + a_next[k])},
                                 {b->value.number(b_first[i] + b_next[k])});
  }
  std::vector<IntervalTensor> partials(sums.size(), IntervalTensor(shape));
  for (std::size_t part = 0; part < sums.size(); ++part)
    for (std::size_t i = 0; i < sums[part].size(); ++i)
      partials[part].set(i, sums[part][i].value().number);
  return partials;
}

}  // namespace shardproof::bounds
