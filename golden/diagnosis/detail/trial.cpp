#include "golden/diagnosis/detail/trial.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "weights/model/registry.h"
#include "weights/text/block_terms.h"

namespace shardproof::diagnosis {

void Trial::try_change(Candidate candidate, const Step& step, const Question::Change& change) {
  const bool any = change.pass || change.ids || change.declared || change.other_pairs ||
                   change.sees ||
                   !(change.weights.empty() && change.values.empty() && change.numbers.empty() &&
                     change.formulas.empty());
  if (!any || !search_.wants(candidate)) return;
  if (auto value = value_under(step, change)) try_value(std::move(candidate), std::move(*value));
}

std::optional<bounds::IntervalTensor> Trial::value_under(const Step& step,
                                                         const Question::Change& change) const {
  try {
    return step.under(
        change, [&](const std::string& id) -> const auto& { return q_.value(id); });
  } catch (const Error& e) {
    if (e.label() != "bounds_c1" && e.label() != "weights_name" && e.label() != "oracle_graph")
      throw;
    return std::nullopt;
  }
}

void Trial::try_value(Candidate candidate, bounds::IntervalTensor value) {
  candidate.at = q_.logical(std::move(value));
  search_.consider(std::move(candidate));
}

void Trial::try_values(Candidate candidate, Values values, bool masked) {
  if (!search_.wants(candidate)) return;
  Replaced replaced(q_);
  for (auto& [id, value] : values) replaced.put(id, std::move(value), masked);
  try_replaced(std::move(candidate), std::move(replaced));
}

void Trial::try_replaced(Candidate candidate, Replaced replaced) {
  const auto others = std::make_shared<Replaced>(std::move(replaced));
  auto value = others->implied();
  if (!value) return;
  candidate.at = q_.logical(std::move(*value));
  candidate.refuted = [others, also = candidate.refuted] {
    return (also && also()) || others->contradicted();
  };
  search_.consider(std::move(candidate));
}

void Trial::try_sum(Candidate candidate, Contraction changed) {
  candidate.at = q_.logical([&q = q_, c = std::make_shared<const Contraction>(std::move(changed))](
                                std::size_t g) { return c->at(g, q.declared()); });
  search_.consider(std::move(candidate));
}

void Trial::try_places(Candidate candidate, std::function<std::size_t(std::size_t)> from) {
  candidate.at = q_.logical(
      [&q = q_, from = std::move(from)](std::size_t g) { return q.expected_at(from(g)); });
  search_.consider(std::move(candidate));
}

std::string turned_operand(const Question& q) {
  std::string id;
  q.step().calls([&](const Expression& e) {
    if (e.op == ModelOp::turn) id = q.step().operand(e.args[0].text).value_or("");
    return false;
  });
  return id.empty() && !q.operands().empty() ? q.operands()[0] : id;
}

bool exponentiates(const Question& q) {
  const auto& lines = q.step().lines();
  return std::any_of(lines.begin(), lines.end(), [](const TextLine& line) {
    const Expression& e = line.expression;
    return (is_call(e, ModelOp::exp) || is_call(e, ModelOp::exp2)) &&
           line.letters.find('M') != line.letters.npos;
  });
}

std::optional<bounds::Derivation::Place> dumped_exponentials(const Question& q) {
  for (const TextLine& line : q.step().graph().lines().text().section(TextSection::layer).lines)
    if ((is_call(line.expression, ModelOp::exp) || is_call(line.expression, ModelOp::exp2)) &&
        line.letters.find('M') != line.letters.npos && q.replay().dumped(q.id_of(line.name)))
      return bounds::Derivation::Place{q.place().pass, q.place().layer, line.name};
  return std::nullopt;
}

std::optional<std::pair<std::string, std::string>> mean_of(const Question& q) {
  std::optional<std::pair<std::string, std::string>> found;
  const auto letters = [&](const std::string& id) {
    const TextLine* const line = q.step().graph().lines().line_of(q.replay().place_of(id));
    return line == nullptr ? "" : line->letters;
  };
  q.step().calls([&](const Expression& e) {
    if (e.op != ModelOp::div) return false;
    const auto divisor = q.step().operand(e.args[1].text);
    for (const std::string& id : q.operands())
      if (divisor && letters(id) == letters(*divisor) + "M") found = {id, *divisor};
    return false;
  });
  return found;
}

std::string names_of(const Question& q, const std::vector<std::string>& ids) {
  std::string names;
  for (const std::string& id : ids)
    names += (names.empty() ? "" : " and ") + q.replay().place_of(id).name;
  return names;
}

bool is_cache(const Question& q, const std::string& id) {
  const TextLine* const line = q.step().graph().lines().line_of(q.replay().place_of(id));
  return line != nullptr && line->letters.starts_with("BM") &&
         is_call(line->expression, ModelOp::append);
}

std::vector<std::string> operands_of(const Question& q, const std::string& id) {
  std::vector<std::string> operands = q.step_of(id).operands();
  if (q.step().graph().of_keys())
    for (std::string& of : q.replay().operands(id)) operands.push_back(std::move(of));
  return operands;
}

std::vector<std::string> caches_of(const Question& q) {
  std::vector<std::string> caches, open{q.id()};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string of = std::move(open.back());
    open.pop_back();
    for (const std::string& id : operands_of(q, of)) {
      if (!seen.insert(id).second) continue;
      const bounds::Derivation::Place place = q.replay().place_of(id);
      if (is_cache(q, id))
        caches.push_back(id);
      else if (!q.replay().dumped(id) && place.name != "ids" && place.pass == q.place().pass &&
               place.layer == q.place().layer)
        open.push_back(id);
    }
  }
  return caches;
}

