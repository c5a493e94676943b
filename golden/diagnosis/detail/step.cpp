#include "golden/diagnosis/detail/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <string>

#include "golden/bounds/value/derivation.h"
#include "golden/bounds/value/replay.h"
#include "golden/compare/joined.h"
#include "oracle/walk/cache.h"
#include "oracle/walk/evaluation.h"
#include "oracle/walk/passes.h"
#include "oracle/walk/weights.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/text/rules.h"

namespace shardproof::diagnosis {
namespace {

using bounds::Estimate;
using bounds::IntervalMath;
using bounds::IntervalTensor;
using Value = oracle::graph::Lettered<Estimate>;

Value value_of(const IntervalTensor& tensor, const std::string& letters) {
  Value v{letters, tensor.shape, {}};
  v.data.reserve(tensor.size());
  for (std::size_t i = 0; i < tensor.size(); ++i) v.data.push_back({tensor.number(i)});
  return v;
}

std::string other_pairs(const std::string& pairs) {
  return pairs == "half" ? "interleaved" : "half";
}

IntervalTensor tensor_of(const Value& value) {
  IntervalTensor t(value.shape);
  for (std::size_t i = 0; i < t.size(); ++i) t.set(i, value.data[i].number);
  return t;
}

}  // namespace

Step::Step(const bounds::Derivation& derivation, const std::string& id, bool raw, Unmasked unmasked)
    : derivation_(derivation),
      graph_(std::make_shared<const Graph>(derivation.weights())),
      place_(derivation.place_of(id)),
      unmasked_(unmasked) {
  const TextLine* const line = graph_->lines().line_of(place_);
  visit(line != nullptr ? *line : term());
  // Before its scale and biases a sum is a line of its own, or of a term their innermost operand.
  while (raw && !is_call(lines_.back().expression, ModelOp::einsum)) {
    Expression& last = lines_.back().expression;
    if (lines_.size() > 1) {
      lines_.pop_back();
    } else if (last.kind == Expression::Kind::call) {
      Expression sum = std::move(last.args[0]);
      last = std::move(sum);
    } else {
      break;
    }
  }
}

Step::Step(const bounds::Derivation& derivation)
    : derivation_(derivation), graph_(std::make_shared<const Graph>(derivation.weights())) {}

/// Returns the line of a term of a parallel block's sum, which the model of keys does not name.
TextLine Step::term() const {
  const bool attends = place_.name == "attn_out";
  TextLine line = *graph_->lines().line_of({place_.pass, place_.layer, "block_out"});
  line.name = place_.name;
  std::string expression =
      attends ? "einsum(BLHQ,HQE->BLE; attn, wo)" : "einsum(BLF,FE->BLE; hidden, w_out)";
  if (weight("block_out_scale") != nullptr)
    expression = fmt::format("mul({}, block_out_scale)", expression);
  const char* const bias = attends ? "bo" : "b_out";
  if (weight(bias) != nullptr) expression = fmt::format("add({}, {})", expression, bias);
  line.expression = parse_expression(expression);
  return line;
}

/// Values of keys are checkpoints, operands whether the dump has them or not. Of a text's lines
/// those are operands that the dump has, or that are stored; others belong to the steps that read
/// them.
bool Step::is_operand(const std::string& name) const {
  if (name == "in") return true;
  if (graph_->positional(name)) return false;
  if (graph_->of_keys()) {
    const ValueRow* const of_keys = value_row(name);
    if (of_keys == nullptr || of_keys->kind != ValueKind::checkpoint) return false;
  }
  const bool dumped = derivation_.dumped(graph_->lines().id_of_operand(place_, name));
  if (dumped && unmasked_ != Unmasked::all) return true;
  const std::set<std::string> indicators =
      graph_->indicators(*graph_->lines().line_of({place_.pass, place_.layer, name}), place_.layer);
  if (unmasked_ != Unmasked::none &&
      std::any_of(indicators.begin(), indicators.end(),
                  [&](const std::string& of) { return graph_->positional(of); }))
    return false;
  if (dumped || graph_->of_keys()) return true;
  // What the flat form splits off is no value of the text's own.
  const bool named = std::any_of(
      std::begin(kTextSections), std::end(kTextSections), [&](const TextSection section) {
        const auto& own = graph_->model().text().section(section).lines;
        return std::any_of(own.begin(), own.end(),
                           [&](const TextLine& line) { return line.name == name; });
      });
  const ValueRow* const row = value_row(name, &graph_->model());
  return named && (row->stored || row->cache);
}

void Step::visit(const TextLine& line) {
  const Reads reads = reads_of(graph_->lines().text(), line);
  in_loop_ = in_loop_ || !reads.before.empty();
  std::vector<std::string> names = reads.now;
  if (!line.where.empty()) names.push_back(line.where);
  const auto mask = [&](const std::string& name) { masked_ = true, masks_.insert(name); };
  if (graph_->positional(line.where)) mask(line.where);
  for (const std::string& name : names) {
    const TextLine* const operand = graph_->lines().line_of({place_.pass, place_.layer, name});
    if (operand == nullptr && name != "in") continue;  // a weight, or an input of the pass
    if (is_operand(name)) {
      if (operand != nullptr)
        for (const std::string& indicator : graph_->indicators(*operand, place_.layer))
          if (graph_->positional(indicator)) mask(indicator), visit(indicator);
      const std::string id = graph_->lines().id_of_operand(place_, name);
      if (std::find(operands_.begin(), operands_.end(), id) == operands_.end())
        operands_.push_back(id);
    } else {
      visit(name);
    }
  }
  lines_.push_back(line);
}

void Step::visit(const std::string& name) {
  if (std::none_of(lines_.begin(), lines_.end(),
                   [&](const TextLine& known) { return known.name == name; }))
    visit(*graph_->lines().line_of({place_.pass, place_.layer, name}));
}

/// One evaluation of the step.
class Step::Run {
 public:
  Run(const Step& step, const Change& change, const Operand& operand)
      : step_(step),
        change_(change),
        operand_(operand),
        lines_(step.graph_->lines()),
        plan_(change.pass ? *change.pass : step.derivation_.pass(step.place_.pass)),
        sizes_(lines_.model().sizes()),
        by_(change.declared ? *change.declared : step.derivation_.declared(step.place_)),
        appends_(is_call(step.lines_.back().expression, ModelOp::append)),
        math_(sizes_,
              [this](const TextLine& line, std::int64_t, bool) {
                return lines_.arithmetic(line, by_, step_.derivation_.torus(), false, false);
              }),
        before_(lines_.text(), math_),
        evaluation_(lines_.text(), sizes_, math_, at_, before_) {
    for (const auto& [name, number] : change.numbers) sizes_.numbers[name] = number;
    math_.use(step.derivation_.threads());
    const IntTensor& ids = change.ids ? *change.ids : step.derivation_.ids().at(plan_.name);
    oracle::graph::Tokens tokens = oracle::graph::tokens_of(plan_, ids);
    // Caches of rows that go on from prefixes begin behind these.
    if (appends_)
      for (std::int64_t& position : tokens.positions) position -= plan_.prefix.length;
    at_.extents = sizes_.extents;
    at_.extents['B'] = plan_.batch();
    at_.extents['L'] = plan_.L;
    at_.extents['M'] = plan_.cached + plan_.L + (appends_ ? 0 : plan_.prefix.length);
    at_.positions = tokens.positions;
    at_.tokens = tokens.tokens;
    at_.section = TextSection::layer;
    shorten_tables();
    at_.layer = step.place_.layer;
    std::vector<std::int64_t> slots(at(at_.extents['M']));
    std::iota(slots.begin(), slots.end(), 0);
    names_["ids"] = integers("BL", tokens.ids);
    names_["pos"] = integers("BL", tokens.positions);
    names_["slot"] = integers("M", slots);
  }

