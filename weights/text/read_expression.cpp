// One expression of a model text.
#include <fmt/format.h>

#include <utility>

#include "weights/base/detail/words.h"
#include "weights/base/nearest.h"
#include "weights/text/detail/names.h"
#include "weights/text/model_text.h"

namespace shardproof {
namespace {

class ExpressionReader {
 public:
  Expression read(std::string_view text) {
    if (++depth_ > kMostNesting)
      throw Error("model_c0", fmt::format("calls are nested more than {} deep; give the inner "
                                          "ones names",
                                          kMostNesting));
    Expression expression = is_call(text) ? call(text) : word(text);
    --depth_;
    return expression;
  }

 private:
  static bool is_call(std::string_view text) { return text.find('(') != std::string_view::npos; }

  static Expression word(std::string_view text) {
    if (is_model_name(text)) return {.kind = Expression::Kind::name, .text = std::string(text)};
    if (number_in(text)) return {.kind = Expression::Kind::number, .text = std::string(text)};
    throw Error("model_c0", fmt::format("'{}' is neither a name, a number nor OP(ARGUMENTS)",
                                        text.substr(0, 80)));
  }

  Expression call(std::string_view text) {
    const auto open = text.find('(');
    const std::string_view name = trim(text.substr(0, open));
    if (text.back() != ')' || !is_model_name(name))
      throw Error("model_c0", fmt::format("'{}' is not OP(ARGUMENTS)", text.substr(0, 80)));
    const ModelOpRow* const row = find_model_op(name);
    if (row == nullptr) {
      std::vector<std::string> legal;
      for (const ModelOpRow& known : model_ops()) legal.emplace_back(known.name);
      const std::string near = nearest(name, legal);
      throw Error("model_c1",
                  fmt::format("there is no op {}{}; `shardproof list model-ops` lists "
                              "all",
                              name, near.empty() ? "" : ", did you mean " + near + "?"));
    }
    Expression expression{.kind = Expression::Kind::call, .op = row->op};
    const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    int depth = 0;
    for (const char c : inside) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (depth < 0) break;
    }
    if (depth != 0)
      throw Error("model_c0",
                  fmt::format("the parentheses of '{}' do not match", text.substr(0, 80)));
    if (row->form == ModelForm::contraction)
      contraction(*row, inside, expression);
    else
      arguments(*row, split_arguments(inside, ','), expression);
    return expression;
  }

  [[noreturn]] static void misused(const ModelOpRow& row) {
    throw Error("model_c5", fmt::format("write {}{}", row.name, usage(row.form)));
  }

  static std::string letters(const ModelOpRow& row, std::string_view text) {
    if (!are_letters(text)) misused(row);
    return std::string(text);
  }

  /// A number that a call takes as a word: a literal, a number's name or a letter's extent.
  static std::string number(const ModelOpRow& row, std::string_view text) {
    if (!is_model_name(text) && !number_in(text)) misused(row);
    return std::string(text);
  }

  void contraction(const ModelOpRow& row, std::string_view inside, Expression& out) {
    const auto parts = split_arguments(inside, ';');
    const auto specs = split(parts[0], "+");
    if (parts.size() != specs.size() + 1) misused(row);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto sides = split(specs[i], "->");
      const auto letters_of = split(sides[0], ",");
      const auto operands = split_arguments(parts[i + 1], ',');
      if (sides.size() != 2 || letters_of.size() != 2 || operands.size() != 2) misused(row);
      out.terms.push_back(
          {letters(row, letters_of[0]), letters(row, letters_of[1]), letters(row, sides[1])});
      for (const std::string_view operand : operands) out.args.push_back(read(operand));
    }
  }

  /// Reads operands and parameters by the form of the op; another number of them is an error.
  void arguments(const ModelOpRow& row, const std::vector<std::string_view>& parts,
                 Expression& out) {
    const auto count = parts.size();
    const auto parameter = [&](std::string word) { out.parameters.push_back(std::move(word)); };
    std::size_t operands = 1;
    switch (row.form) {
      case ModelForm::binary:
        if (count != 2) misused(row);
        operands = 2;
        break;
      case ModelForm::unary:
        if (count != 1) misused(row);
        break;
      case ModelForm::range:
        if (count != 3) misused(row);
        parameter(number(row, parts[1]));
        parameter(number(row, parts[2]));
        break;
      case ModelForm::sum:
        if (count == 3) {
          if (parts[2] != "stored" || parts[1].size() != 1) misused(row);
          parameter(letters(row, parts[1]));
          parameter("stored");
          break;
        }
        [[fallthrough]];
      case ModelForm::reduction:
        if (count != 2) misused(row);
        parameter(letters(row, parts[1]));
        break;
      case ModelForm::top:
        if (count != 3 || parts[1].size() != 1) misused(row);
        parameter(letters(row, parts[1]));
        parameter(number(row, parts[2]));
        break;
      case ModelForm::gather:
        if (count != 3 || parts[2].size() != 1) misused(row);
        operands = 2;
        parameter(letters(row, parts[2]));
        break;
      case ModelForm::turn: {
        if (count != 3 || parts[1].size() != 1) misused(row);
        const auto words = split(parts[2], " ");
        if (words.size() != 2 || (words[0] != "half" && words[0] != "interleaved")) misused(row);
        parameter(letters(row, parts[1]));
        parameter(std::string(words[0]));
        parameter(number(row, words[1]));
        break;
      }
      case ModelForm::append:
        if (count != 2) misused(row);
        operands = 2;
        break;
      case ModelForm::view: {
        if (count != 2) misused(row);
        const auto words = split(parts[1], "->");
        if (words.size() != 2) misused(row);
        parameter(letters(row, words[0]));
        parameter(letters(row, words[1]));
        const std::string_view one = words[row.op == ModelOp::split_dim ? 0 : 1];
        if (one.size() != 1) misused(row);
        break;
      }
      case ModelForm::before:
        if (count > 2 || !is_model_name(parts[0])) misused(row);
        operands = count;
        break;
      case ModelForm::contraction:
        break;
    }
    for (std::size_t i = 0; i < operands; ++i) out.args.push_back(read(parts[i]));
  }

  int depth_ = 0;
};

}  // namespace

Expression parse_expression(std::string_view text) { return ExpressionReader().read(trim(text)); }

}  // namespace shardproof
