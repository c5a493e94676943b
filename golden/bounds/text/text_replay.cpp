#include "golden/bounds/text/text_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "golden/bounds/value/replay.h"
#include "oracle/walk/passes.h"
#include "oracle/walk/walk.h"
#include "oracle/walk/weights.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/rules.h"

namespace shardproof::bounds {
namespace {

using oracle::graph::Lettered;

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

/// Returns whether an expression of integers is one: of ops that leave integers such.
bool is_integral(const Expression& e) {
  if (e.kind == Expression::Kind::name) return true;
  if (e.kind == Expression::Kind::number)
    return e.text.find_first_not_of("-0123456789") == std::string::npos;
  constexpr ModelOp kKeep[] = {ModelOp::add,  ModelOp::sub,    ModelOp::mul, ModelOp::larger,
                               ModelOp::relu, ModelOp::within, ModelOp::abs};
  return std::find(std::begin(kKeep), std::end(kKeep), e.op) != std::end(kKeep) &&
         std::all_of(e.args.begin(), e.args.end(), is_integral);
}

bool is_sum(const Expression& e) {
  return e.kind == Expression::Kind::call &&
         (e.op == ModelOp::einsum || e.op == ModelOp::sum || e.op == ModelOp::mean);
}

IntervalTensor tensor_of(const Lettered<Estimate>& value) {
  IntervalTensor t(value.shape);
  for (std::size_t i = 0; i < t.size(); ++i) t.set(i, value.data[i].number);
  return t;
}

}  // namespace

TextReplay::TextReplay(const Weights& weights, const Passes& passes,
                       const std::map<std::string, IntTensor>& ids, const Dump& dump,
                       const DeclaredArithmetic& declared)
    : Derivation(passes, dump, declared),
      weights_(weights),
      model_(*text_model(weights.config())),
      ids_(ids),
      text_(without_stores(model_.flat())) {
  for (const TextLine& line : text_.section(TextSection::layer).lines) of_layer_.insert(line.name);
  integral_ = {"pos", "slot"};
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text_.section(section).lines) {
      const std::vector<std::string> reads = reads_of(text_, line).now;
      if (is_integral(line.expression) && !reads.empty() &&
          std::all_of(reads.begin(), reads.end(),
                      [&](const std::string& name) { return integral_.contains(name); }))
        integral_.insert(line.name);
    }
}

void TextReplay::assume(const std::string& id, IntervalTensor value) {
  assumed_[id] = std::move(value);
  derived_.clear();
}

void TextReplay::assume(const DeclaredArithmetic& declared) {
  declared_ = declared;
  own_.clear();
  derived_.clear();
}

void TextReplay::declare(const std::string& id, const DeclaredArithmetic& declared) {
  own_[id] = declared;
  derived_.clear();
}

void TextReplay::forget(const std::string& pass) {
  forgotten_.insert(pass);
  derived_.clear();
}

void TextReplay::lay_out(const std::map<std::string, Layout>& layouts, const Torus& torus) {
  layouts_ = layouts;
  torus_ = torus;
  derived_.clear();
}

std::string TextReplay::id_of(const std::string& pass, std::int64_t layer,
                              std::string_view name) const {
  if (name == "in" && layer == 0) return oracle::graph::value_id(pass, -1, "embed");
  if (name == "in") return oracle::graph::value_id(pass, layer - 1, "out");
  const std::string own(name);
  return oracle::graph::value_id(pass, of_layer_.contains(own) ? layer : -1, own);
}

/// The head reads the last layer's output.
std::string TextReplay::id_of_operand(const Place& place, std::string_view name) const {
  return id_of(place.pass, of_layer_.contains(place.name) ? place.layer : model_.sizes().layers,
               name);
}

const TextLine* TextReplay::line_of(const Place& place) const {
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text_.section(section).lines)
      if (line.name == place.name &&
          (section != TextSection::layer || model_.sizes().has(line.guard, place.layer)))
        return &line;
  return nullptr;
}