  IntervalTensor value() {
    for (const TextLine& own : step_.lines_) {
      TextLine line = own;
      if (const auto edit = change_.formulas.find(line.name); edit != change_.formulas.end())
        line.expression = edit->second;
      for (const std::string& name : reads_of(lines_.text(), line).now) need(name);
      close_unread_slots(line.expression);
      const bool last = &own == &step_.lines_.back();
      Value v = last && appends_ ? appended(line) : evaluation_.evaluate(line, names_);
      if (change_.sees && step_.masks_.contains(line.name)) see_otherwise(v);
      if (last) return of_rows(tensor_of(v));
      const IntervalTensor read = lines_.as_read(line, tensor_of(v), by_);
      for (std::size_t i = 0; i < v.data.size(); ++i) v.data[i] = {read.number(i)};
      names_[line.name] = std::move(v);
    }
    return {};
  }

 private:
  Value integers(const std::string& letters, const std::vector<std::int64_t>& values) const {
    Value v{letters, at_.shape_of(letters), {}};
    for (const std::int64_t i : values)
      v.data.push_back(i == oracle::graph::kUnknownToken
                           ? IntervalMath::unknown()
                           : IntervalMath::number(static_cast<double>(i)));
    return v;
  }

  /// Changes what queries see of keys.
  void see_otherwise(Value& mask) const {
    if (mask.letters != "BLM") return;
    const std::size_t L = at(mask.shape[1]), M = at(mask.shape[2]);
    for (std::size_t i = 0; i < mask.data.size(); ++i) {
      Estimate& seen = mask.data[i];
      const bool right = seen.number.center != 0.0;
      const bool now = change_.sees(i / M / L, i / M % L, i % M, right);
      if (now != right) seen = IntervalMath::number(now ? 1.0 : 0.0);
    }
  }