std::optional<PassPlan> moved(const Question& q, std::int64_t end,
                              const std::function<std::int64_t(std::int64_t)>& to) {
  PassPlan pass = q.pass();
  for (PassRows& rows : pass.rows) {
    rows.start = to(rows.start);
    if (rows.start < 0 || rows.start + pass.L > end) return std::nullopt;
  }
  if (pass == q.pass()) return std::nullopt;
  return pass;
}

bounds::IntervalTensor scaled(const bounds::IntervalTensor& value, double factor,
                              const bounds::DeclaredArithmetic& by) {
  bounds::IntervalTensor y = value;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double center = y.center[i] * factor;
    const double rounded =
        (4 * by.operations.unit + bounds::unit_of(by.sums) + 0x1p-50) * std::abs(center);
    y.set(i, bounds::Number{center, y.radius[i] * std::abs(factor) + rounded,
                            y.likely[i] * std::abs(factor) + rounded});
  }
  return y;
}

bounds::IntervalTensor rounded_or_not(const bounds::IntervalTensor& value,
                                      const bounds::DeclaredArithmetic& by) {
  if (!bounds::narrow_storage(by.values) || by.rounding == "spec") return value;
  return bounds::hull(value, value.rounded(by.values));
}

bounds::IntervalTensor Replaced::expected(const std::string& id) {
  const auto changed = changes_.find(id);
  Question::Change change = changed != changes_.end() ? changed->second : Question::Change{};
  change.with_masked = masked_;
  return q_.step_of(id).under(
      change, [this](const std::string& of) -> const auto& { return value(of); });
}

std::optional<bounds::IntervalTensor> Replaced::implied() {
  try {
    return expected(q_.id());
  } catch (const Error& e) {
    if (e.label() != "bounds_c1" && e.label() != "oracle_graph") throw;
    return std::nullopt;
  }
}

bool Replaced::follows(const std::string& id) {
  if (const auto known = follows_.find(id); known != follows_.end()) return known->second;
  const bounds::Derivation& replay = q_.replay();
  const bounds::Derivation::Place place = replay.place_of(id);
  bool any = changes_.contains(id);
  if (!replay.dumped(id) && place.pass == q_.place().pass)
    for (const std::string& of : operands_of(q_, id))
      any = any || values_.contains(of) || follows(of);
  return follows_[id] = any;
}

const bounds::IntervalTensor& Replaced::value(const std::string& id) {
  if (const auto known = values_.find(id); known != values_.end()) return known->second;
  const bounds::Derivation& replay = q_.replay();
  const bounds::Derivation::Place place = replay.place_of(id);
  // What another layer or pass lacks is not made of what is replaced here.
  if (replay.dumped(id) || place.pass != q_.place().pass || id == "in" || !follows(id))
    return q_.value(id);
  return values_[id] = expected(id).rounded(replay.format_at(place));
}

namespace {

bool holds(const Question& q, const std::string& id, const bounds::IntervalTensor& actual,
           const bounds::IntervalTensor& expected) {
  const bounds::Derivation::Place place = q.replay().place_of(id);
  const NumberFormat format = q.replay().format_at(place);
  const std::vector<bool> padding = q.unspoken(place, actual.shape);
  for (std::size_t i = 0; i < actual.size(); ++i)
    if ((padding.empty() || !padding[i]) &&
        !bounds::holds(bounds::values(expected.at(i), format), format, actual.center[i]))
      return false;
  return true;
}

/// The values of attention in order of computation, from the products that make queries, keys and
/// values to those that read its mean, and which of them are of keys or values.
struct AttentionValues {
  explicit AttentionValues(const Question& q) {
    const NamedComposites& all = q.step().graph().composites();
    const NamedComposites terms = block_terms_of(q.config(), NumberFormat::f32);
    const std::string mean = name_of(all, CompositeKind::mean);
    std::set<std::string> needed{mean};
    for (const auto& [name, of] : NamedComposites(all.rbegin(), all.rend())) {
      if (!needed.contains(name) || of.kind == CompositeKind::product) continue;
      needed.insert(of.operands.begin(), of.operands.end());
      if (of.kind == CompositeKind::cache || of_keys.contains(name))
        of_keys.insert(name), of_keys.insert(of.operands.begin(), of.operands.end());
    }
    for (const auto& [name, of] : all) {
      if (of.kind == CompositeKind::cache && needed.contains(name)) caches.push_back(name);
      const bool follows = of.kind == CompositeKind::product && of.reads(mean);
      for (const auto& [term, of_term] : terms)
        if (follows && of_term.reads(mean)) names.push_back(term);
      if (follows || needed.contains(name)) names.push_back(name);
    }
  }