Derivation::Place TextReplay::place_of(const std::string& id) const {
  for (const PassPlan& p : passes_) {
    if (!id.starts_with(p.name + ".")) continue;
    Place place{p.name, 0, id.substr(p.name.size() + 1)};
    if (const std::size_t dot = place.name.find('.');
        dot != std::string::npos && place.name.starts_with("layer")) {
      const char* const end = place.name.data() + dot;
      const auto [at, error] = std::from_chars(place.name.data() + 5, end, place.layer);
      if (error != std::errc() || at != end || place.layer < 0 ||
          place.layer >= model_.sizes().layers)
        break;
      place.name.erase(0, dot + 1);
      if (!of_layer_.contains(place.name)) break;
    } else if (of_layer_.contains(place.name)) {
      break;
    }
    if (line_of(place) != nullptr) return place;
  }
  throw Error("bounds_c1", fmt::format("the model has no value \"{}\" that bounds hold", id));
}

std::vector<std::string> TextReplay::operands(const std::string& id) const {
  const Place place = place_of(id);
  std::vector<std::string> ids;
  const TextLine& line = *line_of(place);
  for (const std::string& name : reads_of(text_, line).now) {
    if (name == "ids" || name == "pos" || name == "slot" || model_.weight(name) != nullptr)
      continue;
    ids.push_back(id_of_operand(place, name));
  }
  const std::string& previous = pass(place.pass).previous;
  if (line.expression.kind == Expression::Kind::call && line.expression.op == ModelOp::append &&
      !previous.empty())
    ids.push_back(id_of(previous, place.layer, place.name));
  return ids;
}

bool TextReplay::is_matrix_product(const TextLine& line) const {
  const Expression& e = line.expression;
  return e.kind == Expression::Kind::call && e.op == ModelOp::einsum &&
         std::any_of(e.args.begin(), e.args.end(), [&](const Expression& arg) {
           const TextWeight* const weight = model_.weight(arg.text);
           return weight != nullptr && of_layer_.contains(line.name);
         });
}

const DeclaredArithmetic& TextReplay::declared(const Place& place) const {
  const auto own = own_.find(id_of(place.pass, place.layer, place.name));
  return own == own_.end() ? declared_ : own->second;
}

LineArithmetic TextReplay::arithmetic_of(const std::string& pass, const TextLine& line,
                                         std::int64_t layer, bool in_loop, bool exactly) const {
  DeclaredArithmetic by = declared({pass, layer, line.name});
  if (is_matrix_product(line)) by = by.of_matrix_product();
  const NumberFormat format = bounds::format_of(line.name, weights_.config(), by);
  LineArithmetic of;
  if (in_loop) of.in_loop = format;
  of.exactly = exactly;
  of.integral = integral_.contains(line.name);
  of.may_round = !exactly && narrow_storage(by.values) && by.rounding != "spec";
  if (exactly) {
    if (narrow_storage(by.values)) by.values = NumberFormat::f32;
    by.wire_roundings = 0;
  } else if (narrow_storage(by.values) && by.wire_roundings == 0 && is_sum(line.expression)) {
    // 16-bit values are sent as such, whether declared or not; and an operand may be moved to
    // another layout before it is summed over.
    if (torus_ && torus_->chips() > 1) by.wire = by.values, by.wire_roundings = torus_->chips();
  }
  of.declared = std::move(by);
  return of;
}

