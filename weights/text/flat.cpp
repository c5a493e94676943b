#include "weights/text/flat.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weights/text/detail/letters.h"

namespace shardproof {
namespace {

Expression name_of(const std::string& name) {
  Expression e;
  e.text = name;
  return e;
}

Expression call(ModelOp op, std::vector<Expression> args) {
  Expression e;
  e.kind = Expression::Kind::call;
  e.op = op;
  e.args = std::move(args);
  return e;
}

/// Flattens the lines of a text, section by section.
class Flattener {
 public:
  explicit Flattener(const ModelText& text) : from_(text), to_(text), scope_{from_} {}

  ModelText run() {
    taken_ = {"ids", "pos", "slot", "in"};
    for (const TextNumber& number : from_.numbers) taken_.insert(number.name);
    for (const TextFlag& flag : from_.flags) taken_.insert(flag.name);
    for (const TextSection section : kTextSections) {
      for (const TextWeight& weight : from_.section(section).weights) taken_.insert(weight.name);
      for (const TextLine& line : from_.section(section).lines) taken_.insert(line.name);
    }
    know("ids", "BL");
    know("pos", "BL");
    know("slot", "M");
    know("in", "BLE");
    for (const TextSection section : kTextSections) flatten(section);
    return std::move(to_);
  }

 private:
  /// Of a name that a line reads: its letters, and the letters along which it is absent in places.
  void know(const std::string& name, const std::string& letters, const std::string& absent = "") {
    KnownName& known = scope_.known[name];
    known.letters = letters;
    known.guards = {std::nullopt};
    absent_[name] += without(absent, absent_[name]);
  }

  void flatten(TextSection section) {
    const auto& own = from_.section(section);
    auto& lines = to_.section(section).lines;
    lines.clear();
    scope_.section.clear();
    for (const TextWeight& weight : own.weights) know(weight.name, weight.letters);
    for (const TextLine& line : own.lines) {
      scope_.section.try_emplace(line.name, line.letters);
      // `before` may read a line that stands further on.
      know(line.name, line.letters);
    }
    for (const TextLine& line : own.lines) {
      lines_ = &lines;
      line_ = &line;
      TextLine flat = line;
      flat.expression = whole(line.expression);
      if (!line.where.empty() && !takes_where(flat.expression))
        flat.expression = named(flat.expression);
      std::string absent = absent_in(flat.expression);
      if (!line.where.empty()) absent += scope_.known.at(line.where).letters;
      know(line.name, line.letters, absent);
      lines.push_back(std::move(flat));
    }
  }

  /// Whether a line of this expression may say where it exists: others are of a value of their own.
  static bool takes_where(const Expression& e) {
    return e.kind != Expression::Kind::call || is_pointwise(e.op) || e.op == ModelOp::einsum ||
           e.op == ModelOp::append || e.op == ModelOp::before;
  }

  /// An expression that is pointwise, or one op of names.
  Expression whole(const Expression& e) {
    if (e.kind != Expression::Kind::call) return e;
    if (e.op == ModelOp::mean) return mean(e, true);
    return is_pointwise(e.op) ? pointwise(e) : one_op(e);
  }

  /// A pointwise expression: ops of other kinds in it become lines.
  Expression pointwise(const Expression& e) {
    if (e.kind != Expression::Kind::call) return e;
    if (e.op == ModelOp::mean) return mean(e, false);
    if (!is_pointwise(e.op)) return named(one_op(e));
    Expression flat = e;
    for (Expression& arg : flat.args) arg = pointwise(arg);
    return flat;
  }

  /// An op that is not pointwise, of names.
  Expression one_op(const Expression& e) {
    Expression flat = e;
    if (e.op == ModelOp::before) return flat;
    for (Expression& arg : flat.args)
      if (arg.kind == Expression::Kind::call) arg = named(whole(arg));
    return flat;
  }

  /// A sum divided by extents; where something may not exist, or the number of rows or positions
  /// would be counted, a line of its own, if it is not the `whole` of one.
  Expression mean(const Expression& e, bool whole) {
    Expression sum = one_op(e);
    const std::string& letters = e.parameters[0];
    for (const char letter : letters)
      if (has(kGivenLetters, letter) || has(absent_in(sum.args[0]), letter))
        return whole ? sum : named(sum);
    sum.op = ModelOp::sum;
    Expression count = name_of(letters.substr(0, 1));
    for (std::size_t i = 1; i < letters.size(); ++i)
      count = call(ModelOp::mul, {count, name_of(letters.substr(i, 1))});
    return call(ModelOp::div, {named(sum), count});
  }

  /// Gives an expression a line, and returns its name.
  Expression named(const Expression& e) {
    int number = 1;
    while (taken_.contains(fmt::format("{}_{}", line_->name, number))) ++number;
    TextLine line;
    line.name = fmt::format("{}_{}", line_->name, number);
    line.letters = letters_of(scope_, e);
    line.expression = e;
    line.guard = line_->guard;
    line.line = line_->line;
    taken_.insert(line.name);
    scope_.section.emplace(line.name, line.letters);
    know(line.name, line.letters, absent_in(e));
    lines_->push_back(line);
    return name_of(line.name);
  }

  /// The letters along which a flat expression is absent in places.
  std::string absent_in(const Expression& e) const {
    if (e.kind != Expression::Kind::call) {
      const auto at = absent_.find(e.text);
      return at == absent_.end() ? "" : at->second;
    }
    std::string absent;
    if (is_pointwise(e.op) || e.op == ModelOp::turn || e.op == ModelOp::einsum)
      for (const Expression& arg : e.args) absent += absent_in(arg);
    if (row_of(e.op).form == ModelForm::view) {
      absent = absent_in(e.args[0]);
      for (const char letter : e.parameters[0])
        if (has(absent, letter)) absent += e.parameters[1];
    }
    const std::string letters = letters_of(scope_, e);
    std::string own;
    for (const char letter : absent)
      if (has(letters, letter) && !has(own, letter)) own += letter;
    return own;
  }

  const ModelText& from_;
  ModelText to_;
  NameScope scope_;
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, std::string, std::less<>> absent_;
  std::vector<TextLine>* lines_ = nullptr;
  const TextLine* line_ = nullptr;
};

}  // namespace

bool is_pointwise(ModelOp op) {
  const ModelForm form = row_of(op).form;
  return form == ModelForm::binary || form == ModelForm::unary || form == ModelForm::range;
}

ModelText flat_text(const ModelText& text) { return Flattener(text).run(); }

}  // namespace shardproof