  std::vector<std::string> names, caches;
  std::set<std::string> of_keys;
};

/// One layer's values, reordered from the writer's order to the model's.
class InModelsOrder {
 public:
  InModelsOrder(const Question& q, const AttentionValues& attention, const Places& places,
                std::int64_t layer)
      : q_(q), attention_(attention), places_(places), layer_(layer), replaced_(q) {
    const PassPlan& pass = q.replay().pass(q.place().pass);
    for (const std::string& name : attention.names) bring(pass.name, name);
    const PassPlan* const filled = q.replay().prefix_of(pass);
    for (const std::string& cache : attention.caches) {
      if (!pass.previous.empty()) bring(pass.previous, cache);
      if (filled != nullptr) bring(filled->name, cache);
    }
  }

  /// Returns whether a value follows in the model's order; nullopt if the dump lacks it, or if it
  /// belongs to keys or values and the order does not apply to it.
  std::optional<bool> right(const std::string& name) {
    const std::string id = checkpoint_id(q_.place().pass, layer_, name);
    if (!q_.replay().dumped(id)) return std::nullopt;
    const auto own = ours_.find(id);
    if (own == ours_.end() && attention_.of_keys.contains(name)) return std::nullopt;
    return holds(q_, id, own == ours_.end() ? q_.replay().value(id) : own->second,
                 replaced_.expected(id));
  }

 private:
  void bring(const std::string& pass, const std::string& name) {
    const std::string id = checkpoint_id(pass, layer_, name);
    if (!q_.replay().dumped(id)) return;
    const bounds::IntervalTensor& theirs = q_.replay().value(id);
    const auto place = places_(name, theirs.shape);
    if (!place) return;
    bounds::IntervalTensor ours = theirs;
    for (std::size_t g = 0; g < theirs.size(); ++g) ours.set((*place)(g), theirs.number(g));
    replaced_.put(id, ours);
    ours_.emplace(id, std::move(ours));
  }

  const Question& q_;
  const AttentionValues& attention_;
  const Places& places_;
  std::int64_t layer_;
  Replaced replaced_;
  std::map<std::string, bounds::IntervalTensor> ours_;
};

}  // namespace

bool holds(const Question& q, const std::string& id, const bounds::IntervalTensor& expected) {
  return q.replay().dumped(id) && holds(q, id, q.replay().value(id), expected);
}

bool Replaced::contradicted() {
  const auto shows = [this](const TextLine& line) {
    const std::string id = q_.id_of(line.name);
    if (id == q_.id() || !q_.replay().dumped(id) || values_.contains(id)) return false;
    const std::vector<std::string> operands = operands_of(q_, id);
    if (std::none_of(operands.begin(), operands.end(),
                     [&](const std::string& of) { return values_.contains(of) || follows(of); }))
      return false;
    try {
      return holds(q_, id, q_.replay().expected(id)) && !holds(q_, id, expected(id));
    } catch (const Error& e) {
      if (e.label() != "bounds_c1" && e.label() != "oracle_graph") throw;
      return false;
    }
  };
  const auto& lines = q_.step().graph().lines().text().section(TextSection::layer).lines;
  return std::any_of(lines.begin(), lines.end(), shows);
}

bool right_if_declared(const Question& q, const Places& places) {
  const AttentionValues attention(q);
  bool used = false;
  for (std::int64_t layer = 0; layer < q.config().layers; ++layer) {
    InModelsOrder values(q, attention, places, layer);
    bool after = false;
    for (const std::string& name : attention.names) {
      const std::optional<bool> right = values.right(name);
      if (right && !*right) return false;
      used = used || (after && right && layer == q.place().layer);
      after = after || name == q.name();
    }
  }
  return used;
}

bool follows(const Question& q, const std::string& id, const Values& values) {
  if (!q.replay().dumped(id)) return false;
  Replaced other(q);
  for (const auto& [of, value] : values) other.put(of, value);
  return holds(q, id, other.expected(id));
}

}  // namespace shardproof::diagnosis