  /// What a contraction has times 0 alone, as padding behind a row's keys, it does not read: where
  /// it is unknown, 0 stands for it.
  void close_unread_slots(const Expression& e) {
    if (!is_call(e, ModelOp::einsum) || e.terms.size() != 1) return;
    const Value* shares = nullptr;
    Value* cache = nullptr;
    for (const Expression& arg : e.args) {
      const Expression& inner = arg.kind == Expression::Kind::call ? arg.args[0] : arg;
      const auto value = names_.find(inner.text);
      if (value == names_.end()) continue;
      const std::string& letters = value->second.letters;
      if (letters.starts_with("BM"))
        cache = &value->second;
      else if (letters.starts_with("BL") && letters.ends_with('M'))
        shares = &value->second;
    }
    if (shares == nullptr || cache == nullptr) return;
    const std::size_t slots = at(cache->shape[0] * cache->shape[1]), M = at(cache->shape[1]),
                      row = shares->data.size() / at(shares->shape[0]),
                      inner = cache->data.size() / slots;
    std::vector<bool> read(slots);
    for (std::size_t i = 0; i < shares->data.size(); ++i) {
      const bounds::Number& share = shares->data[i].number;
      if (std::isfinite(share.worst) && !IntervalMath::is_zero({share}))
        read[i / row * M + i % M] = true;
    }
    for (std::size_t i = 0; i < cache->data.size(); ++i)
      if (!read[i / inner] && !std::isfinite(cache->data[i].number.worst))
        cache->data[i] = IntervalMath::number(0);
  }

  /// Of tables of rotations only the rows of the pass's positions are read, of thousands.
  void shorten_tables() {
    std::int64_t rows = 1;
    for (const std::int64_t position : at_.positions) rows = std::max(rows, position + 1);
    const ModelText& text = lines_.text();
    for (const TextSection section : kTextSections)
      for (const TextWeight& table : text.section(section).weights) {
        if (!oracle::graph::turns(table)) continue;
        bool others = false;
        for (const TextSection in : kTextSections)
          for (const TextWeight& w : text.section(in).weights)
            others = others || (!oracle::graph::turns(w) &&
                                w.letters.find(table.letters[0]) != w.letters.npos);
        std::int64_t& extent = at_.extents[table.letters[0]];
        if (!others) extent = std::min(extent, rows);
      }
  }

  /// Returns the first rows of a table, as many as are read.
  std::shared_ptr<const Tensor> rows_read(std::shared_ptr<const Tensor> table,
                                          const TextWeight& weight) const {
    const std::int64_t rows = at_.extents.at(weight.letters[0]);
    if (table == nullptr || !oracle::graph::turns(weight) || table->shape[0] <= rows) return table;
    Tensor first{{rows, table->shape[1]}, {}};
    first.data.assign(table->data.begin(),
                      table->data.begin() + static_cast<std::ptrdiff_t>(rows * table->shape[1]));
    return std::make_shared<const Tensor>(std::move(first));
  }

