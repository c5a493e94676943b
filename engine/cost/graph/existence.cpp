#include "engine/cost/graph/existence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/cost/graph/detail/text_parts.h"

namespace shardproof::cost {
namespace {

constexpr double kMostPairs = 16'777'216.0;

/// Returns the sum of clamp(p, 0, n) over the whole numbers p from `first` to `last`.
double sum_of_clamped(double first, double last, double n) {
  const double from = std::max(first, 1.0), to = std::min(last, n);
  const double rising = from <= to ? (to - from + 1.0) * ((from + to) / 2.0) : 0.0;
  return rising + n * std::max(0.0, last - std::max(first - 1.0, n));
}

}  // namespace

const TextLine* Existence::line_of(const std::string& name) const {
  for (const TextSection section : kTextSections)
    for (const TextLine& line : model_.flat().section(section).lines)
      if (line.name == name &&
          (section != TextSection::layer || model_.sizes().has(line.guard, layer_)))
        return &line;
  return nullptr;
}

std::optional<Existence::Distance> Existence::distance(const Expression& e) const {
  if (e.kind == Expression::Kind::number ||
      (e.kind == Expression::Kind::name && model_.flat().is_number(e.text)))
    return Distance{0.0, model_.sizes().number(e.text)};
  if (e.kind == Expression::Kind::name) {
    const TextLine* const line = line_of(e.text);
    return line == nullptr ? std::nullopt : distance(line->expression);
  }
  if (e.op != ModelOp::sub && e.op != ModelOp::add && e.op != ModelOp::mul) return std::nullopt;
  if (e.op == ModelOp::sub && e.args[0].text == "slot" && e.args[1].text == "pos")
    return Distance{1.0, 0.0};
  if (e.op == ModelOp::sub && e.args[0].text == "pos" && e.args[1].text == "slot")
    return Distance{-1.0, 0.0};
  const auto a = distance(e.args[0]), b = distance(e.args[1]);
  if (!a || !b) return std::nullopt;
  if (e.op == ModelOp::add) return Distance{a->factor + b->factor, a->constant + b->constant};
  if (e.op == ModelOp::sub) return Distance{a->factor - b->factor, a->constant - b->constant};
  if (a->factor != 0.0 && b->factor != 0.0) return std::nullopt;
  return Distance{a->factor * b->constant + b->factor * a->constant, a->constant * b->constant};
}

std::optional<double> Existence::value(const Expression& e, double pos, double slot) const {
  if (e.kind == Expression::Kind::number) return model_.sizes().number(e.text);
  if (e.kind == Expression::Kind::name) {
    if (e.text == "pos") return pos;
    if (e.text == "slot") return slot;
    if (model_.flat().is_number(e.text)) return model_.sizes().number(e.text);
    const TextLine* const line = line_of(e.text);
    return line == nullptr ? std::nullopt : value(line->expression, pos, slot);
  }
  std::vector<double> args;
  for (const Expression& arg : e.args) {
    const std::optional<double> one = value(arg, pos, slot);
    if (!one) return std::nullopt;
    args.push_back(*one);
  }
  switch (e.op) {
    case ModelOp::add:
      return args[0] + args[1];
    case ModelOp::sub:
      return args[0] - args[1];
    case ModelOp::mul:
      return args[0] * args[1];
    case ModelOp::div:
      return args[0] / args[1];
    case ModelOp::floor:
      return std::floor(args[0]);
    case ModelOp::abs:
      return std::fabs(args[0]);
    case ModelOp::within:
      return model_.sizes().number(e.parameters[0]) <= args[0] &&
                     args[0] <= model_.sizes().number(e.parameters[1])
                 ? 1.0
                 : 0.0;
    default:
      return std::nullopt;
  }
}

void Existence::add_within(const Expression& e, Conditions& all) const {
  const double low = model_.sizes().number(e.parameters[0]);
  const double high = model_.sizes().number(e.parameters[1]);
  const auto of = distance(e.args[0]);
  if (!of || of->factor == 0.0) {
    if (value(e, 0.0, 0.0)) all.others.push_back(e);
    return;
  }
  double first = (low - of->constant) / of->factor, last = (high - of->constant) / of->factor;
  if (of->factor < 0.0) std::swap(first, last);
  all.band.low = std::max(all.band.low, std::ceil(first));
  all.band.high = std::min(all.band.high, std::floor(last));
}

void Existence::add(const Expression& e, Conditions& all) const {
  if (e.kind == Expression::Kind::name) {
    if (const TextLine* const line = line_of(e.text)) add(line->expression, all);
  } else if (is_call(e, ModelOp::mul)) {
    for (const Expression& arg : e.args) add(arg, all);
  } else if (is_call(e, ModelOp::split_dim) || is_call(e, ModelOp::merge_dim)) {
    add(e.args[0], all);
  } else if (is_call(e, ModelOp::top)) {
    const std::string& letter = e.parameters[0];
    all.chosen *=
        model_.sizes().number(e.parameters[1]) / static_cast<double>(model_.extent(letter[0]));
  } else if (is_call(e, ModelOp::within)) {
    add_within(e, all);
  }
}

void Existence::count_band(const Band& band, ExistingShare& share) const {
  const auto L = static_cast<double>(pass_.L), M = static_cast<double>(pass_.M), slots = M + L;
  // Of the position p, M to M + L − 1: the slots up to p + high, without those below p + low.
  const auto up_to = [&](double most) {
    return sum_of_clamped(M + most, M + L - 1.0 + most, slots);
  };
  const double high = std::min(band.high, slots), low = std::max(band.low, -slots);
  const double pairs = high < low ? 0.0 : up_to(high + 1.0) - up_to(low);
  share.pairs = pairs;
  share.of = L * slots;
  const double first = std::max(M + low, 0.0), last = std::min(M + L - 1.0 + high, slots - 1.0);
  share.slots = high < low ? 0.0 : std::max(0.0, last - first + 1.0) / slots;
}

void Existence::count_pairs(const Conditions& all, ExistingShare& share) const {
  const auto L = static_cast<double>(pass_.L), slots = static_cast<double>(pass_.M + pass_.L);
  if (L * slots > kMostPairs)
    throw Error("graph_c1",
                fmt::format("{}: where {} is 1 is counted pair by pair, for at most {} pairs of a "
                            "new position and a slot, not {} x {}",
                            model_.text().name, print(all.others[0]), kMostPairs, L, slots));
  double pairs = 0.0, seen = 0.0;
  for (double slot = 0.0; slot < slots; ++slot) {
    double of_slot = 0.0;
    for (auto pos = static_cast<double>(pass_.M); pos < slots; ++pos) {
      const double far = slot - pos;
      if (far < all.band.low || far > all.band.high) continue;
      const bool there = std::all_of(all.others.begin(), all.others.end(),
                                     [&](const auto& e) { return value(e, pos, slot) != 0.0; });
      of_slot += there ? 1.0 : 0.0;
    }
    pairs += of_slot;
    seen += of_slot > 0.0 ? 1.0 : 0.0;
  }
  share.pairs = pairs;
  share.of = L * slots;
  share.slots = seen / slots;
}

ExistingShare Existence::share_of(const std::vector<std::string>& indicators) const {
  Conditions all;
  for (const std::string& name : indicators) {
    Expression e;
    e.text = name;
    add(e, all);
  }
  ExistingShare share;
  share.chosen = all.chosen;
  if (!all.others.empty())
    count_pairs(all, share);
  else if (!std::isinf(all.band.low) || !std::isinf(all.band.high))
    count_band(all.band, share);
  return share;
}

}  // namespace shardproof::cost