/// Keeps what is derived for a line's value, and puts the number that later lines read in its
/// place: the dump's, an assumed one, or the derived one, rounded.
void TextReplay::take(const std::string& id, const TextLine& line, Lettered<Estimate>& value,
                      bool exactly) {
  Derived& of = derived_[id];
  if (exactly) {
    of.exact = tensor_of(value);
  } else {
    of.expected = tensor_of(value);
    for (const std::uint8_t here :
         oracle::graph::here_in(value.presence, value.letters, value.shape))
      of.absent.push_back(here == 0);
    const auto assumed = assumed_.find(id);
    const auto dumped = dump_.find(id);
    if (assumed != assumed_.end() || dumped != dump_.end()) {
      of.value = assumed != assumed_.end() ? assumed->second : dumped->second;
      if (of.value.shape != value.shape)
        throw Error("bounds_c1",
                    fmt::format("{} has shape [{}], the model's has [{}]", id,
                                fmt::join(of.value.shape, ","), fmt::join(value.shape, ",")));
    } else {
      const Place place = place_of(id);
      const DeclaredArithmetic& by = declared(place);
      const NumberFormat format = bounds::format_of(line.name, weights_.config(), by);
      of.value = of.expected.rounded(format);
      // A kernel that reads it may have it unrounded, or rescaled by running maxima.
      if (narrow_storage(format)) of.value = hull(of.value, of.expected);
      if (is_exponential(line.expression) && line.letters.find('M') != std::string::npos) {
        const auto times = static_cast<double>(value.shape[line.letters.find('M')] + 8);
        const double each = (2 * by.ulp.exp + 3) * by.operations.unit;
        for (std::size_t i = 0; i < of.value.size(); ++i)
          of.value.widen(i, times * each * std::abs(of.value.center[i]));
      }
    }
    // What does not exist is 0 for all that reads it, whatever a dump has there.
    for (std::size_t i = 0; i < of.absent.size(); ++i)
      if (of.absent[i]) of.value.set(i, Number{0.0, 0.0, 0.0});
  }
  for (std::size_t i = 0; i < value.data.size(); ++i) value.data[i] = {of.value.number(i)};
}

void TextReplay::derive(bool exactly) {
  std::string pass;
  const IntervalMath math(
      model_.sizes(), [&](const TextLine& line, std::int64_t layer, bool in_loop) {
        return arithmetic_of(pass, line, std::max<std::int64_t>(layer, 0), in_loop, exactly);
      });
  const auto weights = [&](const TextWeight& weight, const std::string& id, const Shape& shape) {
    std::vector<Estimate> elements;
    for (const double v :
         oracle::graph::elements_of(weights_.all(), text_, model_.sizes(), weight, id, shape))
      elements.push_back(IntervalMath::number(v));
    return elements;
  };
  oracle::graph::Walk<IntervalMath> walk(text_, model_.sizes(), math, weights);
  for (const PassPlan& plan : passes_) {
    pass = plan.name;
    const auto given = ids_.find(pass);
    if (given == ids_.end() || given->second.shape != Shape{plan.batch(), plan.L})
      throw Error("bounds_c1", fmt::format("{} has no ids [{},{}]", pass, plan.batch(), plan.L));
    for (const std::int32_t id : given->second.data)
      if (id != kUnknownId && (id < 0 || id >= weights_.config().V))
        throw Error("bounds_c1", fmt::format("{} has no token {}", pass, id));
    oracle::graph::Tokens tokens = oracle::graph::tokens_of(plan, given->second);
    if (forgotten_.contains(pass))
      std::fill(tokens.ids.begin(), tokens.ids.end(), oracle::graph::kUnknownToken);
    walk.run(tokens, [&](std::int64_t layer, const TextLine& line, Lettered<Estimate>& value) {
      take(oracle::graph::value_id(pass, layer, line.name), line, value, exactly);
    });
  }
}

const TextReplay::Derived& TextReplay::derived(const std::string& id) {
  if (derived_.empty())
    for (const bool exactly : {false, true}) derive(exactly);
  const auto at = derived_.find(id);
  if (at == derived_.end())
    throw Error("bounds_c1", fmt::format("the model has no value \"{}\" that bounds hold", id));
  return at->second;
}

IntervalTensor TextReplay::expected(const std::string& id) {
  const Derived& of = derived(id);
  return exactly_ ? of.exact : of.expected;
}

const IntervalTensor& TextReplay::value(const std::string& id) { return derived(id).value; }

std::vector<bool> TextReplay::absent(const std::string& id) { return derived(id).absent; }

}  // namespace shardproof::bounds
