#include "weights/text/detail/composite_patterns.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace shardproof {
namespace {

/// The norm of x: its root mean square's or, if `centered`, after its mean is subtracted.
std::string norm_pattern(bool centered) {
  const std::string d = centered ? "sub(x, div(sum(x, E), E))" : "x";
  return fmt::format(
      "mul(mul({0}, div(1, sqrt(add(div(einsum(BLE,BLE->BL; {0}, {0}), E), n)))), gain)", d);
}

std::vector<CompositePattern> read_patterns() {
  std::vector<std::pair<CompositeKind, std::string>> all = {
      {CompositeKind::lookup, "gather(a, ids, V)"},
      {CompositeKind::lookup, "mul(gather(a, ids, V), n)"},
      {CompositeKind::cache, "append(x, pos)"},
      {CompositeKind::cache, "append(bf16(x), pos)"},
      {CompositeKind::maximum, "max(x, M)"},
      {CompositeKind::exponential, "exp(sub(x, y))"},
      {CompositeKind::exponential, "exp2(sub(x, y))"},
      {CompositeKind::denominator, "sum(x, M)"},
      {CompositeKind::mean,
       "div(merge_dim(einsum(BLKGM,BMKQ->BLKGQ; split_dim(x, H->KG), z), KG->H), y)"},
      {CompositeKind::addition, "add(x, y)"},
  };
  // A centered norm is one of its distances, too.
  for (const bool centered : {true, false}) {
    all.emplace_back(CompositeKind::norm, norm_pattern(centered));
    all.emplace_back(CompositeKind::norm, fmt::format("add({}, bias)", norm_pattern(centered)));
  }
  for (const char* pairs : {"half", "interleaved"})
    all.emplace_back(CompositeKind::rotation,
                     fmt::format("add(mul(x, gather(a, pos, P)), mul(turn(x, Q, {} rotary), "
                                 "gather(b, pos, P)))",
                                 pairs));
  const std::string qk = "merge_dim(einsum(BLKGQ,BMKQ->BLKGM; split_dim(x, H->KG), y), KG->H)";
  for (const std::string& scaled : {qk, fmt::format("mul({}, n)", qk)}) {
    all.emplace_back(CompositeKind::score, scaled);
    all.emplace_back(CompositeKind::score, fmt::format("add({}, mul(a, sub(slot, pos)))", scaled));
  }
  for (const char* function : {"silu(x)", "silu(mul(x, 2))", "gelu(x)", "gelu_tanh(x)"}) {
    all.emplace_back(CompositeKind::activation, function);
    all.emplace_back(CompositeKind::activation, fmt::format("mul({}, y)", function));
  }
  std::vector<CompositePattern> parsed;
  for (const auto& [kind, text] : all) parsed.push_back({kind, parse_expression(text)});
  return parsed;
}

bool is_variable(const std::string& name) {
  static const std::set<std::string> kVariables{"x", "y", "z", "a", "b", "gain", "bias", "n"};
  return kVariables.contains(name);
}

bool is_commutative(ModelOp op) { return op == ModelOp::add || op == ModelOp::mul; }

}  // namespace

const std::vector<CompositePattern>& composite_patterns() {
  static const std::vector<CompositePattern> all = read_patterns();
  return all;
}

/// Returns the letters that a composite of a pattern sums over.
std::vector<std::string> contracted_by(CompositeKind kind) {
  switch (kind) {
    case CompositeKind::lookup:
      return {"V"};
    case CompositeKind::norm:
      return {"E"};
    case CompositeKind::score:
      return {"Q"};
    case CompositeKind::denominator:
    case CompositeKind::mean:
      return {"M"};
    default:
      return {};
  }
}

void note(const TextLine& line, const LineOf& line_of, CompositeMatch& match) {
  if (line.guard) match.is_plain = false;
  if (line.where.empty()) return;
  static const Expression kCausal = parse_expression("within(sub(slot, pos), -inf, 0)");
  const TextLine* const mask = line_of(line.where);
  CompositeMatch of_mask;
  match.is_causal = true;
  match.is_plain = match.is_plain && mask != nullptr && !mask->guard && mask->where.empty() &&
                   matches(kCausal, mask->expression, line_of, of_mask) && of_mask.is_plain &&
                   !of_mask.is_causal;
}

bool matches(const Expression& pattern, const Expression& e, const LineOf& line_of,
             CompositeMatch& match) {
  using Kind = Expression::Kind;
  if (pattern.kind == Kind::name && is_variable(pattern.text)) {
    if (e.kind == Kind::call) return false;
    const auto [at, is_new] = match.variables.try_emplace(pattern.text, e);
    return is_new || at->second == e;
  }
  if (pattern.kind == Kind::call && e.kind == Kind::name) {
    const TextLine* const line = line_of(e.text);
    if (line == nullptr) return false;
    note(*line, line_of, match);
    return matches(pattern, line->expression, line_of, match);
  }
  if (pattern.kind != e.kind || pattern.text != e.text) return false;
  if (pattern.kind != Kind::call) return true;
  if (pattern.op != e.op || pattern.terms != e.terms || pattern.parameters != e.parameters ||
      pattern.args.size() != e.args.size())
    return false;
  const auto all = [&](const std::vector<Expression>& args) {
    CompositeMatch trial = match;
    for (std::size_t i = 0; i < args.size(); ++i)
      if (!matches(pattern.args[i], args[i], line_of, trial)) return false;
    match = std::move(trial);
    return true;
  };
  return all(e.args) || (is_commutative(e.op) && all({e.args[1], e.args[0]}));
}

}  // namespace shardproof