  /// Brings what a line reads under its name; a number stays a word.
  void need(const std::string& name) {
    if (names_.contains(name)) return;
    if (const TextWeight* const weight = step_.weight(name)) {
      TextWeight as = *weight;
      if (change_.other_pairs && oracle::graph::turns(as))
        as.parameters[0] = other_pairs(as.parameters[0]);
      const Shape shape = at_.shape_of(as.letters);
      const std::string id = step_.weight_id(as);
      const auto other = change_.weights.find(id);
      const std::shared_ptr<const Tensor> stored =
          other != change_.weights.end()
              ? std::shared_ptr<const Tensor>(std::shared_ptr<void>(), &other->second)
              : step_.derivation_.weights().find(id);
      names_[name] = lines_.weight(rows_read(stored, as), sizes_, as, id, shape, by_);
      return;
    }
    const TextLine* const line = lines_.line_of({plan_.name, step_.place_.layer, name});
    if (line == nullptr && name != "in") return;
    const std::string id = lines_.id_of_operand(step_.place_, name);
    const bool cache = line != nullptr && is_call(line->expression, ModelOp::append);
    Value v = value_of(cache ? with_prefix(*line, id) : read(id),
                       line == nullptr ? "BLE" : line->letters);
    if (line != nullptr && !change_.with_masked.contains(id)) mark(*line, v);
    names_[name] = std::move(v);
  }

  const IntervalTensor& read(const std::string& id) const {
    for (const auto& [of, value] : change_.values)
      if (of == id) return value;
    return operand_(id);
  }

  /// Returns a cache as attention reads it: per row the slots of its prefix, then its own.
  IntervalTensor with_prefix(const TextLine& cache, const std::string& id) const {
    const IntervalTensor& own = read(id);
    const PassPlan* const filled = step_.derivation_.prefix_of(plan_);
    if (filled == nullptr) return own;
    const IntervalTensor& prefix = read(lines_.id_of(filled->name, step_.place_.layer, cache.name));
    Shape shape = own.shape;
    shape[cache.letters.find('M')] += plan_.prefix.length;
    IntervalTensor all(shape);
    std::size_t i = 0;
    for (const JoinedElement& from : joined_elements(cache.letters, prefix.shape, own.shape))
      all.set(i++, (from.of_prefix ? prefix : own).number(from.place));
    return all;
  }

  /// Marks what of an operand exists.
  void mark(const TextLine& line, Value& v) {
    for (const std::string& name : step_.graph_->indicators(line, step_.place_.layer)) {
      need(name);
      v.presence = oracle::graph::both(
          v.presence, oracle::graph::presence_of(math_, names_.at(name)), v.letters, v.shape);
    }
    const auto here = oracle::graph::here_in(v.presence, v.letters, v.shape);
    for (std::size_t i = 0; i < here.size(); ++i)
      if (here[i] == oracle::graph::Presence::kAbsent) v.data[i] = IntervalMath::number(0);
  }

  /// A cache with the pass's own slots behind those of the pass before.
  Value appended(const TextLine& line) {
    math_.begin(line, at_.layer, false);
    const Value& fresh = names_.at(line.expression.args[0].text);
    Value old;
    if (!plan_.previous.empty()) {
      const IntervalTensor& before = read(lines_.id_of(plan_.previous, at_.layer, line.name));
      old = oracle::graph::in_order(value_of(before, line.letters),
                                    "BM" + oracle::graph::letters_but_rows(fresh.letters));
    }
    Value all = oracle::graph::append_to(math_, old, fresh, at_);
    return oracle::graph::in_order(all, line.letters);
  }

  /// The logits of keys are those of each row's last token.
  IntervalTensor of_rows(IntervalTensor all) const {
    if (!step_.graph_->of_keys() || step_.place_.name != "logits") return all;
    const std::size_t V = at(all.shape.back());
    const std::vector<std::size_t> rows = bounds::rows_of_logits(plan_, at(plan_.L));
    IntervalTensor last(Shape{std::ssize(rows), all.shape.back()});
    for (std::size_t i = 0; i < last.size(); ++i) last.set(i, all.number(rows[i / V] * V + i % V));
    return last;
  }

  const Step& step_;
  const Change& change_;
  const Operand& operand_;
  const bounds::TextLines& lines_;
  PassPlan plan_;
  TextSizes sizes_;
  bounds::DeclaredArithmetic by_;
  bool appends_;
  IntervalMath math_;
  oracle::graph::ValuesBefore<IntervalMath> before_;
  oracle::graph::Place<Estimate> at_;
  oracle::graph::Evaluation<IntervalMath> evaluation_;
  oracle::graph::NamedValues<Estimate> names_;
};

IntervalTensor Step::under(const Change& change, const Operand& operand) const {
  if (in_loop_) throw Error("bounds_c1", fmt::format("{} is not evaluated by itself", place_.name));
  return Run(*this, change, operand).value();
}

}  // namespace shardproof::diagnosis
